"""What a stack does around each of its layers: norms, dropout, residuals.

Each is a function `f(x, layer_stack, context) -> x` of the same shape, chosen
in gin files: `LayerStack.sublayers_per_layer = [@sublayer_rms_norm, ...]`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import gin
import tensorflow as tf

import mesh_tf2 as mtf

if TYPE_CHECKING:
  from ..model.context import Context
  from ..model.layer_stack import LayerStack

configurable = gin.configurable(module="mesh_tf2.transformer.transformer")


@configurable
def sublayer_call_layer(
  x: mtf.Tensor, layer_stack: LayerStack, context: Context
) -> mtf.Tensor:
  """Sets padding to zero, and calls the layer in the scope of its class."""
  x = sublayer_mask_padding(x, layer_stack, context)
  layer = context.current_layer
  assert layer is not None, "sub-layers run inside a stack"
  with tf.compat.v1.variable_scope(type(layer).__name__):
    return layer.call(context, x)


@configurable
def sublayer_mask_padding(
  x: mtf.Tensor, layer_stack: LayerStack, context: Context
) -> mtf.Tensor:
  """Sets padding to zero, where it is known."""
  mask = context.nonpadding
  return x if mask is None else mtf.multiply(x, mask, x.shape)


@configurable
def sublayer_rms_norm(
  x: mtf.Tensor,
  layer_stack: LayerStack,
  context: Context,
  epsilon: float = 1e-6,
  name: str = "rms_norm",
) -> mtf.Tensor:
  """Divides by the root mean square over d_model; a learned scale for each.

  Args:
    x: has d_model.
    layer_stack: has no influence.
    context: of the call.
    epsilon: added to the mean square.
    name: the scope of the variable `scale`.
  """
  dim = context.model.model_dim
  with tf.compat.v1.variable_scope(name):
    scale = _scale(context, [dim])
  return mtf.layers.rms_norm(x, scale, dim, epsilon)


@configurable
def sublayer_legacy_rms_norm(
  x: mtf.Tensor, layer_stack: LayerStack, context: Context
) -> mtf.Tensor:
  """`sublayer_rms_norm` under the name that old models have before a layer."""
  return sublayer_rms_norm(
    x, layer_stack, context, layer_stack.norm_epsilon, "layer_norm"
  )


@configurable
def sublayer_legacy_final_rms_norm(
  x: mtf.Tensor, layer_stack: LayerStack, context: Context
) -> mtf.Tensor:
  """`sublayer_rms_norm` under the name that old models have at the end."""
  return sublayer_rms_norm(
    x, layer_stack, context, layer_stack.norm_epsilon, "final_layer_norm"
  )


@configurable
def sublayer_rms_norm_subsampled(
  x: mtf.Tensor,
  layer_stack: LayerStack,
  context: Context,
  percentage: float = 100.0,
  epsilon: float = 1e-6,
) -> mtf.Tensor:
  """`sublayer_rms_norm`, the mean being over the first channels only.

  Args:
    x: has d_model, which must not be split.
    layer_stack: has no influence.
    context: of the call.
    percentage: how much of d_model the mean is over, in (0, 100].
    epsilon: added to the mean square.
  """
  dim = context.model.model_dim
  count = math.ceil(dim.size * percentage / 100)
  sample = mtf.slice(x, 0, count, dim.name)
  with tf.compat.v1.variable_scope("layer_norm_subsampled"):
    scale = _scale(context, [dim])
  part = mtf.Dimension(dim.name, count)
  y = mtf.layers.rms_normalize(x, sample, part, epsilon)
  return mtf.multiply(y, scale, x.shape)


@configurable
def sublayer_scale_norm(
  x: mtf.Tensor,
  layer_stack: LayerStack,
  context: Context,
  epsilon: float = 1e-6,
  name: str = "scale_norm",
) -> mtf.Tensor:
  """Divides by the root mean square over d_model; one learned scale for all.

  Args:
    x: has d_model.
    layer_stack: has no influence.
    context: of the call.
    epsilon: added to the mean square.
    name: the scope of the variable `scale`.
  """
  with tf.compat.v1.variable_scope(name):
    scale = _scale(context, [])
  return mtf.layers.rms_norm(x, scale, context.model.model_dim, epsilon)


@configurable
def sublayer_true_layer_norm(
  x: mtf.Tensor,
  layer_stack: LayerStack,
  context: Context,
  epsilon: float = 1e-6,
) -> mtf.Tensor:
  """Mean 0 and variance 1 over d_model, then a learned scale and bias."""
  with tf.compat.v1.variable_scope("true_layer_norm"):
    return mtf.layers.layer_norm(x, context.model.model_dim, epsilon)


@configurable
def sublayer_residual(
  x: mtf.Tensor, layer_stack: LayerStack, context: Context
) -> mtf.Tensor:
  """Adds the input of the layer."""
  return mtf.add(x, context.current_layer_input)


@configurable
def sublayer_dropout(
  x: mtf.Tensor,
  layer_stack: LayerStack,
  context: Context,
  dropout_rate: float = 0.0,
) -> mtf.Tensor:
  """In training, sets channels to zero: the same ones at every position."""
  if not context.train or not dropout_rate:
    return x
  noise_shape = mtf.Shape([*context.batch_dims, context.model.model_dim])
  return mtf.dropout(x, True, rate=dropout_rate, noise_shape=noise_shape)


@configurable
def sublayer_legacy_dropout(
  x: mtf.Tensor, layer_stack: LayerStack, context: Context
) -> mtf.Tensor:
  """`sublayer_dropout` with the rate of the stack."""
  return sublayer_dropout(x, layer_stack, context, layer_stack.dropout_rate)


@configurable
def sublayer_clip_activation_gradient(
  x: mtf.Tensor,
  layer_stack: LayerStack,
  context: Context,
  rms_norm: float = 1.0,
) -> mtf.Tensor:
  """Scales gradients down to a root mean square of at most `rms_norm`."""
  return mtf.layers.clip_activation_gradient(x, rms_norm)


@configurable
def sublayer_rezero(
  x: mtf.Tensor,
  layer_stack: LayerStack,
  context: Context,
  initial_value: float = 0.0,
) -> mtf.Tensor:
  """Multiplies by a learned number, 0 at first (Bachlechner et al., 2020)."""
  weight = mtf.get_variable(
    context.mesh,
    "rezero_weight",
    mtf.Shape([]),
    context.variable_dtype,
    initializer=mtf.initializers.Constant(initial_value),
  )
  return mtf.multiply(x, weight, x.shape)


def _scale(context: Context, dims: Any) -> mtf.Tensor:
  return mtf.get_variable(
    context.mesh,
    "scale",
    mtf.Shape(dims),
    context.variable_dtype,
    initializer=mtf.initializers.Constant(1.0),
  )
