"""The order of dimensions that an operation of several tensors gives."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

SHAPES = {"a": "a:2 b:3", "b": "b:3", "c": "c:4 a:2", "d": "b:3 a:2"}


def _operands():
  mesh = new_mesh()
  return {name: tensor(mesh, shape) for name, shape in SHAPES.items()}


@pytest.mark.parametrize(
  ("pair", "want"),
  [
    ("ab", "a:2 b:3"),
    ("ba", "a:2 b:3"),
    ("ac", "a:2 b:3 c:4"),
    ("ca", "c:4 a:2 b:3"),
    ("ad", "a:2 b:3"),
    ("da", "b:3 a:2"),
  ],
)
@pytest.mark.parametrize("fn", [mtf.add, mtf.multiply, mtf.less, mtf.pow])
def test_a_shape_that_holds_the_other_one_is_kept_and_else_new_dims_follow(
  fn, pair, want
):
  operands = _operands()
  y = fn(operands[pair[0]], operands[pair[1]])
  assert y.shape == mtf.convert_to_shape(want)


def test_an_einsum_without_a_shape_sums_what_occurs_twice():
  o = _operands()
  assert mtf.einsum([o["a"], o["c"]]).shape == mtf.convert_to_shape("b:3 c:4")
  assert mtf.einsum([o["a"], o["b"]]).shape == mtf.convert_to_shape("a:2")
  assert mtf.matmul(o["a"], o["d"]).shape == mtf.Shape([])


def test_a_condition_may_have_dimensions_that_the_values_lack():
  o = _operands()
  y = mtf.where(o["c"] > 2, o["b"], 0.0)
  assert set(y.shape) == set(mtf.convert_to_shape("a:2 b:3 c:4"))
  z = mtf.where(o["c"] > 2, o["b"], 0.0, output_shape="b:3 c:4 a:2")
  assert z.shape == mtf.convert_to_shape("b:3 c:4 a:2")


def test_a_sum_of_many_tensors_of_16_bits_does_not_stop_growing():
  def build(mesh):
    one = tensor(mesh, "a:2", np.ones(2), tf.bfloat16)
    return mtf.add_n([one] * 300)

  got = run(build).value()
  assert got.dtype == tf.bfloat16.as_numpy_dtype
  assert got[0] == 300
  assert mtf.add_n([]) == 0


def test_dimensions_of_operands_may_take_turns_as_often_as_they_like():
  """TensorFlow's own operations broadcast five changes, and no more."""
  names = "abcdefgh"
  odd, even = (
    mtf.Shape([(n, 2) for n in names[i::2]] + [("z", 2)]) for i in (0, 1)
  )
  both = mtf.Shape([(n, 2) for n in [*names, "z"]])

  def build(mesh):
    x, y = tensor(mesh, odd), tensor(mesh, even)
    i, j = (mtf.to_int32(t) for t in (x, y))
    return [
      mtf.add(x, y, both),
      mtf.where(mtf.greater(x, 3), x, y, both),
      mtf.broadcast(y, both),
      mtf.einsum([i, j], both),
    ]

  x, y = (np.arange(32, dtype=np.float32).reshape([2] * 5) for _ in range(2))
  x, y = np.expand_dims(x, (1, 3, 5, 7)), np.expand_dims(y, (0, 2, 4, 6))
  full = np.broadcast_to(y, [2] * 9)
  wanted = [x + y, np.where(x > 3, x, y), full, x * y]
  for mesh, layout in (("", ""), ("x:2;y:2;z:2", "a:y;d:x;z:z")):
    for kind in KINDS:
      got = run(build, mesh, layout, kind)
      for a, b in zip(got.values, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
