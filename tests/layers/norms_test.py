"""Norms, embeddings and clipped gradients against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running

B = mtf.Dimension("batch", 4)
X = mtf.Dimension("x", 6)
VALUES = np.random.default_rng(0).normal(size=[4, 6]).astype(np.float32) + 1
LAYOUTS = [("", ""), ("a:2", "batch:a"), ("a:2", "x:a")]


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_layer_norm_has_mean_zero_and_variance_one(mesh, layout):
  def build(mesh):
    x = running.tensor(mesh, [B, X], VALUES)
    y = mtf.layers.layer_norm(x, X, name="n")
    assert [v.full_name for v in mesh.graph.all_variables] == [
      "n/layer_norm/layer_norm_scale",
      "n/layer_norm/layer_norm_bias",
    ]
    return y

  got = running.run(build, mesh, layout).value()
  centred = VALUES - VALUES.mean(axis=-1, keepdims=True)
  deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6)
  np.testing.assert_allclose(got, centred / deviation, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_rms_norm_divides_by_the_root_mean_square(mesh, layout):
  def build(mesh):
    x = running.tensor(mesh, [B, X], VALUES)
    scale = running.tensor(mesh, [X])
    return mtf.layers.rms_norm(x, scale, X, 1e-3)

  got = running.run(build, mesh, layout).value()
  rms = np.sqrt((VALUES**2).mean(axis=-1, keepdims=True) + 1e-3)
  np.testing.assert_allclose(got, VALUES / rms * np.arange(6), rtol=1e-5)


def test_statistics_of_bfloat16_are_taken_in_float32():
  # The mean square of 4096 ones is lost in bfloat16, which cannot count there.
  wide = mtf.Dimension("wide", 4096)

  def build(mesh):
    x = mtf.ones(mesh, [wide], tf.bfloat16)
    one = mtf.ones(mesh, [], tf.bfloat16)
    y = mtf.layers.rms_norm(x, one, wide, 0.0)
    assert y.dtype == tf.bfloat16
    return mtf.cast(y, tf.float32)

  np.testing.assert_array_equal(running.run(build).value(), 1.0)


@pytest.mark.parametrize("bound", [0.5, 100.0])
@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_a_clipped_gradient_has_a_bounded_root_mean_square(bound, mesh, layout):
  def build(mesh):
    x = running.tensor(mesh, [B, X], VALUES)
    y = mtf.layers.clip_activation_gradient(x, bound)
    dy = running.tensor(mesh, [B, X])
    return [y, *mtf.gradients([y], [x], [dy])]

  y, dx = running.run(build, mesh, layout).values
  np.testing.assert_array_equal(y, VALUES)
  dy = np.arange(24).reshape(4, 6)
  factor = min(1, bound / np.sqrt(np.mean(dy**2)))
  np.testing.assert_allclose(dx, dy * factor, rtol=1e-5)


def test_a_gradient_of_zero_stays_zero_and_no_bound_is_none():
  def build(mesh):
    x = running.tensor(mesh, [B, X], VALUES)
    assert mtf.layers.clip_activation_gradient(x) is x
    y = mtf.layers.clip_activation_gradient(x, 1.0)
    return mtf.gradients([y], [x], [mtf.zeros_like(x)])

  np.testing.assert_array_equal(running.run(build).value(), 0.0)


@pytest.mark.parametrize(
  ("mesh", "layout"), [("", ""), ("a:2;b:3", "batch:a;v:b")]
)
def test_an_embedding_reads_rows_of_its_table(mesh, layout):
  vocab = mtf.Dimension("v", 12)
  ids = np.array([3, 11, 3, 0])

  def build(mesh):
    i = running.tensor(mesh, [B], ids, np.int32)
    dtype = mtf.VariableDType()
    y = mtf.layers.embedding(i, vocab, X, dtype, "table")
    (table,) = mesh.graph.all_variables
    assert table.full_name == "table"
    return [y, table.value, *mtf.gradients([y], [table.value])]

  y, table, grad = running.run(build, mesh, layout).values
  np.testing.assert_array_equal(y, table[ids])
  counts = np.bincount(ids, minlength=12)
  np.testing.assert_array_equal(grad, np.tile(counts[:, None], [1, 6]))


def test_each_member_of_an_ensemble_has_a_table():
  vocab, members = mtf.Dimension("v", 12), mtf.Dimension("ensemble", 3)

  def build(mesh):
    return mtf.layers.embedding_weights(
      mesh,
      vocab,
      X,
      mtf.VariableDType(),
      ensemble_dim=members,
      initializer=mtf.initializers.Constant(2.0),
    )

  got = running.run(build).value()
  np.testing.assert_array_equal(got, np.full([3, 12, 6], 2.0))
