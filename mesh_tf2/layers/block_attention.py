"""Attention of blocks to themselves and to the blocks next to them.

The blocks may be split over the mesh: what comes from neighbours comes by
shifts. At the border there are zeros, which have their part in the weights.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension, Shape
from ..ops.halo import halo_exchange, left_halo_exchange
from ..ops.linear.einsum import einsum
from ..ops.linear.reshape import rename_dimension
from ..ops.linear.slice_pad import pad
from .attention import dot_product_attention, multihead_attention_vars
from .attention_masks import attention_bias_local_block


def with_neighbours(
  x: Tensor, blocks: Dimension | None, block_size: Dimension, left_only: bool
) -> Tensor:
  """Each block, with the whole blocks on its left and, maybe, its right.

  Args:
    x: has `block_size`, and `blocks` if it is given.
    blocks: counts the blocks; None for a single one.
    block_size: the positions in a block.
    left_only: whether those on the right are left out.
  """
  n = block_size.size
  if blocks is None:
    return pad(x, [n, 0 if left_only else n], block_size.name)
  exchange = left_halo_exchange if left_only else halo_exchange
  return exchange(x, blocks, block_size, n)


def local_1d_halo_exchange(
  k: Tensor,
  v: Tensor,
  num_w_blocks: Dimension | None,
  w_dim: Dimension,
  mask_right: bool,
) -> tuple[Tensor, Tensor]:
  """Keys and values of each block, and of the blocks next to it.

  Args:
    k: has `w_dim`, and `num_w_blocks` if it is given.
    v: likewise.
    num_w_blocks: counts the blocks; None for a single one, which gets zeros
      for neighbours.
    w_dim: the positions in a block.
    mask_right: whether the block on the right is left out.

  Returns:
    `k` and `v`, in which `w_dim` is two or three times as long.
  """
  return (
    with_neighbours(k, num_w_blocks, w_dim, mask_right),
    with_neighbours(v, num_w_blocks, w_dim, mask_right),
  )


def local_self_attention_spatial_blocks(  # noqa: PLR0913  as there
  query_antecedent: Tensor,
  kv_channels: Dimension,
  heads: Dimension,
  is_training: bool,
  memory_w_dim: Dimension | None = None,
  mask_right: bool = False,
  master_dtype: Any = tf.float32,
  slice_dtype: Any = tf.float32,
  name: str | None = None,
) -> Tensor:
  """Attention of a sequence of blocks, each to itself and its neighbours.

  Args:
    query_antecedent: batch, blocks, w, channels.
    kv_channels: of a key, and of a value.
    heads: counts the heads.
    is_training: has no effect, since there is no dropout.
    memory_w_dim: the dimension w, as positions that are looked at: of the same
      size and another name; by default `memory_<w>`.
    mask_right: whether a query sees nothing on its right.
    master_dtype: of the variable in a checkpoint.
    slice_dtype: of the variable in memory.
    name: the scope of the variable `qkvo`.

  Returns:
    The shape of `query_antecedent`.

  Raises:
    ShapeError: it has other than four dimensions, or `memory_w_dim` has
      another size than w.
  """
  x = query_antecedent
  if len(x.shape) != 4:
    raise ShapeError(
      "local_self_attention_spatial_blocks wants [batch, blocks, w, channels], "
      f"got [{x.shape}]"
    )
  batch, blocks, w, channels = x.shape.dims
  memory_w = as_memory(w, memory_w_dim)
  with layer_scope(x.graph, name, "multihead_attention"):
    wq, wk, wv, wo = multihead_attention_vars(
      x.mesh, heads, channels, kv_channels, master_dtype, slice_dtype, x.dtype
    )
  m = rename_dimension(x, w.name, memory_w.name)
  q = einsum([x, wq], Shape([batch, heads, blocks, w, kv_channels]))
  kv_shape = Shape([batch, heads, blocks, memory_w, kv_channels])
  k, v = (einsum([m, kernel], kv_shape) for kernel in (wk, wv))
  k, v = local_1d_halo_exchange(k, v, blocks, memory_w, mask_right)
  mask = None
  if mask_right:
    mask = attention_bias_local_block(x.mesh, w, memory_w)
  o = dot_product_attention(q, k, v, mask, is_training)
  return einsum([o, wo], x.shape)


def as_memory(dim: Dimension, given: Dimension | None) -> Dimension:
  """A dimension of queries, as one of what they look at."""
  if given is None:
    return Dimension(f"memory_{dim.name}", dim.size)
  if given.size != dim.size or given.name == dim.name:
    raise ShapeError(
      f"local attention: the memory dimension {given} must have the size of "
      f"{dim}, and another name"
    )
  return given
