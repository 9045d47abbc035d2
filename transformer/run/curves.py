"""What TensorBoard draws of a training run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from .events import Scalars
from .loop import Metrics


class Curves:
  """Collects the metrics of steps, and writes a point for many of them.

  Args:
    directory: of the event file; None to write none.
    clock: seconds from some moment on.
  """

  def __init__(
    self,
    directory: str | None,
    clock: Callable[[], float] = time.monotonic,
  ) -> None:
    self._scalars = Scalars(directory)
    self._clock = clock
    self._begin = clock()
    self._steps: list[Metrics] = []

  def add(self, metrics: Metrics) -> None:
    """Notes the metrics of some steps."""
    self._steps.append(metrics)

  def write(self, step: int, skipped: int) -> None:
    """Writes a point for all that was noted since the last.

    Args:
      step: the last step.
      skipped: how many steps were left out in all.
    """
    found = {
      name: np.concatenate([m[name] for m in self._steps])
      for name in self._steps[0]
    }
    now = self._clock()
    finite = found["finite"]
    values = {
      "tokens_per_second": found["tokens"].sum() / max(now - self._begin, 1e-9),
      "learning_rate": found["learning_rate"][-1],
      "skipped_steps": skipped,
    }
    if finite.any():
      values["loss"] = found["loss"][finite].mean()
      values["gradient_norm"] = found["gradient_norm"][finite].mean()
    self._scalars.write(
      step, {name: x for name, x in values.items() if math.isfinite(x)}
    )
    self._steps, self._begin = [], now

  def flush(self) -> None:
    """Has the points so far reach the disk."""
    self._scalars.flush()

  def close(self) -> None:
    """Finishes the event file."""
    self._scalars.close()
