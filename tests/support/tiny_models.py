"""Transformers that are small enough to be checked number by number."""

import functools

import numpy as np

import mesh_tf2 as mtf
from mesh_tf2.transformer.layers import sublayers
from mesh_tf2.transformer.layers.enc_dec_attention import EncDecAttention
from mesh_tf2.transformer.layers.feed_forward import DenseReluDense
from mesh_tf2.transformer.layers.self_attention import SelfAttention
from mesh_tf2.transformer.model.bitransformer import Bitransformer
from mesh_tf2.transformer.model.builder import make_layer_stack
from mesh_tf2.transformer.model.layer_stack import LayerStack
from mesh_tf2.transformer.model.unitransformer import Unitransformer

VOCAB_SIZE = 11
D_MODEL = 8
D_FF = 16
HEADS = 4
D_KV = 2
MAX_LENGTH = 6


def stack(
  layers=("self", "ff"),
  blocks=1,
  dropout=0.0,
  attention=None,
  feed_forward=None,
  **kwargs,
):
  """Layers with norm, dropout and residual around each."""
  attention = {
    "num_heads": HEADS,
    "key_value_size": D_KV,
    "dropout_rate": dropout,
    **(attention or {}),
  }
  of_encoder = {
    k: v for k, v in attention.items() if k != "relative_attention_type"
  }
  feed_forward = {
    "hidden_size": D_FF,
    "dropout_rate": dropout,
    **(feed_forward or {}),
  }
  specs = {
    "self": [SelfAttention, attention],
    "encdec": [EncDecAttention, of_encoder],
    "ff": [DenseReluDense, feed_forward],
  }
  drop = functools.partial(sublayers.sublayer_dropout, dropout_rate=dropout)
  make = functools.partial(
    LayerStack,
    sublayers_initial=[drop],
    sublayers_per_layer=[
      sublayers.sublayer_rms_norm,
      sublayers.sublayer_call_layer,
      drop,
      sublayers.sublayer_residual,
    ],
    sublayers_final=[sublayers.sublayer_rms_norm, drop],
    **kwargs,
  )
  return make_layer_stack(
    layers=[specs[name] for name in layers],
    num_layers=blocks,
    layer_stack_cls=make,
  )


def language_model(stack_kwargs=None, **kwargs):
  arguments = {
    "d_model": D_MODEL,
    "input_vocab_size": VOCAB_SIZE,
    "output_vocab_size": VOCAB_SIZE,
    "autoregressive": True,
    "max_length": MAX_LENGTH,
    "vocab_divisor": 4,
    **kwargs,
  }
  return Unitransformer(stack(**(stack_kwargs or {})), **arguments)


def encoder_decoder(stack_kwargs=None, shared_embedding=True, **kwargs):
  """Arguments are those of the stacks and the decoder; sizes are for both."""
  stack_kwargs = stack_kwargs or {}
  sizes = {k: kwargs[k] for k in ("vocab_divisor", "d_model") if k in kwargs}
  encoder = language_model(
    stack_kwargs,
    name="encoder",
    autoregressive=False,
    output_vocab_size=None,
    **sizes,
  )
  decoder = language_model(
    {**stack_kwargs, "layers": ("self", "encdec", "ff")},
    name="decoder",
    **kwargs,
  )
  return Bitransformer(encoder, decoder, shared_embedding)


def import_ids(mesh, ids, length="length"):
  """Ids as a tensor batch, length."""
  batch, n = np.shape(ids)
  shape = mtf.Shape([("batch", batch), (length, n)])
  return mtf.import_tf_tensor(mesh, np.asarray(ids, np.int32), shape)


def randomize(program, seed=0):
  """Gives every variable random values of a size that keeps it lively.

  Returns:
    The values by name, in float64.
  """
  rng = np.random.default_rng(seed)
  values = {}
  for name, variable in program.variables.items():
    shape = variable.shape.to_integer_list
    value = rng.normal(size=shape) * 0.5 + (name.endswith("scale"))
    variable.assign(value)
    values[name] = variable.numpy().astype(np.float64)
  return values
