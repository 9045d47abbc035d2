"""Models made from gin files that were written for the original."""

import pathlib

import gin
import pytest

from mesh_tf2.transformer.layers.enc_dec_attention import EncDecAttention
from mesh_tf2.transformer.layers.feed_forward import DenseReluDense
from mesh_tf2.transformer.layers.self_attention import SelfAttention
from mesh_tf2.transformer.model.builder import (
  make_bitransformer,
  make_layer_stack,
)
from mesh_tf2.transformer.model.layer_stack import LayerStack
from mesh_tf2.transformer.model.unitransformer import Unitransformer

CONFIG = """
make_layer_stack.layers = [
    @mesh_tf2.transformer.transformer_layers.SelfAttention,
    @mesh_tf2.transformer.transformer_layers.DenseReluDense,
]
decoder/transformer.make_layer_stack.layers = [
    @transformer_layers.SelfAttention,
    @transformer_layers.EncDecAttention,
    [@transformer_layers.DenseReluDense, "ffn", {"activation": "gelu"}],
]
make_layer_stack.num_layers = 2
transformer.LayerStack.sublayers_per_layer = [
    @transformer.sublayer_rms_norm,
    @transformer.sublayer_call_layer,
]
Unitransformer.d_model = 16
transformer.Unitransformer.max_length = 32
encoder/Unitransformer.max_length = 64
decoder/transformer.Unitransformer.label_smoothing = 0.25
SelfAttention.num_heads = 6
SelfAttention.relative_attention_type = "bias"
SelfAttention.key_value_size = 3
EncDecAttention.dropout_rate = 0.5
DenseReluDense.hidden_size = 24
"""


@pytest.fixture(autouse=True)
def _clean_gin():
  gin.clear_config()
  yield
  gin.clear_config()


def test_encoder_and_decoder_are_made_in_their_scopes():
  gin.parse_config(CONFIG)
  model = make_bitransformer(input_vocab_size=120, output_vocab_size=100)
  encoder, decoder = model.encoder, model.decoder
  assert (encoder.name, decoder.name) == ("encoder", "decoder")
  assert encoder.max_length_dim.size == 64
  assert decoder.max_length_dim.size == 32
  assert encoder.model_dim.size == decoder.model_dim.size == 16
  assert (encoder.label_smoothing, decoder.label_smoothing) == (0, 0.25)
  assert (encoder.autoregressive, decoder.autoregressive) == (False, True)
  assert encoder.output_vocab_dim is None
  kinds = [type(x) for x in encoder.layer_stack.layers]
  assert kinds == [SelfAttention, DenseReluDense] * 2
  kinds = [type(x) for x in decoder.layer_stack.layers]
  assert kinds == [SelfAttention, EncDecAttention, DenseReluDense] * 2
  names = [x.name for x in decoder.layer_stack.layers]
  assert names[:3] == [
    "block_000/layer_000",
    "block_000/layer_001",
    "block_000/ffn",
  ]
  assert decoder.layer_stack.layers[5].activation == "gelu"


def test_vocabularies_are_padded_to_a_multiple_of_the_divisor():
  gin.parse_config(CONFIG + "Bitransformer.shared_embedding = False")
  model = make_bitransformer(input_vocab_size=130, output_vocab_size=128)
  assert model.encoder.input_vocab_dim == ("vocab", 256)
  assert model.output_vocab_dim == ("vocab", 128)


def test_what_is_bound_for_self_attention_reaches_its_subclass():
  gin.parse_config(CONFIG)
  layer = EncDecAttention()
  assert layer.num_heads == 6
  assert layer.key_value_size == 3
  assert layer.dropout_rate == 0.5
  assert SelfAttention().dropout_rate == 0.0
  # It names this one itself, and so has its own.
  assert SelfAttention().relative_attention_type == "bias"
  assert layer.relative_attention_type is None


def test_scopes_without_blocks_count_through():
  gin.parse_config(CONFIG + "make_layer_stack.block_scope = False")
  names = [x.name for x in make_layer_stack().layers]
  assert names == ["layer_000", "layer_001", "layer_002", "layer_003"]


@pytest.mark.parametrize("spec", [3, ["name"], [SelfAttention, "a", "b"]])
def test_what_is_no_layer_is_named(spec):
  with pytest.raises(
    ValueError, match=r"a layer is a class, or .class, 'name'"
  ):
    make_layer_stack(layers=[spec], num_layers=1)


def test_dropout_rate_and_norm_epsilon_go_together():
  with pytest.raises(ValueError, match=r"dropout_rate and LayerStack.norm_eps"):
    LayerStack([], dropout_rate=0.1)


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"output_vocab_size": None}, "give it an output_vocab_size"),
    (
      {"autoregressive": False, "input_full_attention": True},
      "input_full_attention is for autoregressive models",
    ),
    (
      {
        "input_vocab_size": 300,
        "shared_embedding_and_softmax_weights": True,
      },
      "vocabularies of one size, got vocab:384 and vocab:256",
    ),
  ],
)
def test_parameters_that_do_not_go_together_are_named(changes, message):
  arguments = {
    "layer_stack": None,
    "input_vocab_size": 200,
    "output_vocab_size": 200,
    "autoregressive": True,
    "max_length": 8,
    **changes,
  }
  with pytest.raises(ValueError, match=message):
    Unitransformer(**arguments)


def test_tables_of_different_size_cannot_be_shared():
  gin.parse_config(CONFIG)
  with pytest.raises(
    ValueError, match=r"the encoder has .*vocab:256.*vocab:128"
  ):
    make_bitransformer(input_vocab_size=130, output_vocab_size=100)


def test_the_shipped_defaults_parse_and_build_a_model():
  root = pathlib.Path(__file__).resolve().parents[3]
  text = (root / "configs/base.gin").read_text()
  names = ("transformer.", "transformer_layers.", "encoder/", "decoder/")
  kept, on = [], False
  for line in text.splitlines():
    is_start = bool(line.strip()) and not line.startswith((" ", "]", "#"))
    if is_start:
      is_macro = "." not in line.split("=")[0]
      on = line.startswith(names) or is_macro
    if on:
      kept.append(line)
  gin.parse_config("\n".join(kept))
  model = make_bitransformer(input_vocab_size=100, output_vocab_size=100)
  assert model.decoder.layer_stack.num_layers == 18
  assert model.decoder.shared_embedding_and_softmax_weights
