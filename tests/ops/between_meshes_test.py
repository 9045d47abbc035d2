"""Tensors go from one mesh to another, and their gradients come back."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import PLACEMENT, VIRTUAL, setting

B, IO, H = (mtf.Dimension(n, s) for n, s in [("b", 4), ("io", 6), ("h", 8)])

PLACES = [
  [("x:2", "b:x", VIRTUAL), ("y:4", "h:y", VIRTUAL)],
  [("x:2;y:2", "b:x;h:y", VIRTUAL), ("", "", PLACEMENT)],
  [("x:2", "b:x", PLACEMENT), ("x:3", "io:x", PLACEMENT)],
]


def two_stages(places):
  """A layer on each of two meshes; its values, gradients, and the lowering."""
  graph = mtf.Graph()
  front, back = mtf.Mesh(graph, "front"), mtf.Mesh(graph, "back")
  rng = np.random.default_rng(0)
  x, w, v = (
    rng.normal(size=[d.size for d in dims]) for dims in ([B, IO], [IO, H], [H])
  )
  a = mtf.import_tf_tensor(front, x, [B, IO])
  kernel = mtf.import_tf_tensor(front, w, [IO, H])
  hidden = mtf.copy_to_mesh(mtf.tanh(mtf.einsum([a, kernel], [B, H])), back)
  last = mtf.import_tf_tensor(back, v, [H])
  loss = mtf.reduce_sum(mtf.square(mtf.einsum([hidden, last], [B])))
  grads = mtf.gradients([loss], [a, kernel, last])
  assert [g.mesh for g in grads] == [front, front, back]
  impls = [setting(*place).impl for place in places]
  lowering = mtf.Lowering(graph, dict(zip((front, back), impls, strict=True)))
  got = [lowering.export_to_tf_tensor(t).numpy() for t in (loss, *grads)]
  return (x, w, v), got


@pytest.mark.parametrize("places", PLACES)
def test_a_model_may_have_its_layers_on_two_meshes(places):
  arrays, (loss, *grads) = two_stages(places)
  x, w, v = (tf.constant(a) for a in arrays)
  with tf.GradientTape() as tape:
    tape.watch([x, w, v])
    y = tf.linalg.matvec(tf.tanh(x @ w), v)
    want = tf.reduce_sum(y**2)
  np.testing.assert_allclose(loss, want, rtol=1e-10)
  for got, slope in zip(grads, tape.gradient(want, [x, w, v]), strict=True):
    np.testing.assert_allclose(got, slope, rtol=1e-9)


def test_tensors_of_two_meshes_do_not_meet_unless_one_is_copied():
  graph = mtf.Graph()
  one, other = mtf.Mesh(graph, "one"), mtf.Mesh(graph, "other")
  x, y = mtf.ones(one, [B]), mtf.ones(other, [B])
  before = list(graph.operations)
  for misuse in (
    lambda: x + y,
    lambda: mtf.einsum([x, y]),
    lambda: mtf.concat([x, y], "b"),
  ):
    with pytest.raises(
      ValueError,
      match=r"is on Mesh\(other\), but .* Mesh\(one\); .* mtf.copy_to_mesh",
    ):
      misuse()
  assert graph.operations == before
  assert (x + mtf.copy_to_mesh(y, one)).mesh is one
  assert mtf.copy_to_mesh(x, one) is x
