"""How far training has come: a bar on a terminal, lines in a log."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import time
from collections.abc import Callable

import tqdm
from absl import logging

from .messages import duration

_RATE_SECONDS = 1.0  # the shortest time to take a number of tokens per second


@dataclasses.dataclass(frozen=True)
class Window:
  """What happened since the last look.

  Attributes:
    step: the number of steps done in all.
    loss: the mean over the steps of the window.
    tokens: targets seen, without padding.
  """

  step: int
  loss: float
  tokens: int


class Progress:
  """Shows loss, tokens per second and the time that is left.

  Args:
    step: the steps done before.
    train_steps: the steps to reach.
    log_steps: without a terminal, write a line every so many steps.
    clock: seconds from some moment on.
    terminal: whether there is somebody to draw a bar for; None to find out.
  """

  def __init__(
    self,
    step: int,
    train_steps: int,
    log_steps: int,
    clock: Callable[[], float] = time.monotonic,
    terminal: bool | None = None,
  ) -> None:
    self._train_steps = train_steps
    self._log_steps = max(1, log_steps)
    self._clock = clock
    self._begin = self._since = clock()
    self._first = self._logged = step
    self._tokens = 0
    self._rate = 0.0
    if terminal is None:
      terminal = _has_room_for_a_bar()
    self._bar = tqdm.tqdm(
      total=train_steps,
      initial=step,
      unit="step",
      dynamic_ncols=True,
      disable=not terminal,
    )

  def show(self, window: Window) -> None:
    """Updates the bar; without one, writes a line when it is time for one."""
    self._tokens += window.tokens
    now = self._clock()
    if self._bar.disable:
      if window.step - self._logged >= self._log_steps:
        self._measure(now)
        self._logged = window.step
        logging.info("%s", self._line(window, now))
      return
    if now - self._since >= _RATE_SECONDS:
      self._measure(now)
    self._bar.set_postfix_str(
      f"loss {window.loss:.3f}, {self._rate:,.0f} tokens/s", refresh=False
    )
    self._bar.update(window.step - self._bar.n)

  def _measure(self, now: float) -> None:
    self._rate = self._tokens / max(now - self._since, 1e-9)
    self._since, self._tokens = now, 0

  def _line(self, window: Window, now: float) -> str:
    done = window.step - self._first
    left = (now - self._begin) / done * (self._train_steps - window.step)
    return (
      f"step {window.step} of {self._train_steps}: loss {window.loss:.3f}, "
      f"{self._rate:,.0f} tokens per second, "
      f"{duration(max(0.0, math.ceil(left)))} left"
    )

  def close(self) -> None:
    """Leaves the bar as it is."""
    self._bar.close()


def _has_room_for_a_bar() -> bool:
  """Whether standard error is a terminal that knows how wide it is."""
  try:
    return os.get_terminal_size(sys.stderr.fileno()).columns > 0
  except (OSError, ValueError):  # no terminal, or no file at all
    return False
