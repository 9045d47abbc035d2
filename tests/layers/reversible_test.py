"""Reversible layers: their gradients, and what they keep for them."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support import running
from tests.support.meshes import PLACEMENT, VIRTUAL

B = mtf.Dimension("batch", 4)
C = mtf.Dimension("channels", 6)
X = np.random.default_rng(0).normal(size=[4, 6]).astype(np.float32)
ONE = (VIRTUAL, "", "")
LAYOUTS = [ONE, (VIRTUAL, "a:2;b:2", "batch:a;_channels:b")]
LAYOUTS += [(PLACEMENT, "a:2", "channels:a")]
reversible = mtf.layers.reversible_half_residual_and_swap


def run(build, where=ONE):
  kind, mesh, layout = where
  return running.run(build, mesh, layout, kind).values


@pytest.mark.parametrize("recompute", [True, False])
def test_gradients_are_those_of_the_original(recompute):
  dim = mtf.Dimension("x", 2)

  def build(mesh):
    x = running.tensor(mesh, [dim], [1.0, 2.0])
    w = mtf.get_variable(mesh, "w", [dim], initializer=0.5)
    state = (x, None, x, None)
    for _ in range(2):
      state = reversible(*state, lambda x: mtf.tanh(w * x), recompute)
    loss = mtf.reduce_sum(mtf.square(state[0] + state[2]))
    return mtf.gradients([loss], [x, w])

  dx, dw = run(build)
  np.testing.assert_allclose(dx, [17.39693, 26.467424], rtol=1e-6)
  np.testing.assert_allclose(dw, [11.849764, 17.508034], rtol=1e-6)


def stack(mesh, recompute, depth=4, rate=0.0):
  """Dense layers with dropout, and one tensor that all of them read."""
  x = running.tensor(mesh, [B, C], X)
  shared = running.tensor(mesh, [C])
  state = (x, None, x * 2, None)
  for i in range(depth):

    def f(x, i=i):
      y = mtf.layers.dense(x, C, activation="tanh", name=f"layer_{i}")
      return mtf.dropout(mtf.sin(y + shared), True, rate=rate)

    state = reversible(*state, f, recompute)
  loss = mtf.reduce_sum(mtf.square(state[0] + 2 * state[2]))
  variables = [v.value for v in mesh.graph.all_variables]
  return loss, [x, shared, *variables]


@pytest.mark.parametrize("where", LAYOUTS)
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_gradients_are_the_same_whether_recomputed_or_kept(where, rate):
  def build(mesh, recompute):
    loss, xs = stack(mesh, recompute, rate=rate)
    return [loss, *mtf.gradients([loss], xs)]

  kept = run(lambda mesh: build(mesh, False))
  again = run(lambda mesh: build(mesh, True), where)
  assert len(kept) == 1 + 2 + 8
  for x, y in zip(again, kept, strict=True):
    np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-5)


def read_by_the_backward_pass(recompute, depth):
  """How many activations of the forward pass the gradients depend on."""
  mesh = running.new_mesh()
  loss, xs = stack(mesh, recompute, depth)
  forward = list(mesh.graph.operations)
  grads = mtf.gradients([loss], xs)
  needed, stack_ = set(), [g.operation for g in grads]
  while stack_:
    op = stack_.pop()
    if op not in needed:
      needed.add(op)
      stack_ += [x.operation for x in op.inputs]
  made = {y for op in forward for y in op.outputs if op.inputs}
  backward = [op for op in mesh.graph.operations if op not in set(forward)]
  return len({x for op in backward if op in needed for x in op.inputs} & made)


def test_nothing_inside_is_kept_however_deep_the_stack_is():
  assert read_by_the_backward_pass(True, 2) == read_by_the_backward_pass(
    True, 6
  )
  assert read_by_the_backward_pass(True, 6) <= 4
  assert read_by_the_backward_pass(False, 6) >= 6 * 3


def test_a_layer_whose_outputs_nobody_needs_has_no_gradient_to_pass_on():
  def build(mesh):
    x = running.tensor(mesh, [B, C], X)
    w = running.tensor(mesh, [C])
    state = reversible(x, None, x * 2, None, lambda x: mtf.sin(x * w))
    state = reversible(*state, lambda x: mtf.sin(x + w))
    # Of the last layer, only what it passed through.
    return mtf.gradients([state[0]], [x, w])

  dx, dw = run(build)
  np.testing.assert_allclose(
    dx, 1 + 2 * np.arange(6) * np.cos(2 * X * np.arange(6)), rtol=1e-4
  )
  wanted = (2 * X * np.cos(2 * X * np.arange(6))).sum(axis=0)
  np.testing.assert_allclose(dw, wanted, rtol=1e-4, atol=1e-5)


def test_a_function_that_ignores_its_argument_or_is_the_identity():
  def build(mesh):
    x = running.tensor(mesh, [B, C], X)
    w = running.tensor(mesh, [B, C])
    state = reversible(x, None, x, None, lambda x: w)
    state = reversible(*state, lambda x: x)
    return mtf.gradients([state[0], state[2]], [x, w])

  # y1 = x + w, then x + y1: the sum of both is 3x + 2w.
  dx, dw = run(build)
  np.testing.assert_allclose(dx, np.full([4, 6], 3.0))
  np.testing.assert_allclose(dw, np.full([4, 6], 2.0))


def test_a_reversible_layer_can_be_recomputed_as_a_whole():
  def build(mesh, recompute):
    x = running.tensor(mesh, [B, C], X)
    w = running.tensor(mesh, [C])

    def two_layers(x):
      state = (x, None, x, None)
      for fn in (mtf.tanh, mtf.sin):
        state = reversible(*state, lambda x, fn=fn: fn(x * w))
      return state[0] * state[2]

    y = mtf.recompute_grad(two_layers, [x]) if recompute else two_layers(x)
    return [y, *mtf.gradients([y], [x, w])]

  for x, y in zip(
    run(lambda mesh: build(mesh, True)),
    run(lambda mesh: build(mesh, False)),
    strict=True,
  ):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_a_function_that_changes_the_shape_is_named():
  mesh = running.new_mesh()
  x = running.tensor(mesh, [B, C], X)
  message = r"f made float32\[batch:4\] of float32\[batch:4 channels:6\]"
  with pytest.raises(mtf.ShapeError, match=message):
    reversible(x, None, x, None, lambda x: mtf.reduce_sum(x, reduced_dim=C))
