"""A checkpoint that several processes write, each its own slices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from ..spmd.processes import Processes
from .bundle import Slice, merge, write_part


def write_together(
  prefix: str, slices: Iterable[Slice], processes: Processes
) -> None:
  """Writes this process's slices; the first process makes all of them one.

  Every process must call it, with the same prefix, in a folder that all see.
  When it returns, the checkpoint is there.

  Args:
    prefix: of the checkpoint's files.
    slices: of this process; those of all cover every tensor, no element twice.
    processes: those that write it.

  Raises:
    ValueError: slices overlap, leave something out, or do not agree in shape
      or type.
    OSError: the folder cannot be written to; or another process has failed,
      which says why.
  """
  processes.wait()  # the first one has cleared away what was left of others
  mine = iter(slices)
  first = next(mine, None)

  def write_mine() -> None:
    if first is not None:
      part = _part(prefix, processes.number)
      write_part(part, itertools.chain([first], mine))

  _do_or_fail_together(write_mine, prefix, processes)
  # One number after another, so that all know whose part there is.
  has_part = [
    processes.largest(int(first is not None and number == processes.number))
    for number in range(processes.count)
  ]

  def make_one() -> None:
    if processes.is_first:
      parts = [_part(prefix, n) for n, has in enumerate(has_part) if has]
      merge(prefix, parts)

  _do_or_fail_together(make_one, prefix, processes)


def _do_or_fail_together(
  write: Callable[[], None], prefix: str, processes: Processes
) -> None:
  """Calls `write` in every process; if one fails, no other waits for it."""
  try:
    write()
  except Exception:
    processes.largest(1)
    raise
  if processes.largest(0):
    raise OSError(
      f"{prefix} was not written: another process has failed, and says why"
    )


def _part(prefix: str, number: int) -> str:
  return f"{prefix}.part-{number}"
