"""Cumulative sums and products: zeros, narrow floats, cost, and errors."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.ops.recurrence import recurrence

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

A = mtf.Dimension("a", 8)
LAYOUTS = (("", ""), ("x:2", "a:x"), ("x:4", "a:x"), ("x:2;y:4", "r:x;a:y"))


def _products(x, exclusive, reverse):
  """[i, j]: which elements of row i of the result come from element j."""
  n = x.shape[-1]
  i, j = np.arange(n)[:, None], np.arange(n)
  if reverse:
    i, j = n - 1 - i, n - 1 - j
  return j < i if exclusive else j <= i


def _gradient(x, w, exclusive, reverse):
  """Term by term: the product of all others that are part of it."""
  used = _products(x, exclusive, reverse)
  out = np.zeros_like(x)
  for row, k in np.ndindex(x.shape):
    others = np.where(used, x[row], 1)
    others[:, k] = 1
    out[row, k] = np.sum(others.prod(1) * used[:, k] * w[row])
  return out


WAYS = list(itertools.product((False, True), repeat=2))


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
def test_the_gradient_of_a_product_is_right_where_elements_are_zero(
  exclusive, reverse
):
  rng = np.random.default_rng(0)
  x = rng.normal(size=(4, 8)).astype(np.float32)
  x[1, 3] = x[2, 0] = x[2, 5] = x[3, 7] = x[3, 6] = x[3, 5] = 0
  w = rng.normal(size=(4, 8)).astype(np.float32)

  def build(mesh):
    x_ = tensor(mesh, "r:4 a:8", x)
    y = mtf.cumprod(x_, A, exclusive, reverse)
    return mtf.gradients([y], [x_], [tensor(mesh, "r:4 a:8", w)])

  want = _gradient(x, w, exclusive, reverse)
  for mesh, layout in LAYOUTS:
    for kind in KINDS:
      got = run(build, mesh, layout, kind).value()
      np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_the_second_gradient_of_a_product_is_right_where_elements_are_zero():
  x = np.array([2, -1, 0, 3, 0.5, 0, 1, -2], np.float32)
  w = np.arange(1, 9).astype(np.float32)
  v = np.arange(8, 0, -1).astype(np.float32)

  def build(mesh):
    x_ = tensor(mesh, "a:8", x)
    y = mtf.cumprod(x_, A)
    (dx,) = mtf.gradients([y], [x_], [tensor(mesh, "a:8", w)])
    return mtf.gradients([dx], [x_], [tensor(mesh, "a:8", v)])

  wide, step = x.astype(np.float64), 1e-4
  want = [
    (
      v
      * (
        _gradient((wide + step * e)[None], w[None], False, False)
        - _gradient((wide - step * e)[None], w[None], False, False)
      )
    ).sum()
    / (2 * step)
    for e in np.eye(8)
  ]
  for mesh, layout in LAYOUTS[:3]:
    got = run(build, mesh, layout).value()
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_recurrence_takes_one_step_after_another(n, reverse):
  rng = np.random.default_rng(n)
  a, b = rng.normal(size=(2, 3, n)).astype(np.float32)
  dim, want, state = mtf.Dimension("n", n), np.zeros([3, n]), np.zeros(3)
  for i in reversed(range(n)) if reverse else range(n):
    state = a[:, i] * state + b[:, i]
    want[:, i] = state

  def build(mesh):
    ab = [tensor(mesh, f"r:3 n:{n}", x) for x in (a, b)]
    y = recurrence(*ab, dim, reverse)
    return [y, *mtf.gradients([y], ab)]

  with tf.GradientTape() as tape:
    a_, b_ = tf.constant(a), tf.constant(b)
    tape.watch([a_, b_])
    total, state = 0.0, tf.zeros([3])
    for i in reversed(range(n)) if reverse else range(n):
      state = a_[:, i] * state + b_[:, i]
      total += tf.reduce_sum(state)
  da, db = tape.gradient(total, [a_, b_])
  for m in (1, n):
    y, *gradients = run(build, f"x:{m}", "n:x").values
    np.testing.assert_allclose(y, want, 1e-4, 1e-5)
    np.testing.assert_allclose(gradients, [da, db], 1e-4, 1e-5)


def test_the_golden_cumulative_sums_of_the_original():
  dim = mtf.Dimension("a", 4)
  for exclusive, want in ((False, [0, 1, 3, 6]), (True, [0, 0, 1, 3])):
    for layout in ("", "a:x"):
      got = run(
        lambda mesh, e=exclusive: mtf.cumsum(tensor(mesh, "a:4"), dim, e),
        "x:2", layout,
      )  # fmt: skip
      assert got.value().tolist() == want


def test_many_narrow_ones_add_up_exactly():
  dim = mtf.Dimension("n", 512)

  def build(mesh):
    return mtf.cumsum(mtf.ones(mesh, "n:512", "bfloat16"), dim)

  for layout in ("", "n:x"):
    got = run(build, "x:4", layout).value()
    assert got[-1] == 512
    assert got[299] == np.float32(300)


def test_integers_are_added_and_multiplied_as_integers():
  values = [2**30, -3, 7, 1, 5, 2, -1, 3]

  def build(mesh):
    x = tensor(mesh, "a:8", values, np.int32)
    return mtf.cumsum(x, A), mtf.cumprod(x, A, reverse=True)

  total, product = run(build, "x:4", "a:x").values
  assert total.tolist() == np.cumsum(values, dtype=np.int32).tolist()
  backwards = np.cumprod(values[::-1], dtype=np.int32)[::-1]
  assert product.tolist() == backwards.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_each_processor_sends_one_element_for_each_row(kind):
  def build(mesh):
    x = tensor(mesh, "r:3 a:8")
    return [mtf.cumsum(x, A), mtf.cumprod(x, A, True, True)]

  split = run(build, "x:4", "a:x", kind)
  assert len(split.values) == 2
  sent = [(c.kind, c.elements) for _, c in split.lowering.collectives]
  assert sent == [("allconcat", 3 * 4)] * 2


def test_the_work_grows_like_the_dimension():
  program = mtf.Program("x:4", "n:x")

  def flops(n):
    dim = mtf.Dimension("n", n)

    def build(mesh, x):
      x = mtf.import_tf_tensor(mesh, x, [dim])
      y = mtf.cumprod(mtf.cumsum(x, dim), dim)
      return mtf.gradients([y], [x])

    return program.cost(build, tf.TensorSpec([n])).flops

  assert flops(4096) <= 2.01 * flops(2048)


def test_a_cumulative_sum_of_bools_says_what_to_do():
  x = mtf.cast(tensor(new_mesh(), "a:8"), tf.bool)
  with pytest.raises(ValueError, match="cumsum takes numbers, got bool; cast"):
    mtf.cumsum(x, A)
  with pytest.raises(ValueError, match=r"\[a:8\] has no dimension b:8"):
    mtf.cumprod(tensor(new_mesh(), "a:8"), mtf.Dimension("b", 8))
