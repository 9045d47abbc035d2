"""Variables have the names and shapes that checkpoints have them under."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support import running, tiny_models

IDS = np.array([[3, 4, 1, 7, 1, 0]])
D, FF, HEADS, VOCAB, LENGTH = "d_model", "d_ff", "heads", "vocab", "max_length"
SIZES = {D: 8, FF: 16, HEADS: 8, VOCAB: 12, LENGTH: 6}


def attention(scope):
  return {
    f"{scope}/q": [D, HEADS],
    f"{scope}/k": [D, HEADS],
    f"{scope}/v": [D, HEADS],
    f"{scope}/o": [HEADS, D],
  }


def block(scope, attentions):
  found = {}
  for i, name in enumerate(attentions):
    layer = f"{scope}/block_000/layer_{i:03d}"
    found[f"{layer}/rms_norm/scale"] = [D]
    found.update(attention(f"{layer}/{name}"))
  layer = f"{scope}/block_000/layer_{len(attentions):03d}"
  return {
    **found,
    f"{layer}/rms_norm/scale": [D],
    f"{layer}/DenseReluDense/wi/kernel": [D, FF],
    f"{layer}/DenseReluDense/wo/kernel": [FF, D],
    f"{scope}/rms_norm/scale": [D],
  }


def tables(scope):
  return {
    f"{scope}/embedding": [VOCAB, D],
    f"{scope}/positional_embedding": [LENGTH, D],
  }


def variables_of(model):
  def build(mesh):
    ids = tiny_models.import_ids(mesh, IDS)
    return model.call_simple(ids, ids, True)[1]

  result = running.run(build)
  return {
    name: [tuple(d) for d in v.shape]
    for name, v in result.mesh.graph.name_to_variable.items()
  }


def with_sizes(names):
  return {n: [(d, SIZES[d]) for d in dims] for n, dims in names.items()}


@pytest.mark.parametrize("shared", [True, False])
def test_a_language_model_has_the_original_names(shared):
  model = tiny_models.language_model(
    shared_embedding_and_softmax_weights=shared
  )
  wanted = {**tables("transformer"), **block("transformer", ["SelfAttention"])}
  if not shared:
    wanted["transformer/logits/kernel"] = [D, VOCAB]
  assert variables_of(model) == with_sizes(wanted)


@pytest.mark.parametrize("shared", [True, False])
def test_an_encoder_decoder_has_the_original_names(shared):
  model = tiny_models.encoder_decoder(
    shared_embedding_and_softmax_weights=shared
  )
  wanted = {
    **tables("shared"),
    **block("encoder", ["SelfAttention"]),
    **block("decoder", ["SelfAttention", "EncDecAttention"]),
  }
  if not shared:
    wanted["decoder/logits/kernel"] = [D, VOCAB]
  assert variables_of(model) == with_sizes(wanted)


def test_tables_that_are_not_shared_stand_with_encoder_and_decoder():
  model = tiny_models.encoder_decoder(shared_embedding=False, max_length=7)
  names = variables_of(model)
  for scope in ("encoder", "decoder"):
    assert names[f"{scope}/embedding"] == [("vocab", 12), ("d_model", 8)]
  assert names["encoder/positional_embedding"][0] == ("max_length", 6)
  assert names["decoder/positional_embedding"][0] == ("max_length", 7)


def test_positions_of_different_number_are_not_shared():
  names = variables_of(tiny_models.encoder_decoder(max_length=7))
  assert "shared/embedding" in names
  assert "shared/positional_embedding" not in names
  assert names["decoder/positional_embedding"][0] == ("max_length", 7)


def test_sinusoids_and_missing_positions_have_no_table():
  for kwargs in (
    {"sinusoid_positional_embedding": True},
    {"positional_embedding": False},
  ):
    names = variables_of(tiny_models.language_model(**kwargs))
    assert not [n for n in names if "position" in n]


SELF = "transformer/block_000/layer_000/SelfAttention"


def attention_variables(**kwargs):
  model = tiny_models.language_model({"attention": kwargs})
  names = variables_of(model)
  return {
    n.removeprefix(SELF + "/"): [f"{d}:{s}" for d, s in dims]
    for n, dims in names.items()
    if n.startswith(SELF)
  }


def test_attention_keeps_heads_as_it_is_told():
  assert attention_variables(num_memory_heads=1) == {
    "q": ["d_model:8", "heads:8"],
    "k": ["d_model:8", "d_kv:2"],
    "v": ["d_model:8", "d_kv:2"],
    "o": ["heads:8", "d_model:8"],
  }
  assert attention_variables(num_memory_heads=2, combine_dims=False) == {
    "q": ["d_model:8", "heads:2", "query_heads:2", "d_kv:2"],
    "k": ["d_model:8", "heads:2", "d_kv:2"],
    "v": ["d_model:8", "heads:2", "d_kv:2"],
    "o": ["heads:2", "query_heads:2", "d_kv:2", "d_model:8"],
  }
  assert attention_variables(keep_query_heads_dims=True, shared_kv=True) == {
    "q": ["d_model:8", "heads:4", "d_kv:2"],
    "kv": ["d_model:8", "heads:8"],
    "o": ["heads:4", "d_kv:2", "d_model:8"],
  }
  assert attention_variables(num_heads=1) == {
    "q": ["d_model:8", "d_kv:2"],
    "k": ["d_model:8", "d_kv:2"],
    "v": ["d_model:8", "d_kv:2"],
    "o": ["d_kv:2", "d_model:8"],
  }


def test_relative_biases_stand_in_their_layers_or_in_the_first_one():
  sizes = ["heads:4", "buckets:32"]
  names = attention_variables(relative_attention_type="bias")
  assert names["relative_attention_bias"] == sizes
  stack = {
    "blocks": 2,
    "attention": {"relative_attention_type": "bias_shared"},
  }
  names = variables_of(tiny_models.language_model(stack))
  biases = [n for n in names if n.endswith("relative_attention_bias")]
  assert biases == [f"{SELF}/relative_attention_bias"]
  names = attention_variables(relative_attention_type="contextual")
  assert names["relative_attention_ak/kernel"] == [
    "d_model:8",
    "buckets:32",
    "heads:4",
  ]


def test_old_names_of_norms_come_with_dropout_rate_and_norm_epsilon():
  stack = tiny_models.stack(dropout_rate=0.1, norm_epsilon=1e-5)
  model = tiny_models.Unitransformer(
    stack,
    d_model=8,
    input_vocab_size=11,
    output_vocab_size=11,
    autoregressive=True,
    max_length=6,
  )
  names = variables_of(model)
  assert "transformer/block_000/layer_000/layer_norm/scale" in names
  assert "transformer/final_layer_norm/scale" in names
  assert not [n for n in names if "rms_norm" in n]


def test_projections_begin_with_the_scales_of_the_original():
  stack = {"attention": {"key_value_size": 64, "num_heads": 8}}
  model = tiny_models.language_model(stack, d_model=256, vocab_divisor=128)
  program = mtf.Program()

  @program.function
  def build(mesh):
    ids = tiny_models.import_ids(mesh, IDS)
    return model.call_simple(None, ids, True)[1]

  build.build()
  wanted = {
    "q": (256 * 64) ** -0.5,
    "k": 256**-0.5,
    "v": 256**-0.5,
    "o": (8 * 64) ** -0.5,
  }
  for name, stddev in wanted.items():
    value = program.variables[f"{SELF}/{name}"].numpy()
    assert abs(value.mean()) < 0.02 * stddev
    np.testing.assert_allclose(value.std(), stddev, rtol=0.02)
  table = program.variables["transformer/embedding"].numpy()
  np.testing.assert_allclose(table.std(), 1.0, rtol=0.02)
