"""Why training ends before its last step, and how it does so in good order."""

from __future__ import annotations

import signal
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from absl import logging

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class NonFiniteLossError(ValueError):
  """The loss or a gradient is infinite or no number."""


class StopRequest:
  """Whether somebody has asked the run to stop.

  Attributes:
    name: the name of the signal that came, or None.
  """

  name: str | None = None

  def __bool__(self) -> bool:
    return self.name is not None


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
  """Within it, the first Ctrl-C or SIGTERM is noted, and acts no further.

  The second one acts as it always does: a process that hangs can be ended.
  """
  request = StopRequest()
  before: dict[int, Any] = {}

  def note(number: int, frame: types.FrameType | None) -> None:
    del frame
    request.name = signal.Signals(number).name
    restore()
    logging.warning("%s: stopping after this step.", request.name)

  def restore() -> None:
    for number, handler in before.items():
      signal.signal(number, handler)

  for number in SIGNALS:
    before[number] = signal.signal(number, note)
  try:
    yield request
  finally:
    restore()


def non_finite(step: int, go_back_to: str | None) -> NonFiniteLossError:
  """The error that ends a run whose loss is no number any more.

  Args:
    step: the step, from 1, that would have been carried out.
    go_back_to: the newest checkpoint, or None.
  """
  back = (
    f"go back to the checkpoint {go_back_to}, and train"
    if go_back_to
    else "there is no checkpoint yet to go back to; train"
  )
  return NonFiniteLossError(
    f"step {step}: the loss or a gradient is infinite or not a number. "
    f"Nothing of this step was kept; {back} with a lower learning rate or "
    "another seed; or set run.skip_nonfinite_steps = True to leave out "
    "such steps"
  )
