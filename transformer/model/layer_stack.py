"""A stack of layers, each wrapped in sub-layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from ..layers import sublayers
from ..layers.transformer_layer import TransformerLayer
from .context import Context

configurable = gin.configurable(module="mesh_tf2.transformer.transformer")

Sublayer = Callable[[mtf.Tensor, "LayerStack", Context], mtf.Tensor]


@configurable
class LayerStack(TransformerLayer):
  """Layers one after another, each wrapped in sub-layers.

  A sub-layer is `f(x, layer_stack, context) -> x`: see `sublayers`.

  Args:
    layers: the layers.
    sublayers_initial: applied before the first layer.
    sublayers_per_layer: applied for each layer; one of them calls it.
    sublayers_final: applied after the last layer.
    dropout_rate: with `norm_epsilon`, selects the sub-layers of old models
      instead of those given: rms norm, layer, dropout, residual.
    norm_epsilon: see `dropout_rate`.
    recompute_grads: whether training computes each layer again for its
      gradient, instead of remembering what it computed.

  Raises:
    ValueError: just one of `dropout_rate` and `norm_epsilon` is given.
  """

  def __init__(
    self,
    layers: Sequence[TransformerLayer],
    sublayers_initial: Sequence[Sublayer] | None = None,
    sublayers_per_layer: Sequence[Sublayer] | None = None,
    sublayers_final: Sequence[Sublayer] | None = None,
    dropout_rate: float | None = None,
    norm_epsilon: float | None = None,
    recompute_grads: bool = False,
  ) -> None:
    self._layers = list(layers)
    if (dropout_rate is None) != (norm_epsilon is None):
      raise ValueError(
        "LayerStack.dropout_rate and LayerStack.norm_epsilon go together: they "
        f"are {dropout_rate} and {norm_epsilon}; give both, or neither and "
        "sublayers_initial, sublayers_per_layer and sublayers_final"
      )
    if dropout_rate is not None:
      sublayers_initial = [sublayers.sublayer_legacy_dropout]
      sublayers_per_layer = [
        sublayers.sublayer_legacy_rms_norm,
        sublayers.sublayer_call_layer,
        sublayers.sublayer_legacy_dropout,
        sublayers.sublayer_residual,
      ]
      sublayers_final = [
        sublayers.sublayer_legacy_final_rms_norm,
        sublayers.sublayer_legacy_dropout,
      ]
    self.dropout_rate = dropout_rate
    self.norm_epsilon = norm_epsilon
    self.recompute_grads = recompute_grads
    self._sublayers_initial = list(sublayers_initial or ())
    self._sublayers_per_layer = list(sublayers_per_layer or ())
    self._sublayers_final = list(sublayers_final or ())

  @property
  def layers(self) -> list[TransformerLayer]:
    """The layers, in order."""
    return self._layers

  @property
  def num_layers(self) -> int:
    """How many layers there are."""
    return len(self._layers)

  def call(
    self,
    context: Context,
    x: mtf.Tensor,
    losses: list[mtf.Tensor] | None = None,
  ) -> mtf.Tensor:
    """Applies all layers; padding comes out as zeros."""
    x = self._apply(self._sublayers_initial, context, x)
    for i, layer in enumerate(self._layers):
      if context.layer_outputs is not None:
        context.layer_outputs.append(x)
      context.current_layer = layer
      context.layer_index = i
      with tf.compat.v1.variable_scope(layer.name or ""):
        x = self._call_layer(context, x)
    x = self._apply(self._sublayers_final, context, x)
    x = sublayers.sublayer_mask_padding(x, self, context)
    if context.layer_outputs is not None:
      context.layer_outputs.append(x)
    return x

  def _call_layer(self, context: Context, x: mtf.Tensor) -> mtf.Tensor:
    # Without a gradient there is nothing to compute again; and decoding needs
    # the states that are made inside a layer.
    if not (self.recompute_grads and context.train):
      return self._apply(self._sublayers_per_layer, context, x)
    outer = context.losses

    def run(x: mtf.Tensor) -> list[mtf.Tensor]:
      context.losses = None if outer is None else []
      y = self._apply(self._sublayers_per_layer, context, x)
      return [y, *(context.losses or ())]

    y, *losses = mtf.recompute_grad(run, [x])
    context.losses = outer
    if outer is not None:
      outer.extend(losses)
    return y

  def _apply(
    self, functions: Sequence[Sublayer], context: Context, x: mtf.Tensor
  ) -> mtf.Tensor:
    context.current_layer_input = x
    for f in functions:
      y = f(x, self, context)
      if y.shape != x.shape:
        raise mtf.ShapeError(
          f"layer {context.current_layer}: {getattr(f, '__name__', f)} makes "
          f"[{y.shape}] of [{x.shape}]; the two must be the same"
        )
      x = y
    return x
