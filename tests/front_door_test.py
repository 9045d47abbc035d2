"""The original's front door: Graph, Mesh, Lowering, without a Program."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

BATCH, IN = mtf.Dimension("batch", 4), mtf.Dimension("in", 3)


def update(impl, x):
  """One step of gradient descent, as a program for the original writes it."""
  graph = mtf.Graph()
  mesh = mtf.Mesh(graph, "my_mesh")
  with tf.compat.v1.variable_scope("model"):
    w = mtf.get_variable(mesh, "w", [IN], initializer=tf.ones_initializer())
  features = mtf.import_tf_tensor(mesh, x, mtf.Shape([BATCH, IN]))
  loss = mtf.reduce_mean(mtf.square(mtf.einsum([features, w], [BATCH])))
  (grad,) = mtf.gradients([loss], [w])
  op = mtf.assign_sub(w, grad * 0.1)
  lowering = mtf.Lowering(graph, {mesh: impl})
  before = lowering.export_to_tf_tensor(loss)
  lowering.copy_masters_to_slices()
  lowering.lowered_operation(op)
  return before


def expected(x, steps):
  w, losses = np.ones(3), []
  for _ in range(steps):
    y = x @ w
    losses.append(np.mean(y**2))
    w = w - 0.1 * 2 * x.T @ y / len(y)
  return losses, w


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
  "new_impl",
  [
    lambda: mtf.placement_mesh_impl.PlacementMeshImpl(
      "all:2", "batch:all", ["", ""]
    ),
    lambda: mtf.virtual_mesh_impl.VirtualMeshImpl("all:2", "batch:all"),
  ],
)
def test_variables_live_on_from_one_lowering_to_the_next(new_impl, traced):
  x = np.random.default_rng(0).normal(size=[4, 3]).astype(np.float32)
  impl = new_impl()

  def step(x):
    return update(impl, x)

  if traced:
    step = tf.function(step, autograph=False)
  losses = [float(step(x)) for _ in range(3)]
  want, w = expected(x, 3)
  np.testing.assert_allclose(losses, want, rtol=1e-5)
  assert list(impl.variable_store) == ["model/w"]
  value = impl.variable_store["model/w"].read()
  got = impl.export_tensor(value, mtf.Shape([IN]))
  np.testing.assert_allclose(got, w, rtol=1e-5)


def test_an_assignment_that_is_not_fetched_is_not_carried_out():
  impl = mtf.virtual_mesh_impl.VirtualMeshImpl("", "")
  for _ in range(2):
    graph = mtf.Graph()
    mesh = mtf.Mesh(graph, "mesh")
    w = mtf.get_variable(mesh, "w", [IN], initializer=1.0)
    mtf.assign_add(w, w)
    lowering = mtf.Lowering(graph, {mesh: impl})
    np.testing.assert_array_equal(lowering.export_to_tf_tensor(w), 1)


def test_a_users_own_operation_takes_part():
  class Negate(mtf.Operation):
    def __init__(self, x):
      super().__init__([x], name="negate")
      self._outputs = [mtf.Tensor(self, x.shape, x.dtype)]

    def gradient(self, grad_ys):
      return [Negate(grad_ys[0]).outputs[0]]

    def lower(self, lowering):
      impl = lowering.mesh_impl(self)
      x = lowering.slices(self.inputs[0])
      lowering.set_tensor_lowering(
        self.outputs[0], impl.slicewise(tf.negative, x)
      )

  graph = mtf.Graph()
  mesh = mtf.Mesh(graph, "mesh")
  x = mtf.import_tf_tensor(mesh, np.ones([4, 3], np.float32), [BATCH, IN])
  y = Negate(x).outputs[0]
  (dx,) = mtf.gradients([y], [x])
  impl = mtf.virtual_mesh_impl.VirtualMeshImpl("all:2", "batch:all")
  lowering = mtf.Lowering(graph, {mesh: impl})
  for t in (y, dx):
    np.testing.assert_array_equal(lowering.export_to_tf_tensor(t), -1)


@pytest.mark.parametrize("traced", [False, True])
def test_every_run_draws_other_numbers(traced):
  impl = mtf.virtual_mesh_impl.VirtualMeshImpl("all:2", "batch:all")

  def draw():
    graph = mtf.Graph()
    mesh = mtf.Mesh(graph, "mesh")
    x = mtf.dropout(mtf.ones(mesh, [("batch", 64)]), True, 0.5)
    return mtf.Lowering(graph, {mesh: impl}).export_to_tf_tensor(x)

  if traced:
    draw = tf.function(draw, autograph=False)
  first, second = draw().numpy(), draw().numpy()
  assert set(first) == set(second) == {0.0, 2.0}
  assert (first != second).any()
