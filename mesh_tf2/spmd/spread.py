"""Ways to spread a mesh over a machine, and the best of them.

Each dimension of the machine is shared out to mesh axes: every one that shares
in it owns a digit of its coordinate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from .torus import Side, Torus, axis_hops
from .tours import Digit, Tour, best_tour

MOST_TILINGS = 2000
MOST_ORDERS = 24


def best_spread(sizes: list[int], torus: Torus) -> np.ndarray:
  """The best spread, or row-major order if that is shorter."""
  candidates = [Spread(sizes, torus, t) for t in _whole(sizes, torus)]
  if not candidates:
    candidates = [Spread(sizes, torus, t) for t in _shared(sizes, torus)]
  best = min(candidates, key=lambda spread: spread.rank).cores()
  plain = np.arange(torus.size)
  if _total(sizes, plain, torus) < _total(sizes, best, torus):
    return plain
  return best


def _total(sizes: list[int], cores: np.ndarray, torus: Torus) -> int:
  return sum(axis.total for axis in axis_hops(sizes, cores.tolist(), torus))


# For each dimension of a machine the axes that share it, major first, and the
# size of the part of each.
Tiling = tuple[tuple[tuple[int, int], ...], ...]


def _whole(sizes: list[int], torus: Torus) -> Iterator[Tiling]:
  """Tilings in which a step along any axis leads to a neighbour."""
  for table in _tables(sizes, torus.sides, only_neighbours=True):
    yield _tiling(table, range(len(sizes)))


def _shared(sizes: list[int], torus: Torus) -> Iterator[Tiling]:
  """All other tilings; not more than can be looked at."""
  tables = _tables(sizes, torus.sides, only_neighbours=False)
  tilings = itertools.chain.from_iterable(map(_ordered, tables))
  return itertools.islice(tilings, MOST_TILINGS)


def _ordered(table: list[tuple[int, ...]]) -> dict[Tiling, None]:
  """The different tilings that one table gives, by what is major."""
  orders = itertools.permutations(range(len(table[0])))
  first = itertools.islice(orders, MOST_ORDERS)
  return dict.fromkeys(_tiling(table, order) for order in first)


def _tables(
  room: Sequence[int], sides: Sequence[Side], *, only_neighbours: bool
) -> Iterator[list[tuple[int, ...]]]:
  """For each dimension, how much of it each axis gets, in all ways."""
  if not sides:
    yield []
    return
  for split in _splits(sides[0].size, room):
    if only_neighbours and not sides[0].can_be_shared(split):
      continue
    left = [n // part for n, part in zip(room, split, strict=True)]
    for rest in _tables(left, sides[1:], only_neighbours=only_neighbours):
      yield [split, *rest]


def _tiling(table: list[tuple[int, ...]], order: Sequence[int]) -> Tiling:
  return tuple(
    tuple((a, split[a]) for a in order if split[a] > 1) for split in table
  )


class Spread:
  """A mesh spread over a machine in a given way.

  Args:
    sizes: the sizes of the mesh axes.
    torus: the cores.
    tiling: which axes share which dimension.
  """

  def __init__(self, sizes: list[int], torus: Torus, tiling: Tiling) -> None:
    self._sizes, self._torus, self._tiling = sizes, torus, tiling
    self._tours = [best_tour(self._digits(a)) for a in range(len(sizes))]

  def _digits(self, axis: int) -> tuple[Digit, ...]:
    """What an axis owns of each dimension that it shares in."""
    digits = []
    for side, parts in zip(self._torus.sides, self._tiling, strict=True):
      owners = [a for a, _ in parts]
      if axis in owners:
        factors = tuple(n for _, n in parts)
        digits.append(Digit(side, factors, owners.index(axis)))
    return tuple(digits)

  @property
  def rank(self) -> tuple[int, float]:
    """Axes that are neither ring nor line, then the length of the hops."""
    mean = [t.cost / n for t, n in zip(self._tours, self._sizes, strict=True)]
    return sum(not t.is_line for t in self._tours), round(sum(mean), 6)

  def cores(self) -> np.ndarray:
    """The number of each processor's core."""
    values = [_values(t, a, self._sizes) for a, t in enumerate(self._tours)]
    places = []
    for side, parts in zip(self._torus.sides, self._tiling, strict=True):
      at = side.positions([n for _, n in parts] or [1])
      digits = [next(values[a]) for a, _ in parts]
      places.append(at[tuple(digits)] if digits else np.zeros(1, int))
    everywhere = np.broadcast_arrays(*places, np.empty(self._sizes))[:-1]
    return np.ravel_multi_index(everywhere, self._torus.shape).ravel()


def _values(tour: Tour, axis: int, sizes: list[int]) -> Iterator[np.ndarray]:
  """The values of each digit of an axis, along that axis of the mesh."""
  shape = [n if a == axis else 1 for a, n in enumerate(sizes)]
  return (column.reshape(shape) for column in tour.path.T)


def _splits(size: int, room: Sequence[int]) -> Iterator[tuple[int, ...]]:
  """All ways to write `size` as a product of divisors of the `room`."""
  if not room:
    if size == 1:
      yield ()
    return
  for first in range(math.gcd(size, room[0]), 0, -1):
    if size % first == 0 and room[0] % first == 0:
      for rest in _splits(size // first, room[1:]):
        yield first, *rest
