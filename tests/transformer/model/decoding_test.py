"""Decoding agrees with running the model on whole sequences."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.layers import sublayers
from mesh_tf2.transformer.layers.enc_dec_attention import EncDecAttention
from mesh_tf2.transformer.layers.feed_forward import DenseReluDense
from mesh_tf2.transformer.layers.self_attention import SelfAttention
from mesh_tf2.transformer.model.bitransformer import Bitransformer
from mesh_tf2.transformer.model.builder import make_layer_stack
from mesh_tf2.transformer.model.layer_stack import LayerStack
from mesh_tf2.transformer.model.sampling import move_to_front, sample
from mesh_tf2.transformer.model.unitransformer import Unitransformer

BATCH, LENGTH = mtf.Dimension("batch", 4), mtf.Dimension("length", 6)
VOCAB = 20

SELF = [SelfAttention, {"num_heads": 4, "key_value_size": 8}]
CROSS = [EncDecAttention, {"num_heads": 4, "key_value_size": 8}]
DENSE = [DenseReluDense, {"hidden_size": 16}]

MESHES = {
  "one": ("", ""),
  "2x4": (
    "batch:2;model:4",
    "batch:batch;vocab:model;d_ff:model;heads:model",
  ),
}


def stack(layers):
  return make_layer_stack(
    layers=layers,
    num_layers=1,
    layer_stack_cls=lambda layers: LayerStack(
      layers,
      sublayers_initial=[],
      sublayers_per_layer=[
        sublayers.sublayer_rms_norm,
        sublayers.sublayer_call_layer,
        sublayers.sublayer_residual,
      ],
      sublayers_final=[sublayers.sublayer_rms_norm],
    ),
  )


def model(layers, name, output=VOCAB, **kwargs):
  return Unitransformer(
    stack(layers),
    d_model=16,
    input_vocab_size=VOCAB,
    output_vocab_size=output,
    autoregressive=output is not None,
    max_length=16,
    name=name,
    vocab_divisor=8,
    **kwargs,
  )


def translator():
  encoder = model([SELF, DENSE], "encoder", output=None)
  return Bitransformer(encoder, model([SELF, CROSS, DENSE], "decoder"))


def inputs():
  ids = np.random.default_rng(1).integers(2, VOCAB, size=[4, 6], dtype=np.int32)
  ids[1, 4:] = 0
  ids[2, 2:] = 0
  return ids


def scaled(program, factor=3.0):
  """Larger weights: an untrained model would say the same to everything."""
  for v in program.variables.values():
    v.assign(v.value * factor)


@pytest.fixture(scope="module", params=MESHES)
def decoded(request):
  """Functions of one program: decode, and logits of whole sequences."""
  program = mtf.Program(*MESHES[request.param], seed=5)

  @program.function
  def decode(mesh, ids, beam_size=1, length=None):
    x = mtf.import_tf_tensor(mesh, ids, [BATCH, LENGTH])
    return translator().decode(x, beam_size=beam_size, max_decode_length=length)

  @program.function
  def logits(mesh, ids, targets):
    logits, _ = translator().call_simple(
      mtf.import_tf_tensor(mesh, ids, [BATCH, LENGTH]),
      mtf.import_tf_tensor(mesh, targets, [BATCH, LENGTH]),
      compute_loss=False,
      mode="eval",
    )
    return logits

  decode(inputs())
  scaled(program)
  return decode, logits


def until_end(row):
  ends = np.flatnonzero((row == 1) | (row == 0))
  return row[: ends[0] + 1] if len(ends) else row


def test_greedy_decoding_takes_the_best_token_of_the_whole_model(decoded):
  decode, logits = decoded
  ids = decode(inputs()).numpy()
  best = np.argmax(logits(inputs(), ids).numpy(), axis=-1)
  for row, want in zip(ids, best, strict=True):
    kept = until_end(row)
    np.testing.assert_array_equal(kept, want[: len(kept)])
  assert len({tuple(row) for row in ids}) > 1


def test_a_beam_of_one_is_greedy_decoding(decoded):
  decode, _ = decoded
  greedy = decode(inputs()).numpy()

  program = decode.program

  @program.function
  def one_beam(mesh, ids):
    from mesh_tf2.transformer.model.search import beam_search

    both = translator()
    x = mtf.import_tf_tensor(mesh, ids, [BATCH, LENGTH])
    dtype = mtf.VariableDType()
    beam = mtf.Dimension("beam", 1)
    return beam_search(
      both.decoder,
      mtf.zeros(mesh, [BATCH, beam, LENGTH], tf.int32),
      both.encode(x, dtype),
      dtype,
      alpha=0.6,
    )

  got = one_beam(inputs()).numpy()
  for a, b in zip(got, greedy, strict=True):
    np.testing.assert_array_equal(until_end(a), until_end(b))


def test_a_sentence_decodes_alone_as_in_a_batch(decoded):
  decode, _ = decoded
  together = decode(inputs()).numpy()
  beams = decode(inputs(), beam_size=3).numpy()
  for i in range(4):
    alone = np.repeat(inputs()[i : i + 1], 4, axis=0)
    np.testing.assert_array_equal(decode(alone).numpy()[0], together[i])
    got = decode(alone, beam_size=3).numpy()[0]
    np.testing.assert_array_equal(got, beams[i])


def test_the_length_of_the_result_is_a_parameter(decoded):
  decode, _ = decoded
  short = decode(inputs(), length=3).numpy()
  np.testing.assert_array_equal(short, decode(inputs()).numpy()[:, :3])


def test_a_beam_search_that_samples_is_an_error():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  x = mtf.zeros(mesh, [BATCH, LENGTH], tf.int32)
  with pytest.raises(ValueError, match="takes no temperature"):
    translator().decode(x, beam_size=2, temperature=1.0)


PROMPTS = np.array(
  [
    [3, 4, 0, 0, 0, 0],
    [5, 0, 0, 0, 0, 0],
    [6, 7, 8, 9, 0, 0],
    [2, 3, 4, 5, 6, 7],
  ],
  np.int32,
)


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("full_attention", [False, True])
def test_prompts_of_any_length_are_continued(name, full_attention):
  program = mtf.Program(*MESHES[name], seed=5)
  prompts = PROMPTS.copy()
  prompts[:3, 1] = np.where(full_attention, 1, prompts[:3, 1])
  kwargs = {"input_full_attention": full_attention}

  def lm():
    return model([SELF, DENSE], "transformer", **kwargs)

  @program.function
  def complete(mesh, ids):
    ids = mtf.import_tf_tensor(mesh, ids, [BATCH, LENGTH])
    return lm().sample_autoregressive(ids, stop_at_token=None)

  @program.function
  def logits(mesh, ids):
    ids = mtf.import_tf_tensor(mesh, ids, [BATCH, LENGTH])
    return lm().call_simple(None, ids, compute_loss=False, mode="eval")[0]

  complete(prompts)
  scaled(program)
  got = complete(prompts).numpy()
  np.testing.assert_array_equal(got[prompts > 0], prompts[prompts > 0])
  best = np.argmax(logits(got).numpy(), axis=-1)
  np.testing.assert_array_equal(got[prompts == 0], best[prompts == 0])


def test_max_steps_and_removal_of_the_prompt():
  program = mtf.Program("", "")

  @program.function
  def complete(mesh, ids):
    ids = mtf.import_tf_tensor(mesh, ids, [BATCH, LENGTH])
    lm = model([SELF, DENSE], "transformer")
    kwargs = {"stop_at_token": None, "max_steps": 2}
    return (
      lm.sample_autoregressive(ids, **kwargs),
      lm.sample_autoregressive(ids, remove_partial_sequences=True, **kwargs),
    )

  whole, rest = (x.numpy() for x in complete(PROMPTS))
  np.testing.assert_array_equal(whole[0, 4:], 0)
  np.testing.assert_array_equal(rest[0], [*whole[0, 2:4], 0, 0, 0, 0])
  np.testing.assert_array_equal(rest[3], 0)


def test_bos_id_is_read_before_the_first_token():
  program = mtf.Program("", "", seed=1)

  @program.function
  def complete(mesh, ids, bos_id):
    ids = mtf.import_tf_tensor(mesh, ids, [BATCH, LENGTH])
    lm = model([SELF, DENSE], "transformer")
    return lm.sample_autoregressive(ids, bos_id=bos_id, stop_at_token=None)

  zeros = np.zeros_like(PROMPTS)
  complete(zeros, 0)
  scaled(program)
  first = {tuple(complete(zeros, bos)[0].numpy()) for bos in range(6)}
  assert len(first) > 1


def lower_one(tensor, mesh):
  impl = mtf.virtual_mesh_impl.VirtualMeshImpl("", "")
  return mtf.Lowering(mesh.graph, {mesh: impl}).export_to_tf_tensor(tensor)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_sampling_keeps_to_the_likeliest_tokens(k):
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  row = np.array([0.0, 3.0, 1.0, 2.0], np.float32)
  batch, vocab = mtf.Dimension("batch", 300), mtf.Dimension("vocab", 4)
  logits = mtf.import_tf_tensor(mesh, np.tile(row, [300, 1]), [batch, vocab])
  tokens = lower_one(sample(logits, 1.0, k), mesh).numpy()
  assert set(tokens) == set(np.argsort(-row)[:k])


def test_move_to_front_drops_the_beginning_of_each_row():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  ids = mtf.import_tf_tensor(mesh, PROMPTS, [BATCH, LENGTH])
  begin = mtf.import_tf_tensor(mesh, np.array([0, 1, 3, 6], np.int32), [BATCH])
  got = lower_one(move_to_front(ids, begin), mesh).numpy()
  np.testing.assert_array_equal(got[0], PROMPTS[0])
  np.testing.assert_array_equal(got[2], [9, 0, 0, 0, 0, 0])
  np.testing.assert_array_equal(got[3], 0)
