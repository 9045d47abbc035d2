"""Attention to means of neighbouring positions.

Liu et al., Generating Wikipedia by summarizing long sequences, 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension, Shape
from ..ops.binary import add, greater, multiply
from ..ops.cast import cast
from ..ops.linear.einsum import einsum
from ..ops.reductions import pool_tensor_1d
from ..ops.source import mtf_range
from .attention import dot_product_attention, multihead_attention_vars
from .attention_masks import hide, rename_length_to_memory_length
from .precision import at_least_float32


def compress_mean(x: Tensor, dim: Dimension, compression_factor: int) -> Tensor:
  """The means of groups of neighbours along a dimension.

  Args:
    x: a tensor.
    dim: a dimension of it.
    compression_factor: the size of a group.

  Returns:
    The shape of `x`, in which `dim` is smaller by the factor.

  Raises:
    ShapeError: the size of the dimension is no multiple of the factor.
  """
  if compression_factor < 1 or dim.size % compression_factor:
    raise ShapeError(
      f"compress_mean: {dim} does not divide into groups of "
      f"{compression_factor}; choose a divisor of {dim.size}"
    )
  means = pool_tensor_1d(at_least_float32(x), dim, pool_size=compression_factor)
  return cast(means, x.dtype)


def multihead_self_attention_memory_compressed(  # noqa: PLR0913  as there
  x: Tensor,
  mask_right: bool,
  compression_factor: int,
  kv_channels: Dimension,
  heads: Dimension,
  is_training: bool,
  dropout: float = 0.0,
  dropout_broadcast_dims: Sequence[Dimension] | None = None,
  master_dtype: Any = tf.float32,
  slice_dtype: Any = tf.float32,
  name: str | None = "multihead_attention",
) -> Tensor:
  """Self-attention to a memory that is shorter by a factor.

  There is one more logit, a zero, so that a query that sees no group yet has
  something to look at.

  Args:
    x: batch dimensions, length, channels.
    mask_right: whether a query sees only those groups that end at or before
      its position.
    compression_factor: how many positions make a group; divides the length.
    kv_channels: of a key, and of a value.
    heads: counts the heads.
    is_training: whether dropout is on.
    dropout: the rate of dropout on the weights.
    dropout_broadcast_dims: dimensions that share the decisions of dropout.
    master_dtype: of the variable in a checkpoint.
    slice_dtype: of the variable in memory.
    name: the scope of the variable `qkvo`.

  Returns:
    The shape of `x`.

  Raises:
    ShapeError: the length is no multiple of the factor.
  """
  *batch, length, channels = x.shape.dims
  with layer_scope(x.graph, name, "multihead_attention"):
    wq, wk, wv, wo = multihead_attention_vars(
      x.mesh, heads, channels, kv_channels, master_dtype, slice_dtype, x.dtype
    )
    m = rename_length_to_memory_length(
      compress_mean(x, length, compression_factor), length.name
    )
    memory_length = m.shape.dims[-2]
    q = einsum([x, wq], Shape([*batch, heads, length, kv_channels]))
    k = einsum([m, wk], Shape([*batch, heads, memory_length, kv_channels]))
    v = einsum([m, wv], Shape([*batch, heads, memory_length, kv_channels]))
    mask = None
    if mask_right:
      group = mtf_range(x.mesh, memory_length, tf.int32)
      end = add(multiply(group, compression_factor), compression_factor - 1)
      position = mtf_range(x.mesh, length, tf.int32)
      mask = hide(greater(end, position), x.dtype)
    o = dot_product_attention(
      q, k, v, mask, is_training, dropout, dropout_broadcast_dims, 0.0
    )
    return einsum([o, wo], x.shape)
