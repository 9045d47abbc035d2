"""Masks: what is added to the logits of attention, so that some are not seen.

A mask is 0 where a query may look, and a large negative number elsewhere.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..core.graph import Mesh, Tensor
from ..core.shape import Dimension
from ..ops.binary import equal, greater, less, multiply, not_equal
from ..ops.cast import cast
from ..ops.linear.concat_split import concat
from ..ops.linear.reshape import rename_dimension, reshape
from ..ops.source import mtf_range, zeros

INVISIBLE = -1e9  # added to the logit of what must not be seen


def hide(condition: Tensor, dtype: Any = tf.float32) -> Tensor:
  """A mask that hides what meets a condition.

  Args:
    condition: booleans.
    dtype: of the mask. One that cannot hold -1e9 has its lowest number instead.
  """
  dtype = tf.as_dtype(dtype)
  return multiply(cast(condition, dtype), max(INVISIBLE, float(dtype.min)))


def rename_length_to_memory_length(
  x: Tensor,
  length_name: str = "length",
  memory_length_name: str = "memory_length",
) -> Tensor:
  """`x`, whose positions are those that are looked at.

  Args:
    x: a tensor.
    length_name: the name of a dimension.
    memory_length_name: its name in the result.
  """
  return rename_dimension(x, length_name, memory_length_name)


def attention_mask_ignore_padding(
  inputs: Tensor, dtype: Any = tf.float32
) -> Tensor:
  """Hides padding from attention to an encoder.

  Args:
    inputs: ids, ..., length; 0 is padding.
    dtype: of the mask.

  Returns:
    The dimensions of `inputs`, with memory_length for length.
  """
  return hide(equal(rename_length_to_memory_length(inputs), 0), dtype)


def attention_mask_autoregressive(
  query_pos: Tensor, dtype: Any = tf.float32
) -> Tensor:
  """Hides the future.

  Args:
    query_pos: numbers of the positions, ..., length.
    dtype: of the mask.

  Returns:
    ..., length, memory_length.
  """
  memory_pos = rename_length_to_memory_length(query_pos)
  return hide(less(query_pos, memory_pos), dtype)


def attention_mask_same_segment(
  query_segment: Tensor,
  memory_segment: Tensor | None = None,
  dtype: Any = tf.float32,
) -> Tensor:
  """Hides other segments.

  Args:
    query_segment: numbers of the segments, ..., length.
    memory_segment: likewise, for what is looked at; by default the same.
    dtype: of the mask.

  Returns:
    ..., length, memory_length.
  """
  if memory_segment is None:
    memory_segment = query_segment
  memory_segment = rename_length_to_memory_length(memory_segment)
  return hide(not_equal(query_segment, memory_segment), dtype)


def attention_bias_local_block(
  mesh: Mesh,
  block_length: Dimension,
  memory_length: Dimension,
  dtype: Any = tf.int32,
) -> Tensor:
  """Hides the future within a block; the block before it is all visible.

  Args:
    mesh: the mesh.
    block_length: the positions of a block's queries.
    memory_length: gives the result's other dimension its name.
    dtype: of the positions that are compared.

  Returns:
    float32: block_length, then as many positions of the block before, followed
    by those of the block itself.
  """
  memory = Dimension(memory_length.name, block_length.size)
  future = less(
    mtf_range(mesh, block_length, dtype), mtf_range(mesh, memory, dtype)
  )
  past = zeros(mesh, [block_length, memory])
  return concat([past, hide(future)], memory.name)


def attention_bias_local_2d_block(
  mesh: Mesh,
  h_dim: Dimension,
  w_dim: Dimension,
  memory_h_dim: Dimension,
  memory_w_dim: Dimension,
  dtype: Any = tf.int32,
) -> Tensor:
  """Hides what comes later, row by row, in a block of an image.

  The blocks above, on the left, and above on the left are all visible: blocks
  are made row by row, too.

  Args:
    mesh: the mesh.
    h_dim: the rows of a block's queries.
    w_dim: its columns.
    memory_h_dim: gives the rows that are looked at their name.
    memory_w_dim: likewise, their columns.
    dtype: of the positions that are compared.

  Returns:
    float32: h_dim, w_dim, and twice as many memory rows and columns; of each
    the first half is that of the neighbour.
  """
  rows = Dimension(memory_h_dim.name, h_dim.size)
  columns = Dimension(memory_w_dim.name, w_dim.size)
  query = _row_by_row(mesh, h_dim, w_dim, dtype)
  memory = _row_by_row(mesh, rows, columns, dtype)
  own = hide(greater(memory, query, [h_dim, w_dim, rows, columns]))
  visible = zeros(mesh, own.shape)
  below = concat([visible, own], columns.name)
  return concat([zeros(mesh, below.shape), below], rows.name)


def _row_by_row(
  mesh: Mesh, h_dim: Dimension, w_dim: Dimension, dtype: Any
) -> Tensor:
  """The number of each position, counted row by row."""
  flat = Dimension(h_dim.name, h_dim.size * w_dim.size)
  return reshape(mtf_range(mesh, flat, dtype), [h_dim, w_dim])
