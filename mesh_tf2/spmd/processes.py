"""The processes that run one program together, and what they agree on."""

from __future__ import annotations

from collections.abc import Callable


class Processes:
  """One process, which agrees with itself.

  Attributes:
    number: which of the processes this is, from 0.
    count: how many there are.
  """

  number = 0
  count = 1

  @property
  def is_first(self) -> bool:
    """Whether it is up to this process to write what is written once."""
    return self.number == 0

  def largest(self, value: int) -> int:
    """The largest of the values that the processes call it with, on all."""
    return value

  def wait(self) -> None:
    """Goes on when all processes have come here."""
    self.largest(0)


class Cluster(Processes):
  """Processes whose processors can send things to each other.

  All of them must make the same calls in the same order.

  Args:
    number: which of the processes this is, from 0.
    count: how many there are.
    largest: the largest of what all processes call it with.
  """

  def __init__(
    self, number: int, count: int, largest: Callable[[int], int]
  ) -> None:
    self.number, self.count, self._largest = number, count, largest

  def largest(self, value: int) -> int:
    """The largest of the values that the processes call it with, on all."""
    return self._largest(value)
