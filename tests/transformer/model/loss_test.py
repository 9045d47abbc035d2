"""Which positions count, and by what their losses are divided."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import numpy_transformer, running, tiny_models

TARGETS = np.array([[3, 4, 1, 7, 1, 0], [-5, 9, 1, 2, 3, 1]])


def logits_and_loss(model, mode="train", mesh=None, **kwargs):
  targets = tiny_models.import_ids(mesh, TARGETS)
  return model.call_simple(None, targets, True, mode, **kwargs)


def run(model, mode="train", **kwargs):
  def build(mesh):
    return logits_and_loss(model, mode, mesh, **kwargs)

  logits, loss = running.run(build).values
  return logits[..., : tiny_models.VOCAB_SIZE], loss


def total(logits, scored, **kwargs):
  """The sum of the losses of the positions where `scored`."""
  losses = [
    numpy_transformer.cross_entropy(x.astype(np.float64), t, **kwargs)
    for x, t in zip(logits, TARGETS, strict=True)
  ]
  return np.sum(np.array(losses) * scored)


def test_padding_counts_in_the_denominator_and_negative_ids_are_not_scored():
  model = tiny_models.language_model(label_smoothing=0.2, z_loss=0.1)
  logits, loss = run(model)
  wanted = total(logits, TARGETS > 0, smoothing=0.2, z_loss=0.1)
  np.testing.assert_allclose(loss, wanted / 12, rtol=1e-5)


def test_the_z_loss_is_for_training_only():
  logits, loss = run(tiny_models.language_model(z_loss=0.1), "eval")
  wanted = total(logits, TARGETS > 0)
  np.testing.assert_allclose(loss, wanted / 12, rtol=1e-5)


def test_a_denominator_can_be_given():
  model = tiny_models.language_model(z_loss=0, loss_denominator=5)
  logits, loss = run(model)
  np.testing.assert_allclose(loss, total(logits, TARGETS > 0) / 5, rtol=1e-5)


def test_losses_of_microbatches_add_up():
  model = tiny_models.language_model(z_loss=0)
  logits, loss = run(model, num_microbatches=4)
  wanted = total(logits, TARGETS > 0) / (12 * 4)
  np.testing.assert_allclose(loss, wanted, rtol=1e-5)


def test_a_delimited_model_may_score_targets_only():
  model = tiny_models.language_model(loss_on_targets_only=True, z_loss=0)
  logits, loss = run(model)
  scored = np.array([[0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1]])
  np.testing.assert_allclose(loss, total(logits, scored) / 12, rtol=1e-5)


def test_a_function_may_take_the_place_of_the_loss():
  def half_of_all_logits(model, context, logits, targets, vocab_dim):
    assert vocab_dim == model.output_vocab_dim
    real = mtf.maximum(logits, -100.0)
    return mtf.reduce_sum(real) * 0.5

  model = tiny_models.language_model(
    loss_fn=half_of_all_logits, vocab_divisor=11
  )
  logits, loss = run(model)
  np.testing.assert_allclose(loss, logits.sum() / 2, rtol=1e-4)


def test_without_a_loss_there_are_logits_only():
  model = tiny_models.language_model()

  def build(mesh):
    targets = tiny_models.import_ids(mesh, TARGETS)
    logits, loss = model.call_simple(None, targets, False)
    assert loss is None
    return logits

  assert running.run(build).value().shape == (2, 6, 12)


def test_activations_may_be_bfloat16_and_losses_stay_float32():
  stack = {"dropout": 0.1, "attention": {"relative_attention_type": "bias"}}
  dtype = mtf.VariableDType(tf.float32, tf.float32, tf.bfloat16)
  model = tiny_models.encoder_decoder(stack, label_smoothing=0.1)

  def build(dtype, mesh):
    ids = tiny_models.import_ids(mesh, np.abs(TARGETS))
    logits, loss = model.call_simple(
      ids, ids, True, "train", variable_dtype=dtype
    )
    assert logits.dtype == loss.dtype == tf.float32
    variables = mesh.graph.trainable_variables
    assert all(v.slice_dtype == tf.float32 for v in variables)
    grads = mtf.gradients([loss], [v.value for v in variables])
    assert {g.dtype for g in grads} == {dtype.activation_dtype}
    return [loss, *(mtf.cast(g, tf.float32) for g in grads)]

  narrow = running.run(functools.partial(build, dtype)).values
  wide = running.run(functools.partial(build, mtf.VariableDType())).values
  np.testing.assert_allclose(narrow[0], wide[0], rtol=0.02)
  for x, y in zip(narrow[1:], wide[1:], strict=True):
    assert np.abs(x - y).max() < 0.1 * np.abs(y).max() + 1e-3


@pytest.mark.parametrize("packed", [False, True])
def test_sequences_longer_than_the_table_of_positions_are_found(packed):
  model = tiny_models.language_model(max_length=4)
  positions = np.array([[0, 1, 2, 0, 1, 0], [0, 1, 2, 0, 1, 2]])

  def build(mesh):
    targets = tiny_models.import_ids(mesh, TARGETS)
    position = tiny_models.import_ids(mesh, positions) if packed else None
    return model.call_simple(None, targets, True, position=position)[1]

  message = "have length 6, the table of positions 4: set .*max_length to 6"
  if packed:
    with pytest.warns(UserWarning, match=message):
      running.run(build)
  else:
    with pytest.raises(ValueError, match=message):
      running.run(build)
