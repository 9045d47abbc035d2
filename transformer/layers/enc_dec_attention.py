"""Attention of a decoder to what the encoder made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from .attention import attention, visibility_mask_to_attention_bias
from .relative_bias import relative_attention_bias
from .self_attention import SelfAttention
from .span_positions import relative_position_spans

if TYPE_CHECKING:
  from ..model.context import Context

configurable = gin.configurable(
  module="mesh_tf2.transformer.transformer_layers"
)


@configurable
def enc_dec_attention_bias(
  layer: SelfAttention,
  context: Context,
  heads_dims: list[mtf.Dimension],
  relative_position_fn: Callable[..., mtf.Tensor] = relative_position_spans,
) -> mtf.Tensor | None:
  """What is added to the logits: the mask, and the relative bias.

  Args:
    layer: says whether there is a relative bias.
    context: of the call.
    heads_dims: the heads of the queries.
    relative_position_fn: from the context to the position of each token of the
      encoder minus that of each token of the decoder, int32: batch, length,
      memory_length.

  Returns:
    Some of the dimensions of the logits; None if nothing is added.
  """
  mask = _visibility_bias(context)
  if layer.relative_attention_type is None:
    return mask
  if layer.relative_attention_type == "contextual":
    raise ValueError(
      "EncDecAttention.relative_attention_type is 'contextual'; it must be "
      "None, 'bias' or 'bias_shared'"
    )
  bias = relative_attention_bias(
    layer.relative_attention_type,
    context,
    None,
    relative_position_fn(context),
    num_buckets=layer.relative_attention_num_buckets,
    bidirectional=True,
    heads_dims=heads_dims,
    name="enc_dec_relative_attention_bias",
  )
  bias = mtf.layers.at_least_float32(bias)
  return bias if mask is None else mtf.add(bias, mask)


@configurable
def enc_dec_attention(
  self_attention_layer: SelfAttention,
  memory_antecedent: mtf.Tensor,
  context: Context,
  x: mtf.Tensor,
  losses: list[mtf.Tensor] | None,
  attention_fn: Callable[..., mtf.Tensor] = attention,
) -> mtf.Tensor:
  """Attention to another sequence, with the parameters of a layer.

  In decoding, keys and values are computed once, in the first part.

  Args:
    self_attention_layer: makes the projections.
    memory_antecedent: batch, memory_length, d_model.
    context: of the call.
    x: the input of the layer: batch, length, d_model; without the length in
      the mode "incremental".
    losses: has no influence.
    attention_fn: what computes attention.

  Returns:
    A tensor of the shape of `x`.
  """
  params = self_attention_layer.make_params(context)
  q = params.compute_q(x)
  if context.mode == "incremental":
    kv = context.get_constant_state()
  else:
    kv = params.compute_keys_and_values(memory_antecedent)
    if context.mode == "first_part":
      context.record_constant_state(kv)
  o = attention_fn(
    q,
    kv[0],
    kv[-1],
    context.encoder_length_dim,
    self_attention_layer.kv_dim,
    self_attention_layer.kv_dim,
    enc_dec_attention_bias(
      self_attention_layer, context, params.query_heads_dims
    ),
    context=context,
    **self_attention_layer.attention_kwargs_from_context(context),
  )
  return params.compute_output(o, output_shape=x.shape)


def _visibility_bias(context: Context) -> mtf.Tensor | None:
  """A token sees the tokens of its own sequence; None if all are of one."""
  if context.encoder_sequence_id is None or context.sequence_id is None:
    return None

  def bias() -> mtf.Tensor:
    visible = mtf.equal(context.sequence_id, context.encoder_sequence_id)
    dtype = context.activation_dtype
    wide = dtype if dtype == tf.float64 else tf.float32
    return visibility_mask_to_attention_bias(visible, wide)

  return context.cached("enc_dec_attention_mask", bias)


@configurable
class EncDecAttention(SelfAttention):
  """Multi-head attention to the output of the encoder.

  What is bound for `SelfAttention` holds here too.

  Args:
    relative_attention_type: None, "bias" or "bias_shared"; what is bound for
      `SelfAttention` does not count. See `enc_dec_attention_bias`.
    **kwargs: those of `SelfAttention`.
  """

  def __init__(
    self, relative_attention_type: str | None = None, **kwargs: Any
  ) -> None:
    super().__init__(relative_attention_type=relative_attention_type, **kwargs)

  def call(
    self,
    context: Context,
    x: mtf.Tensor,
    losses: list[mtf.Tensor] | None = None,
  ) -> mtf.Tensor:
    """Applies the layer.

    Args:
      context: of the call; has `encoder_output`.
      x: batch, length, d_model; without the length in the mode "incremental".
      losses: has no influence.

    Raises:
      ValueError: there is no encoder, or its d_model is another one.
    """
    memory = context.encoder_output
    if memory is None:
      raise ValueError(
        "EncDecAttention needs the output of an encoder; this model has none. "
        "Leave the layer out of make_layer_stack.layers"
      )
    if context.model.model_dim not in memory.shape:
      raise ValueError(
        f"EncDecAttention: the decoder has {context.model.model_dim}, the "
        f"encoder's output is [{memory.shape}]; make their d_model equal"
      )
    return enc_dec_attention(
      self, memory, context, x, losses, attention_fn=self.attention_fn
    )
