"""A mesh spread over a machine in tiles of stated shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.errors import LayoutError
from ..core.shape import Dimension, Shape

# A mesh dimension and the shape of its tiles: a size for each dimension of the
# machine. None stands for all that the others leave.
TilingSpec = Sequence[tuple[str, Sequence[int] | None]]


class HierarchicalTiling:
  """A mesh whose last dimension is a tile, and the others are tiles of tiles.

  Along each dimension of the machine an earlier mesh dimension has the larger
  strides: the processors of the last one are a solid block of cores. Within its
  tile a mesh dimension runs row-major; `auto_logical_to_physical_tpu` finds
  orders in which neighbours stay neighbours.

  Args:
    spec: for each mesh dimension its name and the shape of its tile, a size for
      each dimension of the machine; None, for one of them, takes what is left.
    physical_shape: the sizes of the machine, such as [x, y, cores].

  Attributes:
    logical_to_physical: for each processor, row-major over the mesh, the number
      of its core, row-major over `physical_shape`.
    mesh_shape: the mesh.

  Raises:
    LayoutError: the tiles do not fill the machine.

  Example:
    >>> import mesh_tf2 as mtf
    >>> tiling = mtf.simd_mesh_impl.HierarchicalTiling(
    ...   [("batch", None), ("model", [1, 2])], physical_shape=[2, 4]
    ... )
    >>> tiling.mesh_shape
    batch:4 model:2
    >>> tiling.logical_to_physical
    [0, 1, 2, 3, 4, 5, 6, 7]
  """

  def __init__(self, spec: TilingSpec, physical_shape: Sequence[int]) -> None:
    tiles = _filled(spec, physical_shape)
    self.mesh_shape = Shape(
      Dimension(name, math.prod(tile))
      for (name, _), tile in zip(spec, tiles, strict=True)
    )
    # Digits of the cores, dimension by dimension of the machine, major first.
    cores = np.arange(math.prod(physical_shape)).reshape(
      [tile[i] for i in range(len(physical_shape)) for tile in tiles]
    )
    by_tile = [
      i * len(tiles) + j
      for j in range(len(tiles))
      for i in range(len(physical_shape))
    ]
    self.logical_to_physical: list[int] = (
      cores.transpose(by_tile).ravel().tolist()
    )

  @classmethod
  def spec_to_mesh_shape(cls, spec: TilingSpec, num_processors: int) -> Shape:
    """The mesh of a tiling of so many processors.

    Raises:
      LayoutError: the tiles do not use up the processors.
    """
    known = [math.prod(tile) for _, tile in spec if tile is not None]
    rest, left = divmod(num_processors, math.prod(known))
    missing = len(spec) - len(known)
    if left or missing > 1 or (not missing and rest != 1):
      raise LayoutError(
        f"tiling {list(spec)} does not use up {num_processors} processors; "
        "give one mesh dimension the tile None"
      )
    return Shape(
      Dimension(name, rest if tile is None else math.prod(tile))
      for name, tile in spec
    )


def _filled(spec: TilingSpec, physical_shape: Sequence[int]) -> list[list[int]]:
  """The tiles, with sizes in place of None."""
  known = [list(tile) for _, tile in spec if tile is not None]
  odd = [tile for tile in known if len(tile) != len(physical_shape)]
  if odd:
    raise LayoutError(
      f"tile {odd[0]} needs a size for each dimension of the machine "
      f"{list(physical_shape)}"
    )
  used = [math.prod(sizes) for sizes in zip(*known, strict=True)]
  used = used or [1] * len(physical_shape)
  rest = [n // part for n, part in zip(physical_shape, used, strict=True)]
  whole = [n * part for n, part in zip(rest, used, strict=True)]
  missing = len(spec) - len(known)
  if (
    whole != list(physical_shape)
    or missing > 1
    or (not missing and math.prod(rest) > 1)
  ):
    raise LayoutError(
      f"tiling {list(spec)} does not fill the machine {list(physical_shape)}; "
      "along each of its dimensions the product of the tiles' sizes is its "
      "size, and one mesh dimension may have the tile None"
    )
  return [rest if tile is None else list(tile) for _, tile in spec]
