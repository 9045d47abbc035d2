"""Logits and loss against a Transformer in plain NumPy."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support import numpy_transformer, tiny_models

# Two packed sequences and padding; then one, whose first id is not scored.
TARGETS = np.array([[3, 4, 1, 7, 1, 0], [-5, 9, 10, 2, 3, 1]])
SEGMENTS = np.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1]])
POSITIONS = np.array([[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 5]])
INPUTS = np.array([[8, 1, 6, 5, 1, 0], [2, 3, 4, 5, 6, 1]])
INPUT_SEGMENTS = np.array([[1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 1, 1]])
INPUT_POSITIONS = np.array([[0, 1, 0, 1, 2, 0], [0, 1, 2, 3, 4, 5]])


def run(model, build):
  """Runs `build(mesh)`, first to make the variables, then with random ones."""
  program = mtf.Program()
  function = program.function(build)
  function.build()
  weights = tiny_models.randomize(program)
  logits, loss = function()
  reference = numpy_transformer.NumpyTransformer(
    weights,
    d_kv=tiny_models.D_KV,
    blocks=1,
    vocab_size=tiny_models.VOCAB_SIZE,
  )
  return logits.numpy(), loss.numpy(), reference


def check(logits, loss, wanted, smoothing, z_loss):
  real = SEGMENTS != 0
  size = tiny_models.VOCAB_SIZE
  np.testing.assert_allclose(
    logits[..., :size][real], np.stack(wanted)[real], rtol=1e-4, atol=1e-4
  )
  losses = [
    numpy_transformer.cross_entropy(x, t, smoothing, z_loss)
    for x, t in zip(wanted, TARGETS, strict=True)
  ]
  np.testing.assert_allclose(loss, np.sum(losses) / TARGETS.size, rtol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_a_language_model_is_what_the_papers_say(shared):
  model = tiny_models.language_model(
    shared_embedding_and_softmax_weights=shared,
    label_smoothing=0.1,
    z_loss=0.01,
  )

  def build(mesh):
    targets, segments, positions = (
      tiny_models.import_ids(mesh, x) for x in (TARGETS, SEGMENTS, POSITIONS)
    )
    return model.call_simple(
      None, targets, True, sequence_id=segments, position=positions
    )

  logits, loss, reference = run(model, build)
  wanted = [
    reference.decode("transformer", *row)
    for row in zip(TARGETS, SEGMENTS, POSITIONS, strict=True)
  ]
  check(logits, loss, wanted, 0.1, 0.01)


@pytest.mark.parametrize("gated", [False, True])
def test_an_encoder_decoder_is_what_the_papers_say(gated):
  feed_forward = {"activation": ["gelu", "linear"]} if gated else {}
  model = tiny_models.encoder_decoder(
    {"feed_forward": feed_forward},
    shared_embedding_and_softmax_weights=not gated,
    label_smoothing=0.1,
  )

  def build(mesh):
    ids = [INPUTS, TARGETS, INPUT_SEGMENTS, SEGMENTS]
    ids += [INPUT_POSITIONS, POSITIONS]
    x, y, x_segment, y_segment, x_position, y_position = (
      tiny_models.import_ids(mesh, i) for i in ids
    )
    return model.call_simple(
      x,
      y,
      True,
      encoder_sequence_id=x_segment,
      decoder_sequence_id=y_segment,
      encoder_position=x_position,
      decoder_position=y_position,
    )

  logits, loss, reference = run(model, build)
  wanted = []
  for i in range(len(TARGETS)):
    encoded = reference.encode(INPUTS[i], INPUT_SEGMENTS[i], INPUT_POSITIONS[i])
    wanted.append(
      reference.decode(
        "decoder",
        TARGETS[i],
        SEGMENTS[i],
        POSITIONS[i],
        encoded,
        INPUT_SEGMENTS[i],
      )
    )
  check(logits, loss, wanted, 0.1, 1e-4)


def test_padding_ids_of_the_vocabulary_never_win():
  model = tiny_models.language_model()
  program = mtf.Program()

  @program.function
  def predict(mesh):
    targets = tiny_models.import_ids(mesh, TARGETS)
    logits, _ = model.call_simple(None, targets, False, "eval")
    vocab = model.output_vocab_dim
    losses = mtf.layers.softmax_cross_entropy_with_logits(
      logits, mtf.constant(mesh, 11, targets.shape, "int32"), vocab
    )
    return logits, mtf.softmax(logits, vocab), losses

  predict.build()
  tiny_models.randomize(program)
  kernel = program.variables["transformer/logits/kernel"]
  kernel.assign(kernel.numpy() + 100 * (np.arange(12) == 11))
  logits, probabilities, losses = predict()
  assert logits.shape == (2, 6, 12)
  assert np.argmax(logits.numpy(), axis=-1).max() < 11
  np.testing.assert_array_equal(probabilities.numpy()[..., 11], 0.0)
  assert np.min(losses.numpy()) > 1e8
