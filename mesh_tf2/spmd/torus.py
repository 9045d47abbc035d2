"""The cores of a machine, and which of them are neighbours."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Sequence

import numpy as np

from ..core.errors import LayoutError


class Links(enum.Enum):
  """Which positions along a dimension of a machine are neighbours."""

  LINE = "those next to each other"
  RING = "those next to each other, and the last and the first"
  ALL = "all of them: the cores of a chip"


@dataclasses.dataclass(frozen=True)
class Side:
  """A dimension of a machine.

  Attributes:
    size: how many positions there are.
    links: which of them are neighbours.
  """

  size: int
  links: Links

  def distance(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Links on the shortest way from positions `a` to positions `b`."""
    straight = np.abs(a - b)
    if self.links is Links.ALL:
      return np.minimum(straight, 1)
    if self.links is Links.RING:
      return np.minimum(straight, self.size - straight)
    return straight

  def positions(self, factors: Sequence[int]) -> np.ndarray:
    """The position for each value of the digits of `factors`, major first.

    A ring that is cut in two is folded, the second half runs backwards: the
    halves are then half as far from each other, and those of a ring of four are
    neighbours.
    """
    at = np.arange(self.size).reshape(factors)
    if self.links is Links.RING and factors[0] == 2:
      at[1] = self.size - 1 - at[0]
    return at

  def can_be_shared(self, factors: Sequence[int]) -> bool:
    """Whether a step of each digit of `factors` leads to a neighbour."""
    return (
      sum(n > 1 for n in factors) <= 1
      or self.links is Links.ALL
      or (self.links is Links.RING and self.size == 4)
    )


@dataclasses.dataclass(frozen=True)
class Torus:
  """Chips in a grid or torus, and the cores on each.

  Two cores are neighbours if they are on one chip, or have the same place on
  chips that a link joins. Cores are numbered row-major over `shape`.

  Attributes:
    shape: the sizes: x; x, y; x, y, cores; or x, y, z, cores.
    wraparound: for each dimension of `shape` whether a link joins the last chip
      with the first one; for the cores it says nothing. None where it is not
      known: then there are none.
  """

  shape: tuple[int, ...]
  wraparound: tuple[bool, ...] | None = None

  def __post_init__(self) -> None:
    if not 1 <= len(self.shape) <= 4 or any(n < 1 for n in self.shape):
      raise LayoutError(
        f"physical_shape is {list(self.shape)}; it is [x], [x, y], [x, y, "
        "cores] or [x, y, z, cores], of sizes from 1"
      )
    if self.wraparound and len(self.wraparound) != len(self.shape):
      raise LayoutError(
        f"wraparound is {list(self.wraparound)}; it has an entry for each of "
        f"physical_shape {list(self.shape)}, that for the cores too"
      )

  @property
  def size(self) -> int:
    """How many cores there are."""
    return math.prod(self.shape)

  @property
  def sides(self) -> list[Side]:
    """The dimensions."""
    wraps = self.wraparound or (False,) * len(self.shape)
    links = [Links.RING if wrap else Links.LINE for wrap in wraps]
    if len(self.shape) > 2:
      links[-1] = Links.ALL
    return [Side(n, link) for n, link in zip(self.shape, links, strict=True)]

  def distance(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Links on the shortest ways from cores `a` to cores `b`, by number."""
    ends = (np.unravel_index(x, self.shape) for x in (a, b))
    ways = zip(self.sides, *ends, strict=True)
    return np.sum([side.distance(x, y) for side, x, y in ways], axis=0)


@dataclasses.dataclass(frozen=True)
class AxisHops:
  """How far the processors along a mesh axis are from each other.

  Attributes:
    kind: "ring" if each is a neighbour of the next, and the last of the first;
      "line" if only the last and the first are none; else "scattered".
    total: links from each processor to the next one, and from the last to the
      first, in all groups of the axis together.
  """

  kind: str
  total: int


def axis_hops(
  sizes: Sequence[int],
  logical_to_physical: Sequence[int],
  torus: Torus,
) -> list[AxisHops]:
  """What an assignment makes of each mesh axis.

  Args:
    sizes: the sizes of the mesh axes.
    logical_to_physical: a core number for each processor.
    torus: the cores.
  """
  cores = np.reshape(logical_to_physical, sizes)
  found = []
  for axis in range(cores.ndim):
    ring = np.moveaxis(cores, axis, 0)
    hops = torus.distance(ring, np.roll(ring, -1, axis=0))
    between, back = bool((hops[:-1] <= 1).all()), bool((hops[-1] <= 1).all())
    kind = "scattered" if not between else "ring" if back else "line"
    found.append(AxisHops(kind, int(hops.sum())))
  return found
