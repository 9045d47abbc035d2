"""Attention of the blocks of an image to themselves and those around them.

Parmar et al., Image transformer, 2018. Rows and columns of blocks may be split
over the mesh: what comes from neighbours comes by shifts. At the border there
are zeros, which have their part in the weights.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension, Shape
from ..ops.linear.einsum import einsum
from ..ops.linear.reshape import rename_dimension, replace_dimensions
from .attention import dot_product_attention, multihead_attention_vars
from .attention_masks import attention_bias_local_2d_block
from .block_attention import as_memory, with_neighbours


def local_2d_halo_exchange(
  k: Tensor,
  v: Tensor,
  num_h_blocks: Dimension | None,
  h_dim: Dimension,
  num_w_blocks: Dimension | None,
  w_dim: Dimension,
  mask_right: bool,
) -> tuple[Tensor, Tensor]:
  """Keys and values of each block, and of the blocks around it.

  Args:
    k: has all the dimensions that are given.
    v: likewise.
    num_h_blocks: counts the rows of blocks; None for a single one, which gets
      zeros for neighbours.
    h_dim: the rows in a block.
    num_w_blocks: counts the columns of blocks, or None.
    w_dim: the columns in a block.
    mask_right: whether the blocks below and on the right are left out.

  Returns:
    `k` and `v`, in which `h_dim` and `w_dim` are two or three times as long.
  """

  def around(x: Tensor) -> Tensor:
    x = with_neighbours(x, num_h_blocks, h_dim, mask_right)
    return with_neighbours(x, num_w_blocks, w_dim, mask_right)

  return around(k), around(v)


def local_2d_self_attention_spatial_blocks(  # noqa: PLR0913  as there
  query_antecedent: Tensor,
  kv_channels: Dimension,
  heads: Dimension,
  is_training: bool,
  memory_h_dim: Dimension | None = None,
  memory_w_dim: Dimension | None = None,
  mask_right: bool = False,
  master_dtype: Any = tf.float32,
  slice_dtype: Any = tf.float32,
  name: str | None = None,
) -> Tensor:
  """Attention of the blocks of an image, each to itself and those around it.

  A query's weights are over all positions of these blocks, rows and columns.

  Args:
    query_antecedent: batch, rows of blocks, columns of blocks, h, w, channels.
    kv_channels: of a key, and of a value.
    heads: counts the heads.
    is_training: has no effect, since there is no dropout.
    memory_h_dim: the dimension h, as positions that are looked at: of the same
      size and another name; by default `memory_<h>`.
    memory_w_dim: likewise, the dimension w.
    mask_right: whether a query sees only what is made before it, if the blocks
      are made row by row, and so are the positions in each.
    master_dtype: of the variable in a checkpoint.
    slice_dtype: of the variable in memory.
    name: the scope of the variable `qkvo`.

  Returns:
    The shape of `query_antecedent`.

  Raises:
    ShapeError: it has other than six dimensions, or a memory dimension has
      another size than its own.
  """
  x = query_antecedent
  if len(x.shape) != 6:
    raise ShapeError(
      "local_2d_self_attention_spatial_blocks wants [batch, rows of blocks, "
      f"columns of blocks, h, w, channels], got [{x.shape}]"
    )
  batch, h_blocks, w_blocks, h, w, channels = x.shape.dims
  memory_h, memory_w = as_memory(h, memory_h_dim), as_memory(w, memory_w_dim)
  with layer_scope(x.graph, name, "multihead_attention"):
    wq, wk, wv, wo = multihead_attention_vars(
      x.mesh, heads, channels, kv_channels, master_dtype, slice_dtype, x.dtype
    )
  lead = [batch, heads, h_blocks, w_blocks]
  m = rename_dimension(x, h.name, memory_h.name)
  m = rename_dimension(m, w.name, memory_w.name)
  q = einsum([x, wq], Shape([*lead, h, w, kv_channels]))
  kv_shape = Shape([*lead, memory_h, memory_w, kv_channels])
  k, v = (einsum([m, kernel], kv_shape) for kernel in (wk, wv))
  k, v = local_2d_halo_exchange(
    k, v, h_blocks, memory_h, w_blocks, memory_w, mask_right
  )
  around = k.shape.dims[-3:-1]
  memory = Dimension("memory_block", around[0].size * around[1].size)
  k, v = (replace_dimensions(y, around, memory) for y in (k, v))
  mask = None
  if mask_right:
    mask = replace_dimensions(
      attention_bias_local_2d_block(x.mesh, h, w, memory_h, memory_w),
      around,
      memory,
    )
  o = dot_product_attention(q, k, v, mask, is_training)
  return einsum([o, wo], x.shape)
