"""What a laid-out value is: slices, sums that are still to be taken, variables.

How slices are kept is the affair of a mesh implementation; what can be said of
them without knowing it is said here.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

Slices = Any  # one slice per processor, in the form the implementation likes


@dataclasses.dataclass(frozen=True)
class Collective:
  """One communication: what, over which mesh axes, how much per processor.

  `elements` counts a processor's result. What it puts in is as large, but for
  an allconcat (smaller) and a reduce_scatter (larger).
  """

  kind: str
  mesh_axes: tuple[int, ...]
  elements: int
  dtype: tf.DType
  offset: int = 0  # how far a shift goes
  stays: bool = False  # whether every processor keeps what it has

  @property
  def bytes(self) -> int:
    """The size of one processor's result, in bytes."""
    return self.elements * self.dtype.size


# A block in which communication is counted with a certain operation.
Counting = Callable[[], contextlib.AbstractContextManager[None]]


class PendingSum:
  """Slices whose sum over some mesh axes is still to be taken.

  The sum is taken once, when somebody asks for it, and remembered.

  Args:
    mesh_axes: the axes to sum over.
    partial: makes the slices as they are before the sum.
    total: makes the slices after the sum.
    like: another pending sum, whose operation this one is counted with.
  """

  def __init__(
    self,
    mesh_axes: Sequence[int],
    partial: Callable[[], Slices],
    total: Callable[[], Slices],
    like: PendingSum | None = None,
  ) -> None:
    self.mesh_axes = tuple(sorted(mesh_axes))
    self.counted: Counting | None = like.counted if like else None
    self._make_partial = partial
    self._make_total = total
    self._partial: Slices = None
    self._total: Slices = None

  def partial(self) -> Slices:
    """The slices before the sum."""
    if self._partial is None:
      self._partial = self._make_partial()
    return self._partial

  def total(self) -> Slices:
    """The slices after the sum."""
    if self._total is None:
      with self.counting():
        self._total = self._make_total()
    return self._total

  def fresh_total(self) -> Slices:
    """The slices after a sum that is taken anew, and not remembered."""
    return self._make_total()

  @property
  def is_taken(self) -> bool:
    """Whether somebody has asked for the sum."""
    return self._total is not None

  def counting(self) -> contextlib.AbstractContextManager[None]:
    """A block whose communication counts as that of the sum."""
    return self.counted() if self.counted else contextlib.nullcontext()


class LaidOutVariable(abc.ABC):
  """A variable kept as slices, and what the graph says of it."""

  spec: Any = None

  @abc.abstractmethod
  def read(self) -> Slices:
    """The current slices."""

  @abc.abstractmethod
  def assign(self, value: Slices) -> None:
    """Overwrites the slices."""
