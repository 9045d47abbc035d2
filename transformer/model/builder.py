"""Makes models of what gin files say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gin

from ..layers.transformer_layer import TransformerLayer
from .bitransformer import Bitransformer
from .layer_stack import LayerStack
from .unitransformer import Unitransformer

configurable = gin.configurable(module="mesh_tf2.transformer.transformer")


@configurable
def make_layer_stack(
  layers: Sequence[Any] = gin.REQUIRED,
  layer_stack_cls: Callable[..., Any] = LayerStack,
  num_layers: int = 6,
  block_scope: bool = True,
) -> Any:
  """A stack of `num_layers` blocks, all of which have the same layers.

  Args:
    layers: the layers of a block. Each is a class, or a list of a class and,
      if need be, a name for its scope and a dictionary of its arguments.
    layer_stack_cls: makes the stack of a list of layers.
    num_layers: how many blocks there are.
    block_scope: whether scopes are `block_000/layer_000`, or else `layer_000`
      and so on through all blocks.

  Raises:
    ValueError: `layers` has something else in it.
  """
  stack: list[TransformerLayer] = []
  for block in range(num_layers):
    for number, spec in enumerate(layers):
      cls, name, kwargs = _read_spec(spec)
      layer = cls(**kwargs)
      if block_scope:
        layer.set_name(f"block_{block:03d}/{name or f'layer_{number:03d}'}")
      else:
        layer.set_name(name or f"layer_{len(stack):03d}")
      stack.append(layer)
  return layer_stack_cls(stack)


def _read_spec(spec: Any) -> tuple[Callable[..., Any], str | None, Any]:
  parts = list(spec) if isinstance(spec, (list, tuple)) else [spec]
  classes = [p for p in parts if callable(p)]
  names = [p for p in parts if isinstance(p, str)]
  kwargs = [p for p in parts if isinstance(p, dict)]
  known = len(classes) + len(names) + len(kwargs)
  if len(classes) != 1 or len(names) > 1 or known != len(parts):
    raise ValueError(
      "make_layer_stack.layers: a layer is a class, or [class, 'name', "
      f"{{arguments}}], got {spec!r}"
    )
  merged = {k: v for part in kwargs for k, v in part.items()}
  return classes[0], names[0] if names else None, merged


@configurable
def make_bitransformer(
  input_vocab_size: int = gin.REQUIRED,
  output_vocab_size: int = gin.REQUIRED,
  layout: Any = None,
  mesh_shape: Any = None,
  encoder_name: str = "encoder",
  decoder_name: str = "decoder",
  bitransformer_cls: Callable[..., Any] = Bitransformer,
) -> Any:
  """An encoder made in gin's scope `encoder`, a decoder in `decoder`.

  Args:
    input_vocab_size: how many ids the encoder reads.
    output_vocab_size: how many ids the decoder predicts.
    layout: the layout rules, for layers that look at them.
    mesh_shape: the shape of the mesh, for layers that look at it.
    encoder_name: the scope of the encoder's variables.
    decoder_name: the scope of the decoder's variables.
    bitransformer_cls: makes the model of encoder and decoder.
  """
  with gin.config_scope("encoder"):
    encoder = Unitransformer(
      layer_stack=make_layer_stack(),
      input_vocab_size=input_vocab_size,
      output_vocab_size=None,
      autoregressive=False,
      name=encoder_name,
      layout=layout,
      mesh_shape=mesh_shape,
    )
  with gin.config_scope("decoder"):
    decoder = Unitransformer(
      layer_stack=make_layer_stack(),
      input_vocab_size=output_vocab_size,
      output_vocab_size=output_vocab_size,
      autoregressive=True,
      name=decoder_name,
      layout=layout,
      mesh_shape=mesh_shape,
    )
  return bitransformer_cls(encoder, decoder)
