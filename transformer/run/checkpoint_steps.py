"""Which checkpoints an evaluation or a decoding looks at, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import gin
from absl import logging

from .checkpoints import Checkpoints, check_all_used
from .context import Context
from .mesh_shapes import MODULE

LATEST = -1
WhichSteps = int | str | Sequence[int] | None


@gin.configurable(module=MODULE)
def get_checkpoint_iterator(
  checkpoint_step: WhichSteps,
  model_dir: str,
  skip_until: int = 0,
  stop_after: int | None = None,
  find_closest: bool = True,
  poll_seconds: float = 10.0,
  timeout_seconds: float = 3600.0,
) -> Iterator[int]:
  """The steps of the checkpoints that are meant.

  Args:
    checkpoint_step: a step, or several; -1 for the latest that is whole; "all"
      for all that there are; None for all, and then those still to come.
    model_dir: the folder that they are in.
    skip_until: with "all" and None, leave out earlier steps.
    stop_after: with "all" and None, leave out later steps; with None, end with
      the first checkpoint that is not earlier.
    find_closest: whether a step without a checkpoint stands for the nearest
      one that has one.
    poll_seconds: with None, how often to look for new ones.
    timeout_seconds: with None, end after so long without a new one.

  Returns:
    Steps, each once. They are found as the iterator goes on.

  Raises:
    FileNotFoundError: there is no checkpoint.
    ValueError: there is none of an exact step; or `checkpoint_step` is none of
      the above.
  """
  checkpoints = Checkpoints(model_dir)
  if checkpoint_step is None:
    return _those_to_come(
      checkpoints.steps, skip_until, stop_after, poll_seconds, timeout_seconds
    )
  found = checkpoints.steps()
  if not found:
    raise FileNotFoundError(
      f"there is no checkpoint in {model_dir}; train first, or set "
      "run.model_dir to where it is"
    )
  if checkpoint_step == "all":
    return iter(_between(found, skip_until, stop_after))
  if isinstance(checkpoint_step, int):
    wanted = [checkpoint_step]
  else:
    wanted = [] if isinstance(checkpoint_step, str) else list(checkpoint_step)
  if not wanted or not all(isinstance(step, int) for step in wanted):
    raise ValueError(
      f"run.eval_checkpoint_step is {checkpoint_step!r}; it is a step, a list "
      'of steps, -1 (the latest), "all", or None (those to come, too)'
    )
  newest = checkpoints.newest_step() if LATEST in wanted else None
  if newest is not None:
    wanted = [newest if step == LATEST else step for step in wanted]
  chosen = [_find(step, found, find_closest, model_dir) for step in wanted]
  return iter(dict.fromkeys(chosen))


def _find(
  wanted: int, found: Sequence[int], find_closest: bool, model_dir: str
) -> int:
  """The step that `wanted` stands for."""
  closest = min(found, key=lambda step: abs(step - wanted))
  if closest != wanted:
    if not find_closest:
      raise ValueError(
        f"there is no checkpoint of step {wanted} in {model_dir}, only of "
        f"{', '.join(map(str, found))}"
      )
    logging.warning(
      "there is no checkpoint of step %d; taking that of step %d",
      wanted,
      closest,
    )
  return closest


def _between(steps: Iterable[int], first: int, last: int | None) -> list[int]:
  return [s for s in steps if s >= first and (last is None or s <= last)]


def _those_to_come(
  look: Callable[[], Sequence[int]],
  skip_until: int,
  stop_after: int | None,
  poll_seconds: float,
  timeout_seconds: float,
) -> Iterator[int]:
  """Every step once, as it appears."""
  seen: set[int] = set()
  since = time.monotonic()
  while time.monotonic() - since <= timeout_seconds:
    new = [step for step in look() if step not in seen]
    for step in _between(new, skip_until, stop_after):
      yield step
      since = time.monotonic()
    seen |= set(new)
    if stop_after is not None and seen and max(seen) >= stop_after:
      return
    time.sleep(poll_seconds)
  logging.info("no new checkpoint for %g seconds: done.", timeout_seconds)


def restored_checkpoints(
  context: Context, build: Callable[[], None]
) -> Iterator[int]:
  """Puts the variables of each checkpoint that is meant into the program.

  Args:
    context: program and settings.
    build: makes the variables, which then begin with the checkpoint's values.

  Yields:
    The step of the checkpoint.

  Raises:
    CheckpointMismatchError: a checkpoint is of another model.
  """
  settings = context.settings
  which = settings.evaluation.checkpoint_step
  checkpoints = Checkpoints(settings.model_dir)
  for step in get_checkpoint_iterator(which, settings.model_dir):
    path = checkpoints.path(step)
    if which in (None, "all") and step not in checkpoints.steps():
      logging.warning("%s has been removed; leaving it out", path)
      continue
    context.program.restore(path)
    build()
    check_all_used(context.program, path)
    logging.info("%s; checkpoint %s", context.describe(), path)
    yield step
