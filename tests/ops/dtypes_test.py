"""A dtype that an operation does not take is told when the graph is built."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run

DTYPES = [
  "bool",
  "int8",
  "int32",
  "int64",
  "uint8",
  "uint32",
  "float16",
  "bfloat16",
  "float32",
  "float64",
]

A, B = mtf.Dimension("a", 2), mtf.Dimension("b", 2)

UNARY = [
  "abs",
  "acos",
  "acosh",
  "asin",
  "asinh",
  "atan",
  "atanh",
  "bitwise_not",
  "ceil",
  "cos",
  "cosh",
  "elu",
  "erf",
  "exp",
  "expm1",
  "floor",
  "gelu",
  "identity",
  "isfinite",
  "isinf",
  "isnan",
  "leaky_relu",
  "log",
  "log1p",
  "logical_not",
  "negative",
  "reciprocal",
  "relu",
  "round",
  "rsqrt",
  "selu",
  "sigmoid",
  "sign",
  "sin",
  "sinh",
  "softplus",
  "sqrt",
  "square",
  "squared_relu",
  "swish",
  "tan",
  "tanh",
  "to_bfloat16",
  "to_float",
  "to_int32",
  "reduce_all",
  "reduce_any",
  "reduce_max",
  "reduce_mean",
  "reduce_min",
  "reduce_prod",
  "reduce_std",
  "reduce_sum",
  "reduce_variance",
  "norm",
]

BINARY = [
  "add",
  "atan2",
  "bitwise_and",
  "bitwise_or",
  "bitwise_xor",
  "divide",
  "equal",
  "floordiv",
  "greater",
  "greater_equal",
  "left_shift",
  "less",
  "less_equal",
  "logical_and",
  "logical_or",
  "logical_xor",
  "maximum",
  "minimum",
  "mod",
  "multiply",
  "not_equal",
  "pow",
  "right_shift",
  "squared_difference",
  "sub",
  "matmul",
]


def _ones(mesh, dtype, shape="a:2 b:2"):
  size = mtf.convert_to_shape(shape).to_integer_list
  return mtf.import_tf_tensor(mesh, tf.ones(size, dtype), shape)


def _try(make, dtype):
  """Whether it can be built; what can be built can be run."""
  try:
    make(new_mesh(), dtype)
  except ValueError as e:
    assert f"got {dtype}" in str(e) or dtype in str(e)
    assert any(way in str(e) for way in ("cast ", "compare it", "for bool"))
    return False
  assert len(run(lambda mesh: make(mesh, dtype)).values) == 1
  return True


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_tensor_runs_on_every_dtype_that_it_accepts(name):
  fn = getattr(mtf, name)
  accepted = [
    dtype
    for dtype in DTYPES
    if _try(lambda mesh, dtype: fn(_ones(mesh, dtype)), dtype)
  ]
  assert accepted


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_tensors_runs_on_every_dtype_that_it_accepts(name):
  fn = getattr(mtf, name)

  def make(mesh, dtype):
    return fn(_ones(mesh, dtype), _ones(mesh, dtype, "b:2"))

  assert [dtype for dtype in DTYPES if _try(make, dtype)]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "reduce_logsumexp"])
def test_softmax_runs_on_every_dtype_that_it_accepts(name):
  fn = getattr(mtf, name)
  accepted = [
    dtype
    for dtype in DTYPES
    if _try(lambda mesh, dtype: fn(_ones(mesh, dtype), B), dtype)
  ]
  assert accepted == ["float16", "bfloat16", "float32", "float64"]


def test_floats_are_refused_as_bits_and_integers_as_angles():
  def accepted(name):
    fn = getattr(mtf, name)
    make = lambda mesh, dtype: fn(_ones(mesh, dtype))
    return [dtype for dtype in DTYPES if _try(make, dtype)]

  assert accepted("bitwise_not") == [
    "int8",
    "int32",
    "int64",
    "uint8",
    "uint32",
  ]
  assert accepted("sin") == ["float16", "bfloat16", "float32", "float64"]
  assert accepted("logical_not") == ["bool"]
  assert accepted("negative") == [
    dtype for dtype in DTYPES if dtype not in ("bool", "uint8", "uint32")
  ]
  assert accepted("identity") == DTYPES


@pytest.mark.parametrize(
  ("dtype", "number", "message"),
  [
    ("int32", 0.5, "0.5 is no int32"),
    ("int32", np.float32(0.5), "0.5 is no int32"),
    ("int64", tf.constant(2.0), "is no int64"),
    ("int32", 2**31, "2147483648 is too large for int32"),
    ("uint8", 300, "300 is too large for uint8"),
    ("float32", "2", "a tensor or one number is needed, got '2'"),
    ("float32", None, "a tensor or one number is needed, got None"),
    ("float32", [1.0, 2.0], r"one number is needed, got \[1.0, 2.0\]"),
    ("float32", np.ones(2), r"got shape \(2,\); give an array the names"),
    ("float32", tf.ones([2]), r"got shape \(2,\)"),
  ],
)
@pytest.mark.parametrize("fn", [mtf.add, mtf.multiply, mtf.less])
def test_a_number_that_the_dtype_cannot_hold_is_told(
  fn, dtype, number, message
):
  with pytest.raises(ValueError, match=message):
    fn(_ones(new_mesh(), dtype), number)


def test_a_number_of_any_sort_takes_the_dtype_of_the_tensor():
  def build(mesh):
    x = _ones(mesh, "int32") * 2
    y = _ones(mesh, "bfloat16")
    return [
      x + 3.0,
      np.float32(3) + x,
      x * np.int64(4),
      tf.constant(5) - x,
      x - tf.constant(5),
      y * np.float64(0.1),
      True + x,
    ]

  ran = run(build)
  assert [v.dtype.name for v in ran.values[:5]] == ["int32"] * 5
  assert [v[0, 0] for v in ran.values[:5]] == [5, 5, 8, 3, -3]
  assert ran.value(5).dtype == tf.bfloat16.as_numpy_dtype
  assert ran.value(6)[0, 0] == 3


def test_integers_are_divided_as_numpy_divides_them_in_float32():
  def build(mesh):
    x = _ones(mesh, "int32") * 3
    half = _ones(mesh, "bfloat16")
    return [x / 2, x / x, 1 / x, x / half, half / x, mtf.reduce_mean(x), x / 0]

  ran = run(build)
  dtypes = [t.dtype.name for t in ran.tensors]
  assert dtypes == ["float32"] * 3 + ["bfloat16"] * 2 + ["float32"] * 2
  assert [float(v.ravel()[0]) for v in ran.values[:2]] == [1.5, 1.0]
  assert ran.value(2)[0, 0] == np.float32(1 / 3)
  assert ran.value(5) == 3
  assert np.isinf(ran.value(6)).all()


def test_a_large_whole_number_keeps_all_its_digits():
  def build(mesh):
    return _ones(mesh, "int64") + (2**53 + 1)

  assert run(build).value()[0, 0] == 2**53 + 2
