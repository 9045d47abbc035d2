"""Cross entropy against NumPy, on one processor and with a split vocabulary."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running
from tests.support.meshes import PLACEMENT, VIRTUAL

B = mtf.Dimension("batch", 4)
V = mtf.Dimension("vocab", 6)
REAL = 5
TARGETS = np.array([0, 2, 4, 1], np.int32)
LOGITS = np.random.default_rng(0).normal(size=[4, 6]).astype(np.float32) * 3
LAYOUTS = [
  (VIRTUAL, "", ""),
  (VIRTUAL, "x:2;y:3", "batch:x;vocab:y"),
  (PLACEMENT, "x:2", "vocab:x"),
]


def log_probabilities(logits):
  wide = logits.astype(np.float64)
  return wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))


def soft_targets(smoothing, size):
  soft = np.zeros([4, 6])
  soft[:, :size] = smoothing / size
  soft[np.arange(4), TARGETS] += 1 - smoothing
  return soft


def run(where, logits=LOGITS, targets=TARGETS, **kwargs):
  """The loss of each position, and the gradient of their weighted sum."""
  kind, mesh, layout = where

  def build(mesh):
    x = running.tensor(mesh, [B, V], logits, logits.dtype)
    dims = [B, V] if targets.ndim == 2 else [B]
    y = running.tensor(mesh, dims, targets, targets.dtype)
    loss = mtf.layers.softmax_cross_entropy_with_logits(x, y, V, **kwargs)
    weights = running.tensor(mesh, [B], [1, 2, 3, 4], loss.dtype.name)
    return [loss, *mtf.gradients([loss], [x], [weights])]

  return running.run(build, mesh, layout, kind).values


@pytest.mark.parametrize("where", LAYOUTS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("z_loss", [0.0, 0.01])
def test_hard_targets_lose_what_the_formula_says(where, smoothing, z_loss):
  loss, grad = run(where, label_smoothing=smoothing, z_loss=z_loss)
  log_p, soft = log_probabilities(LOGITS), soft_targets(smoothing, 6)
  log_z = (LOGITS - log_p)[:, 0]
  wanted = -np.sum(soft * log_p, axis=-1) + z_loss * log_z**2
  np.testing.assert_allclose(loss, wanted, rtol=1e-5)
  p = np.exp(log_p)
  slope = p - soft + 2 * z_loss * log_z[:, None] * p
  np.testing.assert_allclose(
    grad, slope * np.array([[1], [2], [3], [4]]), rtol=1e-4, atol=1e-6
  )


@pytest.mark.parametrize("where", LAYOUTS)
def test_soft_targets_lose_what_the_formula_says(where):
  soft = soft_targets(0.3, 6).astype(np.float32)
  loss, grad = run(where, targets=soft)
  log_p = log_probabilities(LOGITS)
  np.testing.assert_allclose(loss, -np.sum(soft * log_p, axis=-1), rtol=1e-5)
  np.testing.assert_allclose(
    grad,
    (np.exp(log_p) - soft) * np.array([[1], [2], [3], [4]]),
    rtol=1e-4,
    atol=1e-6,
  )


@pytest.mark.parametrize("where", LAYOUTS)
def test_smoothing_gives_padding_ids_no_weight(where):
  masked = LOGITS.copy()
  masked[:, REAL:] = -1e9
  loss, grad = run(where, masked, label_smoothing=0.1, vocab_size=REAL)
  log_p = log_probabilities(LOGITS[:, :REAL])
  soft = soft_targets(0.1, REAL)[:, :REAL]
  np.testing.assert_allclose(soft.sum(axis=-1), 1.0)
  np.testing.assert_allclose(loss, -np.sum(soft * log_p, axis=-1), rtol=1e-5)
  np.testing.assert_array_equal(grad[:, REAL:], 0.0)


def test_bfloat16_logits_are_scored_in_float32():
  logits = tf.cast(LOGITS, tf.bfloat16)

  def build(mesh):
    x = mtf.import_tf_tensor(mesh, logits, [B, V])
    y = running.tensor(mesh, [B], TARGETS, np.int32)
    return mtf.layers.softmax_cross_entropy_with_logits(x, y, V)

  loss = running.run(build).value()
  assert loss.dtype == np.float32
  log_p = log_probabilities(tf.cast(logits, tf.float32).numpy())
  np.testing.assert_allclose(loss, -log_p[np.arange(4), TARGETS], rtol=1e-5)


def test_negative_targets_do_not_break_the_loss_of_others():
  targets = np.array([0, -2, 4, -1], np.int32)
  loss, grad = run(LAYOUTS[0], targets=targets)
  log_p = log_probabilities(LOGITS)
  np.testing.assert_allclose(loss[[0, 2]], [-log_p[0, 0], -log_p[2, 4]], 1e-5)
  assert np.all(np.isfinite(loss))
  assert np.all(np.isfinite(grad))


def test_targets_that_do_not_fit_are_named():
  def build(mesh):
    x = running.tensor(mesh, [B, V])
    y = running.tensor(mesh, [V], dtype=np.int32)
    return mtf.layers.softmax_cross_entropy_with_logits(x, y, V)

  message = r"logits \[batch:4 vocab:6\].*shape \[vocab:6\], wanted \[batch:4\]"
  with pytest.raises(mtf.ShapeError, match=message):
    running.run(build)
  with pytest.raises(ValueError, match="label_smoothing is for integer"):
    soft = soft_targets(0.0, 6).astype(np.float32)
    run(LAYOUTS[0], targets=soft, label_smoothing=0.1)


def test_sigmoid_cross_entropy_is_stable_for_large_logits():
  logits = np.array([-1000, -2.0, 0.5, 1000], np.float32)
  targets = np.array([1.0, 0.25, 1.0, 1.0], np.float32)

  def build(mesh):
    x = running.tensor(mesh, [B], logits)
    y = running.tensor(mesh, [B], targets)
    return mtf.layers.sigmoid_cross_entropy_with_logits(x, y)

  got = running.run(build).value()
  middle = logits[1:3].astype(np.float64)
  p = 1 / (1 + np.exp(-middle))
  t = targets[1:3]
  want = -t * np.log(p) - (1 - t) * np.log(1 - p)
  np.testing.assert_allclose(got, [1000, *want, 0], rtol=1e-5)


def test_sigmoid_cross_entropy_wants_equal_shapes():
  def build(mesh):
    x, y = running.tensor(mesh, [B]), running.tensor(mesh, [V])
    return mtf.layers.sigmoid_cross_entropy_with_logits(x, y)

  with pytest.raises(mtf.ShapeError, match=r"targets have shape \[vocab:6\]"):
    running.run(build)


def test_weights_are_one_where_there_is_an_id():
  def build(mesh):
    ids = running.tensor(mesh, [B], [3, 0, -1, 0], np.int32)
    return mtf.layers.weights_nonzero(ids)

  got = running.run(build).value()
  assert got.dtype == np.float32
  np.testing.assert_array_equal(got, [1, 0, 1, 0])


@pytest.mark.parametrize("where", LAYOUTS)
def test_a_z_loss_is_added_to_soft_targets_too(where):
  soft = soft_targets(0.3, 6).astype(np.float32)
  plain, _ = run(where, targets=soft)
  loss, _ = run(where, targets=soft, z_loss=0.01)
  log_z = (LOGITS - log_probabilities(LOGITS))[:, 0]
  np.testing.assert_allclose(loss - plain, 0.01 * log_z**2, rtol=1e-3)


def test_many_bfloat16_logits_are_added_up_in_float32():
  # bfloat16 cannot count to 512.
  many = mtf.Dimension("vocab", 512)

  def build(mesh):
    x = mtf.ones(mesh, [B, many], tf.bfloat16)
    hard = mtf.ones(mesh, [B], tf.int32)
    soft = mtf.ones(mesh, [B, many], tf.bfloat16) / 512
    bits = mtf.zeros(mesh, [B, many], tf.bfloat16)
    loss = mtf.layers.softmax_cross_entropy_with_logits
    return [
      loss(x, hard, many),
      loss(x, soft, many),
      loss(x, hard, many, z_loss=1.0),
      mtf.reduce_sum(
        mtf.layers.sigmoid_cross_entropy_with_logits(bits, bits),
        reduced_dim=many,
      ),
    ]

  log = np.log(512)
  wanted = [log, log, log + (1 + log) ** 2, 512 * np.log(2)]
  for got, want in zip(running.run(build).values, wanted, strict=True):
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.full([4], want), rtol=1e-5)


@pytest.mark.parametrize(("_", "mesh", "layout"), LAYOUTS[:2])
def test_gradients_of_sigmoid_cross_entropy_are_p_minus_the_target(
  _, mesh, layout
):
  def build(mesh):
    x = running.tensor(mesh, [B, V], LOGITS)
    y = running.tensor(mesh, [B, V], soft_targets(0.1, 6))
    loss = mtf.layers.sigmoid_cross_entropy_with_logits(x, y)
    return mtf.gradients([loss], [x])

  got = running.run(build, mesh, layout).value()
  p = 1 / (1 + np.exp(-LOGITS.astype(np.float64)))
  np.testing.assert_allclose(
    got, p - soft_targets(0.1, 6), rtol=1e-4, atol=1e-6
  )
