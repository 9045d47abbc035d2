"""The order in which a mesh axis visits the cores of its block of a machine.

A mesh axis is spread over one or more dimensions of a machine: it owns a digit
of each one's coordinates. A tour visits every value of its digits once.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from .torus import Side


@dataclasses.dataclass(frozen=True)
class Digit:
  """What a mesh axis owns of a dimension of a machine.

  Attributes:
    side: the dimension.
    factors: the sizes of all its digits, major first.
    place: which of them it is.
  """

  side: Side
  factors: tuple[int, ...]
  place: int

  @property
  def size(self) -> int:
    """How many values the digit has."""
    return self.factors[self.place]

  def hops(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the longest way from values `a` to `b`, over the others."""
    at = np.moveaxis(self.side.positions(self.factors), self.place, 0)
    at = at.reshape(self.size, -1)
    far = self.side.distance(at[a], at[b])
    return far.mean(axis=1), far.max(axis=1)


@dataclasses.dataclass(frozen=True)
class Tour:
  """An order of all values of some digits.

  Attributes:
    path: the values of the digits: one row for each step.
    hops: the mean way from each step to the next, and from the last to the
      first one.
    longest: the longest such ways.
  """

  path: np.ndarray
  hops: np.ndarray
  longest: np.ndarray

  @property
  def is_line(self) -> bool:
    """Whether every step but that back to the start leads to a neighbour."""
    return bool((self.longest[:-1] <= 1).all())

  @property
  def cost(self) -> float:
    """The way around, in links."""
    return round(float(self.hops.sum()), 6)


@functools.lru_cache(maxsize=100_000)
def best_tour(digits: tuple[Digit, ...]) -> Tour:
  """A ring of neighbours if there is one; else a line; else a short way.

  Digits whose steps all lead to neighbours have a ring if they are a ring
  themselves, or if there are two of them or more, and the number of values is
  even or one of them is a ring. All of these are found.
  """
  tours = (_measured(digits, path) for path in _paths(digits))
  return min(tours, key=lambda tour: (not tour.is_line, tour.cost))


def _paths(digits: Sequence[Digit]) -> Iterator[np.ndarray]:
  """Candidates: back and forth, and combs, with the digits in every order."""
  used = [i for i, digit in enumerate(digits) if digit.size > 1]
  if not used:
    yield np.zeros([1, len(digits)], int)
  for order in itertools.permutations(used):
    sizes = [digits[i].size for i in order]
    for path in (_snake(sizes), *_combs(sizes)):
      whole = np.zeros([len(path), len(digits)], int)
      whole[:, list(order)] = path
      yield whole


def _snake(sizes: Sequence[int]) -> np.ndarray:
  """Back and forth: each step changes one digit by one. The last is fastest."""
  path = np.zeros([1, 0], int)
  for size in reversed(sizes):
    turns = [path[::-1] if i % 2 else path for i in range(size)]
    slow = np.repeat(np.arange(size), len(path))[:, None]
    path = np.concatenate([slow, np.concatenate(turns)], axis=1)
  return path


def _combs(sizes: Sequence[int]) -> Iterator[np.ndarray]:
  """Back and forth through rows; the first place of each is for the way back.

  With an even number of rows this is a ring. With an odd one it is where a row
  is a ring.
  """
  for cut in range(1, len(sizes)):
    rows, row = _snake(sizes[:cut]), _snake(sizes[cut:])
    teeth = _snake([len(rows), len(row) - 1]) + [0, 1]
    back = np.arange(len(rows))[::-1, None] * [1, 0]
    way = np.concatenate([teeth, back])
    yield np.concatenate([rows[way[:, 0]], row[way[:, 1]]], axis=1)


def _measured(digits: Sequence[Digit], path: np.ndarray) -> Tour:
  """A tour from a path, turned so that its longest step is that back."""
  after = np.roll(path, -1, axis=0)
  hops = np.zeros(len(path))
  longest = np.zeros(len(path), int)
  for digit, a, b in zip(digits, path.T, after.T, strict=True):
    mean, most = digit.hops(a, b)
    hops, longest = hops + mean, longest + most
  turn = 0 if longest.max() <= 1 else len(path) - 1 - int(longest.argmax())
  return Tour(*(np.roll(x, turn, axis=0) for x in (path, hops, longest)))
