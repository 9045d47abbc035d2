"""Digits: what a mesh axis owns of a tensor, in terms of its flat index.

A mesh axis of m processors that splits a dimension owns a *digit* of the
row-major index: a stride and the size m. Two shapes of equal size have the
same flat index, so that a layout of the one can be compared with a layout of
the other digit by digit.

Splitting the index at the boundaries of all digits gives *steps*, the smallest
first; a digit is then a run of neighbouring steps. On the way from one layout
to another a mesh axis may own steps that are no neighbours.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from ..core.layout import TensorLayout
from ..core.shape import Shape


@dataclasses.dataclass(frozen=True)
class Digit:
  """A part of a flat index that a mesh axis owns."""

  stride: int
  size: int

  @property
  def end(self) -> int:
    """The stride of whatever comes above it."""
    return self.stride * self.size


def digits(
  shape: Shape, layout: TensorLayout, mesh_shape: Shape
) -> dict[int, Digit]:
  """The digit of each mesh axis that splits a tensor, by mesh axis."""
  owned, stride = {}, 1
  for d, a in zip(reversed(shape.dims), reversed(list(layout)), strict=True):
    if a is not None:
      m = mesh_shape[a].size
      owned[a] = Digit(stride * (d.size // m), m)
    stride *= d.size
  return owned


# Steps that a mesh axis owns, the one that varies fastest along it first.
Run = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Steps:
  """An index split at `strides`: ascending, each divides the next.

  The last of the strides is the number of elements.
  """

  strides: tuple[int, ...]

  @property
  def sizes(self) -> list[int]:
    """The size of each step, that of stride 1 first."""
    pairs = zip(self.strides, self.strides[1:], strict=False)
    return [b // a for a, b in pairs]

  def run(self, digit: Digit) -> Run | None:
    """The steps that make up a digit, or None if it cuts one of them."""
    if digit.stride not in self.strides or digit.end not in self.strides:
      return None
    at = self.strides.index
    return tuple(range(at(digit.stride), at(digit.end)))

  def runs(self, size: int) -> list[Run]:
    """All runs of neighbouring steps that a mesh axis of `size` could own."""
    every, at = set(self.strides), self.strides.index
    return [
      tuple(range(i, at(s * size)))
      for i, s in enumerate(self.strides)
      if s * size in every
    ]

  def picks(self, size: int) -> list[Run]:
    """All that a mesh axis of `size` could own: any steps in any order."""
    found: list[Run] = []

    def extend(run: Run, rest: int) -> None:
      if rest == 1:
        found.append(run)
        return
      for i, n in enumerate(self.sizes):
        if n > 1 and rest % n == 0 and i not in run:
          extend((*run, i), rest // n)

    extend((), size)
    return found


def common_steps(total: int, owned: Iterable[Digit]) -> Steps:
  """Steps of an index of `total` values at the boundaries of digits.

  A boundary that does not fit between those before it is left out.
  """
  chain = sorted({1, total})
  for d in owned:
    for b in (d.stride, d.end):
      if all(b % c == 0 or c % b == 0 for c in chain):
        chain = sorted({*chain, b})
  return Steps(tuple(chain))


def finer_steps(steps: Steps, sizes: Iterable[int]) -> Steps:
  """Cuts steps further, so that mesh axes of `sizes` fit into large ones."""
  primes = sorted(p for m in sizes for p in _primes(m))
  finer = {1}
  for stride, size in zip(steps.strides, steps.sizes, strict=False):
    for p in primes:
      if size % p == 0 and size > p:
        stride, size = stride * p, size // p
        finer.add(stride)
  return Steps(tuple(sorted(finer | set(steps.strides))))


def _primes(n: int) -> list[int]:
  found, p = [], 2
  while n > 1:
    while n % p == 0:
      found.append(p)
      n //= p
    p += 1
  return found


def values_of_steps(
  owned: Mapping[int, Run], steps: Steps, coordinates: Sequence[int]
) -> dict[int, int]:
  """Which value of each owned step the processor at `coordinates` holds."""
  values, sizes = {}, steps.sizes
  for a, run in owned.items():
    rest = coordinates[a]
    for step in run:
      rest, values[step] = divmod(rest, sizes[step])
  return values


def elements(steps: Steps, owned: Iterable[Run]) -> int:
  """How many elements a slice has whose runs in `owned` are split."""
  sizes = steps.sizes
  return steps.strides[-1] // math.prod(sizes[i] for run in owned for i in run)
