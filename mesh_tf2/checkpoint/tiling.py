"""Whether the slices of a tensor are all of it, and none of it twice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

Box = tuple[tuple[int, ...], tuple[int, ...]]  # begin and size


class Tiling:
  """The slices of one tensor that have been seen so far.

  Args:
    name: of the tensor.
    shape: of the whole tensor.
    dtype: of every slice.
  """

  def __init__(
    self, name: str, shape: tuple[int, ...], dtype: tf.DType
  ) -> None:
    self.name, self.shape, self.dtype = name, shape, dtype
    self._sizes: dict[tuple[int, ...], tuple[int, ...]] = {}
    self._regular = True
    self._elements = 0

  def add(self, begin: tuple[int, ...], size: tuple[int, ...]) -> None:
    """Takes one more slice. One without elements is left out.

    Raises:
      ValueError: it reaches beyond the tensor, or into another slice.
    """
    box = (begin, size)
    if not len(begin) == len(size) == len(self.shape) or any(
      b < 0 or n < 0 or b + n > full
      for b, n, full in zip(begin, size, self.shape, strict=True)
    ):
      raise ValueError(
        f'"{self.name}" of shape {list(self.shape)} has no slice '
        f"{describe(box)}"
      )
    if not math.prod(size):
      return
    if (other := self._overlapping(box)) is not None:
      raise ValueError(
        f'the slices {describe(other)} and {describe(box)} of "{self.name}" '
        "overlap; write each element once"
      )
    self._sizes[begin] = size
    self._elements += math.prod(size)

  def _overlapping(self, box: Box) -> Box | None:
    begin, size = box
    if begin in self._sizes:
      return begin, self._sizes[begin]
    first = next(iter(self._sizes.values()), size)
    self._regular &= size == first and not any(
      b % n for b, n in zip(begin, size, strict=True)
    )
    if self._regular:  # cells of one grid, which overlap only if they are one
      return None
    return next((x for x in self._sizes.items() if overlap(x, box)), None)

  @property
  def is_whole(self) -> bool:
    """Whether every element has been seen."""
    return self._elements == math.prod(self.shape)

  def check_whole(self, why: str = "") -> None:
    """Raises ValueError, which names a part that is in no slice, if any is.

    Args:
      why: the tensor has to be whole.
    """
    if not self.is_whole:
      raise ValueError(
        f'the slices of "{self.name}" of shape {list(self.shape)} hold '
        f"{self._elements} of its {math.prod(self.shape)} elements: "
        f"{describe(self._gap())} is in none of them{why}"
      )

  def _gap(self) -> Box:
    """A cell that is in no slice, of the grid that all slices lie on."""
    edges = [{0, full} for full in self.shape]
    for begin, size in self._sizes.items():
      for at, b, n in zip(edges, begin, size, strict=True):
        at |= {b, b + n}
    cells = itertools.product(*(itertools.pairwise(sorted(e)) for e in edges))
    boxes = (
      (tuple(a for a, _ in cell), tuple(b - a for a, b in cell))
      for cell in cells
    )
    return next(
      box
      for box in boxes
      if not any(overlap(x, box) for x in self._sizes.items())
    )


def overlap(one: Box, other: Box) -> bool:
  """Whether two slices share an element."""
  return all(
    max(a, b) < min(a + m, b + n)
    for a, m, b, n in zip(*one, *other, strict=True)
  )


def describe(box: Box) -> str:
  """`"[0:2, 4:8]"`."""
  return f"[{', '.join(f'{b}:{b + n}' for b, n in zip(*box, strict=False))}]"


def same_tensor(
  tilings: dict[str, Tiling],
  name: str,
  shape: tuple[int, ...],
  dtype: tf.DType,
) -> Tiling:
  """The tiling of that name, made if it is the first slice of it.

  Raises:
    ValueError: another slice was of another shape or type.
  """
  tiling = tilings.setdefault(name, Tiling(name, shape, dtype))
  if (tiling.shape, tiling.dtype) != (shape, dtype):
    raise ValueError(
      f'one slice of "{name}" is of {tiling.dtype.name}{list(tiling.shape)}, '
      f"another of {dtype.name}{list(shape)}"
    )
  return tiling


def check_stored(indexes: Iterable[Mapping[str, Any]]) -> None:
  """Checks that tensors in several indexes are whole together.

  Args:
    indexes: what is stored in each, by name: shape, dtype, pieces.

  Raises:
    ValueError: slices overlap, leave something out, or do not agree.
  """
  tilings: dict[str, Tiling] = {}
  for tensors in indexes:
    for name, stored in tensors.items():
      tiling = same_tensor(tilings, name, stored.shape, stored.dtype)
      for piece in stored.pieces:
        tiling.add(piece.begin, piece.size)
  for tiling in tilings.values():
    tiling.check_whole()
