"""Attention: a weighted mean of values, by how well their keys fit a query.

Vaswani et al., Attention is all you need, 2017. No communication as long as
neither the key's dimension nor the memory's length is split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

import mesh_tf2 as mtf

if TYPE_CHECKING:
  from ..model.context import Context

INVISIBLE = -1e9  # added to the logit of what must not be seen


def attention(  # noqa: PLR0913  the original's signature
  q: mtf.Tensor,
  k: mtf.Tensor,
  v: mtf.Tensor,
  memory_length_dim: mtf.Dimension,
  key_dim: mtf.Dimension,
  value_dim: mtf.Dimension,
  bias: mtf.Tensor | None = None,
  dropout_rate: float = 0.0,
  dropout_broadcast_dims: Sequence[mtf.Dimension] | None = None,
  extra_logit: Any = None,
  context: Context | None = None,
  float32_logits: bool = True,
) -> mtf.Tensor:
  """softmax(q k + bias) v.

  Args:
    q: batch, length, heads, and `key_dim`; any of the first three may be
      missing, or be several dimensions.
    k: some dimensions of `q`, `memory_length_dim`, `key_dim`.
    v: some dimensions of `q`, `memory_length_dim`, `value_dim`.
    memory_length_dim: the positions that the weights are over.
    key_dim: what queries and keys are compared along.
    value_dim: the dimension of a value.
    bias: added to the logits: some dimensions of `q`, and `memory_length_dim`.
    dropout_rate: of the weights.
    dropout_broadcast_dims: dimensions that share the decisions of dropout.
    extra_logit: one more logit, whose value is zero.
    context: of the call; without training in it, there is no dropout.
    float32_logits: whether logits and weights are computed in float32 at
      least; or else in the dtype of `q`.

  Returns:
    The dimensions of `q`, with `value_dim` in the place of `key_dim`.
  """
  wide = mtf.layers.at_least_float32 if float32_logits else (lambda x: x)
  shared = k.shape.keep(q.shape - key_dim)
  rest = (q.shape - key_dim).drop(shared)
  points = mtf.Shape([*shared, *rest, memory_length_dim])
  logits = mtf.layers.us_einsum([wide(q), wide(k)], points)
  if bias is not None:
    logits = mtf.add(logits, mtf.cast(bias, logits.dtype), points)
  weights = mtf.softmax(logits, memory_length_dim, extra_logit=extra_logit)
  weights = mtf.cast(weights, v.dtype)
  is_training = context is None or context.train
  noise_shape = points.drop(dropout_broadcast_dims or ())
  weights = mtf.dropout(
    weights, is_training, rate=dropout_rate, noise_shape=noise_shape
  )
  output_shape = mtf.Shape(value_dim if d == key_dim else d for d in q.shape)
  return mtf.einsum([weights, v], output_shape)


def visibility_mask_to_attention_bias(
  visible: mtf.Tensor, dtype: tf.DType
) -> mtf.Tensor:
  """0 where a position may be seen, and almost minus infinity elsewhere.

  Args:
    visible: bool.
    dtype: of the result.
  """
  hidden = mtf.cast(mtf.logical_not(visible), dtype)
  return mtf.multiply(hidden, INVISIBLE)
