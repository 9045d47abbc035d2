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


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_gradients_of_layer_norm_are_those_of_the_formula(mesh, layout):
  weights = np.random.default_rng(1).normal(size=[4, 6]).astype(np.float32)

  def build(mesh):
    x = running.tensor(mesh, [B, X], VALUES)
    y = mtf.layers.layer_norm(x, X)
    dy = running.tensor(mesh, [B, X], weights)
    variables = [v.value for v in mesh.graph.all_variables]
    return mtf.gradients([y], [x, *variables], [dy])

  dx, dscale, dbias = running.run(build, mesh, layout).values
  with tf.GradientTape() as tape:
    x = tf.constant(VALUES)
    tape.watch(x)
    mean, variance = tf.nn.moments(x, [1], keepdims=True)
    y = (x - mean) * tf.math.rsqrt(variance + 1e-6)
  wanted = tape.gradient(y, x, tf.constant(weights))
  np.testing.assert_allclose(dx, wanted, rtol=1e-3, atol=1e-5)
  np.testing.assert_allclose(dscale, (weights * y).numpy().sum(0), rtol=1e-4)
  np.testing.assert_allclose(dbias, weights.sum(0), rtol=1e-4)


def test_layer_norm_of_bfloat16_counts_in_float32():
  # 512 numbers, half of them 1 and half 3: bfloat16 loses their mean, 2.
  wide = mtf.Dimension("wide", 512)
  x = np.tile([1.0, 3.0], 256)

  def build(mesh):
    x_ = mtf.cast(running.tensor(mesh, [wide], x), tf.bfloat16)
    y = mtf.layers.layer_norm(x_, wide)
    assert y.dtype == tf.bfloat16
    return mtf.cast(y, tf.float32)

  np.testing.assert_array_equal(running.run(build).value(), x - 2)


def test_a_narrow_gradient_is_measured_in_float32():
  # Its squares add up to 512 in float32, and to 256 in bfloat16.
  wide = mtf.Dimension("wide", 512)

  def build(mesh):
    x = mtf.ones(mesh, [wide], tf.bfloat16)
    y = mtf.layers.clip_activation_gradient(x, 0.5)
    return [mtf.cast(dx, tf.float32) for dx in mtf.gradients([y], [x])]

  np.testing.assert_array_equal(running.run(build).value(), np.full(512, 0.5))


def summaries(folder, build):
  """Names and values of what `build(mesh)` sends to TensorBoard."""
  writer = tf.summary.create_file_writer(str(folder))
  program = mtf.Program("a:2", "batch:a")

  @program.function
  def step(mesh):
    return build(mesh)

  with writer.as_default(step=7):
    step()
  writer.close()
  (file,) = folder.glob("events*")
  return {
    v.tag: float(tf.make_ndarray(v.tensor))
    for event in tf.compat.v1.train.summary_iterator(str(file))
    for v in event.summary.value
  }


def test_the_size_of_an_activation_goes_to_tensorboard(tmp_path):
  def build(mesh):
    x = running.tensor(mesh, [B, X], VALUES)
    mtf.layers.summary_for_clip_activation_gradient(x, "hidden", [B])
    mtf.layers.summary_for_clip_activation_gradient(x * 2)
    return x

  found = summaries(tmp_path, build)
  rms = np.sqrt(np.mean(VALUES**2))
  largest = np.sqrt(np.mean(VALUES**2, axis=1)).max()
  assert len(found) == 3
  np.testing.assert_allclose(found.pop("hidden_rms"), rms, rtol=1e-5)
  np.testing.assert_allclose(found.pop("hidden_max_rms"), largest, rtol=1e-5)
  (name,) = found
  assert name.endswith("_rms")
  np.testing.assert_allclose(found[name], 2 * rms, rtol=1e-5)


def test_the_size_of_a_gradient_that_is_clipped_goes_to_tensorboard(tmp_path):
  def build(mesh):
    x = running.tensor(mesh, [B, X], VALUES)
    y = mtf.layers.clip_activation_gradient(x, 0.5)
    return mtf.gradients([y], [x], [running.tensor(mesh, [B, X])])

  (value,) = summaries(tmp_path, build).values()
  rms = np.sqrt(np.mean(np.arange(24.0) ** 2))
  np.testing.assert_allclose(value, rms, rtol=1e-5)


def test_a_clipped_gradient_in_micro_batches_is_clipped_in_each():
  def build(mesh):
    x = running.tensor(mesh, [B, X], VALUES)
    w = mtf.get_variable(mesh, "w", [X], initializer=1.0)

    def model(features):
      y = mtf.layers.clip_activation_gradient(features["x"] * w, 0.5)
      return {"loss": mtf.reduce_sum(y)}

    grads, _ = mtf.serialize_training_step({"x": x}, model, B, 2)
    return grads

  # The gradient of each activation is 1, and is scaled down to 0.5.
  np.testing.assert_allclose(
    running.run(build).value(), 0.5 * VALUES.sum(axis=0), rtol=1e-5
  )
