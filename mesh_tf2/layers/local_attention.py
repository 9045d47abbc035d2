"""Attention to the last few positions, whole and one after another.

The length is cut into blocks that stay where they are, even if it is split:
what a block needs of the one before comes by a shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension, Shape
from ..ops.binary import (
  add,
  equal,
  greater,
  less_equal,
  logical_or,
  mod,
  sub,
  where,
)
from ..ops.halo import left_halo_exchange
from ..ops.linear.einsum import einsum
from ..ops.linear.reshape import replace_dimensions
from ..ops.source import mtf_range
from .attention import dot_product_attention, multihead_attention_vars
from .attention_masks import hide

SHORTEST_BLOCK = 128  # shorter ones make for small matrix products


def masked_local_attention_1d(  # noqa: PLR0913  the original's signature
  x: Tensor,
  kv_channels: Dimension,
  heads: Dimension,
  is_training: bool,
  window_size: int = 128,
  master_dtype: Any = tf.float32,
  slice_dtype: Any = tf.float32,
  length_per_split: int | None = None,
  return_kv: list[Tensor] | None = None,
  params: Sequence[Tensor] | None = None,
  name: str | None = None,
) -> Tensor:
  """Attention of position p to those in (p - window_size, p].

  Before the first position there are as many as it takes whose keys and values
  are zero; they have their part in the weights.

  Args:
    x: batch dimensions, length, channels.
    kv_channels: of a key, and of a value.
    heads: counts the heads.
    is_training: has no effect, since there is no dropout.
    window_size: how many positions are seen, that of the query included.
    master_dtype: of the variable in a checkpoint.
    slice_dtype: of the variable in memory.
    length_per_split: how many positions a processor holds, by default all: the
      length is cut into blocks within these.
    return_kv: a list to which the keys and the values are appended: batch
      dimensions, heads, length, kv_channels.
    params: four kernels to use instead of a variable, see
      `multihead_attention_params`.
    name: the scope of the variable `qkvo`.

  Returns:
    The shape of `x`.

  Raises:
    ShapeError: the window is empty, or `length_per_split` does not divide the
      length.
  """
  *batch, length, channels = x.shape.dims
  block = _block_length(length, window_size, length_per_split)
  with layer_scope(x.graph, name, "masked_local_attention_1d"):
    wq, wk, wv, wo = params or multihead_attention_vars(
      x.mesh, heads, channels, kv_channels, master_dtype, slice_dtype, x.dtype
    )
  shape = Shape([*batch, heads, length, kv_channels])
  q, k, v = (einsum([x, w], shape) for w in (wq, wk, wv))
  if return_kv is not None:
    return_kv.extend([k, v])
  # Named like the length, the blocks are split as it is.
  blocks = Dimension(length.name, length.size // block)
  query = Dimension("query_block_length", block)
  memory = Dimension("memory_block_length", block)
  q = replace_dimensions(q, length, [blocks, query])
  k, v = (
    left_halo_exchange(
      replace_dimensions(y, length, [blocks, memory]),
      blocks,
      memory,
      window_size,
    )
    for y in (k, v)
  )
  here = add(mtf_range(x.mesh, query, tf.int32), window_size)
  there = mtf_range(x.mesh, k.shape.dims[-2], tf.int32)
  points = Shape([query, k.shape.dims[-2]])
  future = greater(there, here, points)
  past = less_equal(there, sub(here, window_size), points)
  mask = hide(logical_or(future, past), x.dtype)
  o = dot_product_attention(q, k, v, mask, is_training)
  o = replace_dimensions(o, [blocks, query], length)
  return einsum([o, wo], x.shape)


def _block_length(
  length: Dimension, window_size: int, length_per_split: int | None
) -> int:
  """The largest that divides what a processor holds and is not too long."""
  held = length_per_split or length.size
  if window_size < 1 or length.size % held:
    raise ShapeError(
      f"masked_local_attention_1d of {length}: window_size {window_size} must "
      f"be positive, and length_per_split {held} must divide the length"
    )
  longest = min(held, max(window_size, SHORTEST_BLOCK))
  return next(n for n in range(longest, 0, -1) if held % n == 0)


def masked_local_attention_1d_incremental(
  x: Tensor,
  prev_k: Tensor,
  prev_v: Tensor,
  step_num: Tensor,
  master_dtype: Any = None,
  slice_dtype: Any = None,
  params: Sequence[Tensor] | None = None,
  name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
  """One step of `masked_local_attention_1d`.

  The keys and values of the window are kept in turn: those of position p
  stand at p modulo window_length.

  Args:
    x: batch dimensions, channels: the input at this position.
    prev_k: batch dimensions, heads, window_length, kv_channels: the keys so
      far; zeros at first.
    prev_v: likewise, the values.
    step_num: int32 scalar: the position, counted from 0.
    master_dtype: of the variable in a checkpoint; float32 by default.
    slice_dtype: of the variable in memory; float32 by default.
    params: four kernels to use instead of a variable.
    name: the scope of the variable `qkvo`.

  Returns:
    The output of the shape of `x`, and the new keys and values.
  """
  *batch, channels = x.shape.dims
  heads, window, kv_channels = prev_k.shape.dims[-3:]
  with layer_scope(x.graph, name, "masked_local_attention_1d"):
    wq, wk, wv, wo = params or multihead_attention_vars(
      x.mesh,
      heads,
      channels,
      kv_channels,
      master_dtype or tf.float32,
      slice_dtype or tf.float32,
      x.dtype,
    )
  shape = Shape([*batch, heads, kv_channels])
  q, k, v = (einsum([x, w], shape) for w in (wq, wk, wv))
  here = equal(
    mtf_range(x.mesh, window, step_num.dtype), mod(step_num, window.size)
  )
  k = where(here, k, prev_k, prev_k.shape)
  v = where(here, v, prev_v, prev_v.shape)
  o = dot_product_attention(q, k, v, None, is_training=False)
  return einsum([o, wo], x.shape), k, v
