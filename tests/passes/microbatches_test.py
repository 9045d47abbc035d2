"""Micro-batches: the same gradients and outputs as in one go."""

import numpy as np
import pytest

import mesh_tf2 as mtf
from mesh_tf2.passes.microbatches import serialize_training_step
from mesh_tf2.spmd.placement import PlacementMeshImpl
from mesh_tf2.spmd.virtual import VirtualMeshImpl

BATCH, IN, OUT = (
  mtf.Dimension("batch", 8),
  mtf.Dimension("in", 4),
  mtf.Dimension("out", 6),
)


def run(impl, num_splits):
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  x = np.random.default_rng(0).normal(size=[8, 4]).astype(np.float32)
  features = {"x": mtf.import_tf_tensor(mesh, x, [BATCH, IN])}

  def model(features):
    x = features["x"]
    w = mtf.get_variable(mesh, "w", [IN, OUT])
    y = mtf.tanh(mtf.einsum([x, w], [x.shape[0], OUT]))
    return {"loss": mtf.reduce_sum(mtf.square(y)), "y": y}

  grads, outputs = serialize_training_step(features, model, BATCH, num_splits)
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  values = [*grads, outputs["loss"], outputs["y"]]
  got = [lowering.export_to_tf_tensor(t).numpy() for t in values]
  return got, lowering


@pytest.mark.parametrize("num_splits", [2, 4])
@pytest.mark.parametrize("rules", ["", "batch:x;out:y"])
def test_micro_batches_change_nothing_but_the_memory(num_splits, rules):
  want, _ = run(VirtualMeshImpl("", ""), 1)
  for impl in (
    VirtualMeshImpl("x:2;y:2", rules),
    PlacementMeshImpl("x:2;y:2", rules, [""] * 4),
  ):
    got, _ = run(impl, num_splits)
    for g, w in zip(got, want, strict=True):
      np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-6)


def test_gradients_are_reduced_over_the_mesh_once():
  impl = PlacementMeshImpl("x:2", "batch:x", [""] * 2)
  _, lowering = run(impl, 4)
  kinds = [e.kind for _, e in lowering.collectives]
  assert kinds.count("allreduce") == 2  # the gradient of w, and the loss


def test_a_batch_that_does_not_divide_is_an_error():
  with pytest.raises(ValueError, match="does not divide into 3 micro-batches"):
    run(VirtualMeshImpl("", ""), 3)


def test_a_variable_that_the_loss_does_not_see_is_named():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  x = mtf.ones(mesh, [BATCH])

  def model(features):
    mtf.get_variable(mesh, "lonely", [IN])
    return {"loss": mtf.reduce_sum(features["x"])}

  with pytest.raises(ValueError, match="trainable variables lonely"):
    serialize_training_step({"x": x}, model, BATCH, 2)
