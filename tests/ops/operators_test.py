"""Python's operators on tensors: what they mean, and what they do not."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor

A, B = mtf.Dimension("a", 4), mtf.Dimension("b", 8)


def test_two_tensors_are_equal_only_if_they_are_the_same_one():
  mesh = new_mesh()
  x, y = tensor(mesh, "a:4"), tensor(mesh, "a:4")
  assert (x == x) is True
  assert (x == y) is False
  assert (x != y) is True
  assert {x: 1, y: 2}[y] == 2
  assert y in [x, y]
  assert [x, y].index(y) == 1


def test_a_tensor_is_there_but_whether_it_is_true_is_not_known():
  x = tensor(new_mesh(), "a:4")
  assert bool(x) is True
  with pytest.raises(TypeError, match=r"join conditions with & and \|"):
    bool(x < 2)
  with pytest.raises(TypeError, match="choose with mtf"):
    assert 0 < x < 2


def test_a_tensor_is_no_sequence():
  x = tensor(new_mesh(), "a:4")
  with pytest.raises(TypeError, match="not iterable"):
    list(x)
  with pytest.raises(TypeError, match="not iterable"):
    A in x  # noqa: B015


@pytest.mark.parametrize(
  "number", [np.float32(2), np.float64(2), tf.constant(2.0)]
)
def test_a_number_of_numpy_or_tensorflow_may_stand_in_front(number):
  def build(mesh):
    x = tensor(mesh, "a:4")
    return [number + x, number - x, number * x, number / (x + 1), number**x]

  x = np.arange(4)
  want = [2 + x, 2 - x, 2 * x, 2 / (x + 1), 2**x]
  for got, expected in zip(run(build).values, want, strict=True):
    np.testing.assert_allclose(got, expected, 1e-6)


def test_an_array_in_front_is_refused_and_not_taken_apart():
  x = tensor(new_mesh(), "a:4")
  with pytest.raises(ValueError, match="give an array the names of its"):
    np.arange(4.0) + x


def test_bits_and_truth_values_do_not_mix():
  mesh = new_mesh()
  flag, number = tensor(mesh, "a:4") > 1, tensor(mesh, "a:4", dtype=np.int32)
  with pytest.raises(ValueError, match="got bool and int32; cast one of them"):
    flag & number
  with pytest.raises(
    ValueError, match="bitwise_and takes integers, got float32"
  ):
    tensor(mesh, "a:4") & tensor(mesh, "a:4")


def test_a_power_of_a_negative_base_has_a_value_and_gradients():
  def build(mesh):
    x = tensor(mesh, "a:4", [-2.0, -1.0, 0.0, 3.0])
    y = tensor(mesh, "a:4", [3.0, 2.0, 0.0, 2.0])
    z, w = x**y, x**3
    v = x**0
    return [
      z,
      w,
      v,
      *mtf.gradients([z], [x, y]),
      *mtf.gradients([w], [x]),
      *mtf.gradients([v], [x]),
    ]

  z, w, v, dx, dy, dw, dv = run(build).values
  np.testing.assert_allclose(z, [-8, 1, 1, 9])
  np.testing.assert_allclose(w, [-8, -1, 0, 27])
  np.testing.assert_allclose(v, [1, 1, 1, 1])
  np.testing.assert_allclose(dx, [12, -2, 0, 6])
  np.testing.assert_allclose(dy, [0, 0, 0, 9 * np.log(3)], 1e-6)
  np.testing.assert_allclose(dw, [12, 3, 0, 27])
  np.testing.assert_allclose(dv, np.zeros(4))


def test_an_integer_has_no_power_below_zero():
  x = tensor(new_mesh(), "a:4", dtype=np.int32)
  with pytest.raises(ValueError, match="has no power of -1; cast it first"):
    x**-1
  with pytest.raises(ValueError, match=r"0\.5 is no int32"):
    x**0.5


def test_a_product_passes_its_gradient_through_zeros():
  def build(mesh):
    x = tensor(mesh, "a:3 b:3", [[2, 3, 4], [2, 0, 4], [0, 0, 4]])
    y = mtf.reduce_prod(x, reduced_dim=mtf.Dimension("b", 3))
    return [y, *mtf.gradients([y], [x])]

  y, dx = run(build).values
  np.testing.assert_allclose(y, [24, 0, 0])
  np.testing.assert_allclose(dx, [[12, 8, 6], [0, 8, 0], [0, 0, 0]])


@pytest.mark.parametrize("fn", [mtf.norm, mtf.reduce_std])
def test_the_length_of_nothing_has_no_slope(fn):
  def build(mesh):
    x = tensor(mesh, "a:4 b:8", np.zeros((4, 8)))
    y = fn(x, reduced_dim=B)
    return [y, *mtf.gradients([y], [x])]

  y, dx = run(build).values
  np.testing.assert_array_equal(y, np.zeros(4))
  np.testing.assert_array_equal(dx, np.zeros((4, 8)))


def test_a_norm_of_16_bit_numbers_is_added_up_in_32_bits():
  def build(mesh):
    x = tensor(mesh, "a:4096", np.ones(4096), tf.bfloat16)
    return [mtf.norm(x), mtf.norm(x, ord=1)]

  root, total = run(build).values
  assert (root, total) == (64, 4096)
  with pytest.raises(ValueError, match="norm: ord is 3; it is 1, 2 or"):
    mtf.norm(tensor(new_mesh(), "a:4"), ord=3)


def test_the_bounds_pass_the_gradient_of_what_lies_on_them():
  def build(mesh):
    x = tensor(mesh, "a:4", [-1.0, 0.0, 1.0, np.nan])
    y = mtf.clip(x, -0.5, 1)
    return [y, *mtf.gradients([y], [x])]

  y, dx = run(build).values
  np.testing.assert_array_equal(y, [-0.5, 0, 1, np.nan])
  np.testing.assert_array_equal(dx, [0, 1, 1, 1])


def test_no_gradient_flows_through_a_rounded_quotient():
  def build(mesh):
    x, y = tensor(mesh, "a:4") + 1, tensor(mesh, "a:4") + 2
    return [x, y, x // y, x % y]

  mesh = new_mesh()
  x, y, quotient, rest = build(mesh)
  assert mtf.gradients([quotient], [x, y]) == [None, None]
  assert mtf.gradients([rest], [x, y]) == [None, None]


def test_an_operand_that_is_broadcast_gets_a_gradient_of_its_own_shape():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    low = tensor(mesh, "b:8", np.full(8, 9.5))
    y = mtf.maximum(x, low)
    return mtf.gradients([y], [x, low])

  dx, dlow = run(build, "x:2", "a:x").values
  assert dx.shape == (4, 8)
  np.testing.assert_array_equal(dlow, [2, 2, 1, 1, 1, 1, 1, 1])


def test_what_where_does_not_select_does_not_leak():
  def build(mesh):
    x = tensor(mesh, "a:4", [0.0, 1.0, 2.0, 4.0])
    y = mtf.where(x > 0, mtf.log(x), 0)
    flags = mtf.where(x > 0, x > 1, x > -1)
    return [y, flags, *mtf.gradients([mtf.where(x > 0, 1 / (x + 1), 0)], [x])]

  y, flags, dx = run(build).values
  np.testing.assert_allclose(y, [0, 0, np.log(2), np.log(4)], 1e-6)
  np.testing.assert_array_equal(flags, [True, False, True, True])
  assert dx[0] == 0


@pytest.mark.parametrize(
  ("fn", "second"),
  [
    (lambda x: x**3, lambda x: 6 * x),
    (lambda x: x ** (x * 0 + 3), lambda x: 6 * x),
    (mtf.log1p, lambda x: -1 / (1 + x) ** 2),
    (mtf.erf, lambda x: -4 * x * np.exp(-(x**2)) / np.sqrt(np.pi)),
    (mtf.asinh, lambda x: -x / (1 + x**2) ** 1.5),
    (mtf.atan, lambda x: -2 * x / (1 + x**2) ** 2),
    (lambda x: mtf.squared_difference(x, 1), lambda x: 2 + 0 * x),
    (lambda x: mtf.clip(x * x, 0, 100), lambda x: 2 + 0 * x),
  ],
)
def test_a_gradient_has_a_gradient(fn, second):
  def build(mesh):
    x = tensor(mesh, "a:4", [0.5, 1.0, 2.0, 3.0])
    (slope,) = mtf.gradients([fn(x)], [x])
    return mtf.gradients([slope], [x])

  got = run(build, "x:2", "a:x").value()
  np.testing.assert_allclose(got, second(np.array([0.5, 1, 2, 3])), 1e-4, 1e-6)


def test_the_gradient_of_a_product_has_a_gradient():
  def build(mesh):
    x = tensor(mesh, "a:4", [0.5, 1.0, 2.0, 3.0])
    (slope,) = mtf.gradients([mtf.reduce_prod(x)], [x])
    weights = tensor(mesh, "a:4", [1.0, 0.0, 0.0, 0.0])
    return mtf.gradients([slope * weights], [x])

  # The first slope is x[1] * x[2] * x[3].
  np.testing.assert_allclose(run(build).value(), [0, 6, 3, 2], 1e-5, 1e-5)


def test_an_operation_has_the_name_it_was_given():
  mesh = new_mesh()
  x, y = tensor(mesh, "a:4"), tensor(mesh, "a:4")
  for fn in (mtf.add, mtf.sub, mtf.multiply, mtf.divide, mtf.minimum):
    assert fn(x, y, name="mine").operation.name.startswith("mine")
