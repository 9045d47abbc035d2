"""Convolutions of images that are cut into blocks.

A dimension of blocks may be split over the mesh: each processor holds some
blocks. A dimension and that of its blocks are put together, which moves
nothing; the convolution exchanges the borders between processors; and the
result is cut into as many blocks again. So blocks are not seen in the result:
it is that of the whole image, for every filter, stride and padding, as long as
it divides into blocks of equal size.

Where a spatial dimension is split itself, there is no need of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension
from ..ops.linear.convolution.stencil import Numbers
from ..ops.linear.einsum import transpose
from ..ops.linear.reshape import reshape
from ..ops.variables import VariableDType
from .convolution import conv2d, conv2d_transpose, conv3d, conv3d_transpose

Blocks = Sequence[Dimension | None]


def conv2d_with_blocks(  # noqa: PLR0913  the original's signature
  x: Tensor,
  output_dim: Dimension,
  filter_size: Sequence[int] = (3, 3),
  strides: Numbers = (1, 1),
  padding: str = "SAME",
  h_blocks_dim: Dimension | None = None,
  w_blocks_dim: Dimension | None = None,
  filter_initializer: Any = None,
  variable_dtype: VariableDType | None = None,
  name: str | None = None,
) -> Tensor:
  """`conv2d` of an image that is cut into blocks.

  Args:
    x: batch dimensions and those of blocks, height and width of a block,
      channels.
    output_dim: the channels of the result.
    filter_size: see `conv2d`.
    strides: see `conv2d`.
    padding: see `conv2d`.
    h_blocks_dim: the dimension of `x` that says which block from top to bottom;
      None if the height is whole.
    w_blocks_dim: the same from left to right.
    filter_initializer: see `conv2d`.
    variable_dtype: see `conv2d`.
    name: see `conv2d`.

  Returns:
    The dimensions of `x` in their order, height and width of a block as large
    as the convolution makes them, `output_dim`.

  Raises:
    ShapeError: the result does not divide into so many blocks, or the
      arguments do not fit `x`.
  """

  def whole(x: Tensor) -> Tensor:
    return conv2d(
      x,
      output_dim,
      filter_size,
      strides,
      padding,
      filter_initializer,
      variable_dtype,
      name,
    )

  return _in_blocks(x, [h_blocks_dim, w_blocks_dim], whole)


def conv2d_transpose_with_blocks(  # noqa: PLR0913  the original's signature
  x: Tensor,
  output_dim: Dimension,
  filter_size: Sequence[int] = (2, 2),
  strides: Numbers = (2, 2),
  padding: str = "SAME",
  h_blocks_dim: Dimension | None = None,
  w_blocks_dim: Dimension | None = None,
  filter_initializer: Any = None,
  variable_dtype: VariableDType | None = None,
  name: str | None = None,
) -> Tensor:
  """`conv2d_transpose` of an image in blocks; see `conv2d_with_blocks`."""

  def whole(x: Tensor) -> Tensor:
    return conv2d_transpose(
      x,
      output_dim,
      filter_size,
      strides,
      padding,
      filter_initializer,
      variable_dtype,
      name,
    )

  return _in_blocks(x, [h_blocks_dim, w_blocks_dim], whole)


def conv3d_with_blocks(  # noqa: PLR0913  the original's signature
  x: Tensor,
  output_dim: Dimension,
  filter_size: Sequence[int] = (3, 3, 3),
  strides: Numbers = (1, 1, 1),
  padding: str = "SAME",
  d_blocks_dim: Dimension | None = None,
  h_blocks_dim: Dimension | None = None,
  filter_initializer: Any = None,
  variable_dtype: VariableDType | None = None,
  name: str | None = None,
) -> Tensor:
  """`conv3d` of a volume in blocks of depth and height; the width is whole.

  See `conv2d_with_blocks`.
  """

  def whole(x: Tensor) -> Tensor:
    return conv3d(
      x,
      output_dim,
      filter_size,
      strides,
      padding,
      filter_initializer,
      variable_dtype,
      name,
    )

  return _in_blocks(x, [d_blocks_dim, h_blocks_dim, None], whole)


def conv3d_transpose_with_blocks(  # noqa: PLR0913  the original's signature
  x: Tensor,
  output_dim: Dimension,
  filter_size: Sequence[int] = (2, 2, 2),
  strides: Numbers = (2, 2, 2),
  padding: str = "SAME",
  d_blocks_dim: Dimension | None = None,
  h_blocks_dim: Dimension | None = None,
  filter_initializer: Any = None,
  variable_dtype: VariableDType | None = None,
  name: str | None = None,
) -> Tensor:
  """`conv3d_transpose` of a volume in blocks; see `conv3d_with_blocks`."""

  def whole(x: Tensor) -> Tensor:
    return conv3d_transpose(
      x,
      output_dim,
      filter_size,
      strides,
      padding,
      filter_initializer,
      variable_dtype,
      name,
    )

  return _in_blocks(x, [d_blocks_dim, h_blocks_dim, None], whole)


def _in_blocks(
  x: Tensor, blocks: Blocks, whole: Callable[[Tensor], Tensor]
) -> Tensor:
  """What `whole` makes of the image without blocks, in blocks again.

  Args:
    x: the image in blocks.
    blocks: for each spatial dimension that of its blocks, or None.
    whole: takes and makes batch dimensions, spatial ones, channels.
  """
  n = len(blocks)
  if len(x.shape) < n + 1:
    raise ShapeError(
      f"a convolution over {n} spatial dimensions cannot take [{x.shape}]"
    )
  spatial = x.shape[-n - 1 : -1]
  for b in filter(None, blocks):
    if b not in x.shape[: -n - 1]:
      raise ShapeError(
        f"the dimension of blocks {b} is not among those before height and "
        f"width of [{x.shape}]"
      )
  batch = [d for d in x.shape[: -n - 1] if d not in blocks]
  pairs = list(zip(blocks, spatial, strict=True))
  cut = [d for pair in pairs for d in pair if d is not None]
  joined = [d if b is None else _joined(b, d) for b, d in pairs]
  x_whole = transpose(x, [*batch, *cut, x.shape[-1]])
  y = whole(reshape(x_whole, [*batch, *joined, x.shape[-1]]))
  sizes = {
    d.name: _block(b, d, made)
    for (b, d), made in zip(pairs, y.shape[-n - 1 : -1], strict=True)
  }
  cut = [sizes.get(d.name, d) for d in cut]
  order = [sizes.get(d.name, d) for d in x.shape[:-1]]
  y = reshape(y, [*batch, *cut, y.shape[-1]])
  return transpose(y, [*order, y.shape[-1]])


def _joined(blocks: Dimension, block: Dimension) -> Dimension:
  """All positions in all blocks; split where the blocks are."""
  return Dimension(blocks.name, blocks.size * block.size)


def _block(
  blocks: Dimension | None, block: Dimension, made: Dimension
) -> Dimension:
  """How large a block of the result is."""
  if blocks is None:
    return made
  if made.size % blocks.size:
    raise ShapeError(
      f"a convolution of {blocks.size} blocks of {block.size} positions makes "
      f"{made.size} positions, which do not divide into {blocks.size} blocks "
      f"({blocks.name}); choose another stride or padding, or other blocks"
    )
  return Dimension(block.name, made.size // blocks.size)
