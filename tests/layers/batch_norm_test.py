"""Batch normalisation against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running
from tests.support.meshes import PLACEMENT, VIRTUAL

B = mtf.Dimension("batch", 4)
W = mtf.Dimension("w", 2)
C = mtf.Dimension("c", 6)
RNG = np.random.default_rng(0)
X = (RNG.normal(size=[4, 2, 6]) * 3 + 5).astype(np.float32)
DY = RNG.normal(size=[4, 2, 6]).astype(np.float32)
ONE = (VIRTUAL, "", "")
LAYOUTS = [ONE, (VIRTUAL, "a:2;b:2", "batch:a;w:b")]
LAYOUTS += [(PLACEMENT, "a:2", "c:a")]


def run(build, where=ONE):
  kind, mesh, layout = where
  return running.run(build, mesh, layout, kind).values


def normal(x, axes, epsilon=1e-9):
  mean = x.mean(axis=axes, keepdims=True)
  variance = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
  return (x - mean) / np.sqrt(variance + epsilon)


@pytest.mark.parametrize("where", LAYOUTS)
def test_in_training_the_statistics_are_those_of_the_whole_batch(where):
  def build(mesh):
    x = running.tensor(mesh, [B, W, C], X)
    y, updates = mtf.layers.batch_norm(x, True, 0.9, name="n")
    assert len(updates) == 2
    assert {
      v.full_name: (str(v.shape), v.trainable) for v in mesh.graph.all_variables
    } == {
      "n/batch_norm_scale": ("c:6", True),
      "n/batch_norm_bias": ("c:6", True),
      "n/bn_moving_mean": ("c:6", False),
      "n/bn_moving_variance": ("c:6", False),
    }
    return y

  (y,) = run(build, where)
  np.testing.assert_allclose(y, normal(X, (0, 1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", LAYOUTS)
def test_gradients_flow_through_the_statistics(where):
  def build(mesh):
    x = running.tensor(mesh, [B, W, C], X)
    y, _ = mtf.layers.batch_norm(x, True, 0.9)
    trained = [v.value for v in mesh.graph.trainable_variables]
    dy = running.tensor(mesh, [B, W, C], DY)
    return mtf.gradients([y], [x, *trained], [dy])

  dx, dscale, dbias = run(build, where)
  with tf.GradientTape() as tape:
    x = tf.constant(X)
    tape.watch(x)
    mean, variance = tf.nn.moments(x, [0, 1])
    y = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-9)
  wanted = tape.gradient(y, x, tf.constant(DY))
  np.testing.assert_allclose(dx, wanted, rtol=1e-3, atol=1e-5)
  np.testing.assert_allclose(
    dscale, (DY * normal(X, (0, 1))).sum(axis=(0, 1)), rtol=1e-4, atol=1e-5
  )
  np.testing.assert_allclose(dbias, DY.sum(axis=(0, 1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["", "batch:a"])
def test_moving_statistics_begin_at_zero_and_one_and_follow_by_themselves(
  layout,
):
  program = mtf.Program("a:2" if layout else "", layout)

  @program.function
  def train(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [B, W, C])
    return mtf.layers.batch_norm(x, True, 0.75, name="n")[0]

  @program.function
  def evaluate(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [B, W, C])
    y, updates = mtf.layers.batch_norm(x, False, 0.75, name="n")
    assert updates == []
    return y

  np.testing.assert_allclose(evaluate(X), X, rtol=1e-5)
  mean, variance = np.zeros(6), np.ones(6)
  for scale in (1, 2):
    train(scale * X)
    mean = 0.75 * mean + 0.25 * scale * X.mean(axis=(0, 1))
    variance = 0.75 * variance + 0.25 * scale**2 * X.var(axis=(0, 1))
  found = program.variables
  np.testing.assert_allclose(found["n/bn_moving_mean"].numpy(), mean, rtol=1e-5)
  np.testing.assert_allclose(
    found["n/bn_moving_variance"].numpy(), variance, rtol=1e-4
  )
  np.testing.assert_allclose(
    evaluate(X), (X - mean) / np.sqrt(variance), rtol=1e-3, atol=1e-4
  )
  assert program.step.numpy() == 2


def test_the_dimensions_to_normalise_over_can_be_chosen():
  def build(mesh):
    x = running.tensor(mesh, [B, W, C], X)
    y, _ = mtf.layers.batch_norm(
      x, True, 0.9, epsilon=0.5, dims_idx_start=1, dims_idx_end=2
    )
    assert mesh.graph.all_variables[0].shape == mtf.Shape([B, C])
    assert (
      mesh.graph.all_variables[0].full_name == "batch_norm/batch_norm_scale"
    )
    return y

  np.testing.assert_allclose(
    run(build)[0], normal(X, 1, 0.5), rtol=1e-4, atol=1e-5
  )


def test_a_scale_may_begin_at_zero():
  def build(mesh):
    x = running.tensor(mesh, [B, W, C], X)
    return mtf.layers.batch_norm(x, True, 0.9, init_zero=True)[0]

  np.testing.assert_array_equal(run(build)[0], np.zeros_like(X))


def test_statistics_of_bfloat16_are_taken_in_float32():
  # bfloat16 cannot count to 512, nor tell the squares of 1 and 3 from their
  # mean after adding up so many.
  many, one = mtf.Dimension("many", 512), mtf.Dimension("c", 1)
  x = np.tile([[1.0], [3.0]], [256, 1])

  def build(mesh):
    x_ = mtf.cast(running.tensor(mesh, [many, one], x), tf.bfloat16)
    y, _ = mtf.layers.batch_norm(x_, True, 0.9)
    assert y.dtype == tf.bfloat16
    return mtf.cast(y, tf.float32)

  np.testing.assert_array_equal(run(build)[0], x - 2)


def test_a_batch_norm_that_is_recomputed_moves_its_statistics_once():
  program = mtf.Program()

  @program.function
  def train(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [B, W, C])
    y = mtf.recompute_grad(
      lambda x: mtf.layers.batch_norm(x, True, 0.75, name="n")[0], [x]
    )
    return [y, *mtf.gradients([y], [x])]

  y, _ = train(X)
  np.testing.assert_allclose(y, normal(X, (0, 1)), rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(
    program.variables["n/bn_moving_mean"].numpy(),
    0.25 * X.mean(axis=(0, 1)),
    rtol=1e-5,
  )
