"""One of two branches: values, gradients, what runs, errors."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import run, tensor

SETTINGS = [
  ("x:2", "a:x", "virtual"),
  ("x:2", "a:x", "placement"),
  ("x:2", "a:x", "simd"),
  ("", ""),
]


def squared_or_scaled(mesh, numbers):
  x, w = tensor(mesh, "a:2", numbers), tensor(mesh, "a:2", [3.0, 5.0])
  n = mtf.constant(mesh, 7, dtype=tf.int32)
  y, kept, _ = mtf.cond(
    mtf.less(mtf.reduce_sum(x), 4.0),
    lambda: [mtf.square(x), x, n],
    lambda: [x * w, mtf.stop_gradient(x), n + 1],
  )
  return [y, kept, *mtf.gradients([y, kept], [x, w])]


@pytest.mark.parametrize("where", SETTINGS, ids=str)
def test_the_branch_that_is_taken_has_its_value_and_gradient(where):
  small = run(lambda mesh: squared_or_scaled(mesh, [1.0, 2.0]), *where).values
  np.testing.assert_allclose(small, [[1, 4], [1, 2], [3, 5], [0, 0]])
  large = run(lambda mesh: squared_or_scaled(mesh, [2.0, 3.0]), *where).values
  np.testing.assert_allclose(large, [[6, 15], [2, 3], [3, 5], [2, 3]])


def test_a_branch_that_is_not_taken_leaves_no_trace_in_the_gradient():
  def build(mesh):
    x = tensor(mesh, "a:2", [0.0, 4.0])
    y = mtf.cond(
      mtf.less(mtf.reduce_max(x), 1.0), lambda: mtf.log(x), lambda: x + 1.0
    )
    return [y, *mtf.gradients([y], [x])]

  np.testing.assert_array_equal(run(build).values, [[1, 5], [1, 1]])


def test_a_branch_may_hold_a_loop_a_sum_over_the_mesh_and_dropout():
  def build(mesh):
    x = tensor(mesh, "a:4", [1.0, 2.0, 3.0, 4.0])

    def looped():
      _, (ys,) = mtf.scan(
        lambda c, e: (c, [c[0] * c[0]]), [x], [], mtf.Dimension("time", 3)
      )
      kept = mtf.dropout(ys, True, rate=0.5)
      return mtf.reduce_sum(kept), mtf.reduce_sum(mtf.square(x))

    y, z = mtf.cond(
      mtf.less(mtf.reduce_min(x), 4.0),
      looped,
      lambda: [mtf.reduce_sum(x), mtf.reduce_sum(x)],
    )
    return [y, z, *mtf.gradients([y, z], [x])]

  want = run(build).values
  assert want[1] == 30
  for where in SETTINGS[:2]:
    for got, value in zip(run(build, *where).values, want, strict=True):
      np.testing.assert_allclose(got, value, 1e-6)
  # The gradient saw the same dropout as the value: y is a sum of squares.
  x = np.arange(1.0, 5.0)
  assert np.dot(want[2] - 2 * x, x) == pytest.approx(2 * want[0])


def test_a_condition_inside_what_is_recomputed():
  def build(mesh):
    x = tensor(mesh, "a:2", [1.0, 2.0])

    def layer(x):
      big = mtf.less(1.0, mtf.reduce_sum(x))
      return mtf.cond(big, lambda: x * x, lambda: x)

    y = mtf.recompute_grad(layer, [x])
    return [y, *mtf.gradients([y], [x])]

  values = run(build, "x:2", "a:x").values
  np.testing.assert_array_equal(values, [[1, 4], [2, 4]])


def test_branches_that_differ_are_an_error_that_shows_both():
  def build(mesh):
    x = tensor(mesh, "a:2")
    small = mtf.less(mtf.reduce_sum(x), 1.0)
    return mtf.cond(small, lambda: x, lambda: mtf.reduce_sum(x))

  with pytest.raises(
    mtf.ShapeError, match=r"true_fn returns \[float32\[a:2\]\], false_fn"
  ):
    run(build)


def test_a_predicate_is_a_bool_scalar():
  def build(mesh):
    x = tensor(mesh, "a:2")
    return mtf.cond(mtf.less(x, 1.0), lambda: x, lambda: x)

  with pytest.raises(mtf.ShapeError, match="must be a bool scalar"):
    run(build)


def test_a_branch_assigns_to_no_variable():
  def build(mesh):
    x = tensor(mesh, "a:2")
    w = mtf.get_variable(mesh, "w", "a:2")

    def assigns():
      mtf.assign(w, x)
      return x

    return mtf.cond(mtf.less(mtf.reduce_sum(x), 1.0), assigns, lambda: x)

  with pytest.raises(ValueError, match="cannot be assigned inside a cond"):
    run(build)


@pytest.mark.parametrize("result", [None, 1.0, [2.0]], ids=str)
def test_a_branch_that_returns_no_tensor_is_an_error_that_shows_it(result):
  def build(mesh):
    x = tensor(mesh, "a:2")
    return mtf.cond(mtf.reduce_sum(x) > 1.0, lambda: x, lambda: result)

  with pytest.raises(TypeError, match=r"given to cond returns a .* got \[?"):
    run(build)


def test_a_predicate_that_is_known_already_is_an_error_that_says_so():
  def build(mesh):
    x = tensor(mesh, "a:2")
    return mtf.cond(True, lambda: x, lambda: x)

  with pytest.raises(TypeError, match="got True; where it is known already"):
    run(build)
