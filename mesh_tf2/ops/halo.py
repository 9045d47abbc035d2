"""Halo exchange: every block together with the borders of its neighbours.

A dimension is cut into blocks, which may be split over the mesh: each processor
holds some blocks. What it needs of its neighbours' comes by a shift of just
those positions. Convolutions and pooling need none of this: there a spatial
dimension may itself be split.
"""

from __future__ import annotations

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension
from .linear.concat_split import concat
from .linear.shift import shift
from .linear.slice_pad import mtf_slice


def halo_exchange(
  x: Tensor,
  blocks_dim: Dimension,
  block_size_dim: Dimension,
  halo_size: int,
  wrap: bool = False,
) -> Tensor:
  """Each block, with what is next to it on both sides.

  Args:
    x: a tensor with `blocks_dim` and `block_size_dim`, of which it is thought
      as one long dimension.
    blocks_dim: the blocks; may be split.
    block_size_dim: the positions in a block; must not be split.
    halo_size: how many positions to add on each side; may be more than a block.
    wrap: whether the first block is next to the last one; zeros are next to
      them otherwise.

  Returns:
    The dimensions of `x`, in the same order; that of a block is 2 * halo_size
    longer.

  Raises:
    ShapeError: `x` lacks a dimension, or `halo_size` is negative.
  """
  left = _side(x, blocks_dim, block_size_dim, halo_size, wrap, 1)
  right = _side(x, blocks_dim, block_size_dim, halo_size, wrap, -1)
  parts = [*left, x, *right[::-1]]
  return concat(parts, block_size_dim.name) if left else x


def left_halo_exchange(
  x: Tensor,
  blocks_dim: Dimension,
  block_size_dim: Dimension,
  halo_size: int,
  wrap: bool = False,
) -> Tensor:
  """Each block, with what is before it; see `halo_exchange`.

  Returns:
    The dimensions of `x`, in the same order; that of a block is `halo_size`
    longer.

  Raises:
    ShapeError: `x` lacks a dimension, or `halo_size` is negative.
  """
  left = _side(x, blocks_dim, block_size_dim, halo_size, wrap, 1)
  return concat([*left, x], block_size_dim.name) if left else x


def _side(
  x: Tensor,
  blocks_dim: Dimension,
  block_size_dim: Dimension,
  halo_size: int,
  wrap: bool,
  direction: int,
) -> list[Tensor]:
  """What is on one side of each block, from the furthest to the nearest."""
  x.shape.index(blocks_dim)
  x.shape.index(block_size_dim)
  size, name = block_size_dim.size, block_size_dim.name
  if halo_size < 0 or (halo_size and not size):
    raise ShapeError(
      f"halo exchange of {halo_size} positions from blocks of {size}: the halo "
      "cannot be negative, and blocks must have positions"
    )
  found: list[Tensor] = []
  for distance in range(1, halo_size // size + 1 if halo_size else 1):
    found.insert(0, shift(x, direction * distance, blocks_dim, wrap))
  if rest := halo_size % size if halo_size else 0:
    begin = size - rest if direction > 0 else 0
    part = mtf_slice(x, begin, rest, name)
    far = halo_size // size + 1
    found.insert(0, shift(part, direction * far, blocks_dim, wrap))
  return found
