"""Several steps in one call, and how many there should be in it.

Calling a function costs little beside a step, but not nothing; so several steps
run in one call. Between two calls signals are answered, the progress is shown
and checkpoints are written. A call lasts about `LOOK_SECONDS` at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from mesh_tf2.spmd.processes import Processes

from .train_step import METRICS

LOOK_SECONDS = 2.0

Metrics = Mapping[str, np.ndarray]


class StepLoop:
  """Runs steps on batches.

  Args:
    step_fn: from a batch to `METRICS`.
    skip_nonfinite: goes on after a step whose loss or gradient is infinite or
      not a number. Otherwise such a step is the last of its call.
    most: the most steps in a call.
    processes: that run the steps together.
    clock: seconds from some moment on.
  """

  def __init__(
    self,
    step_fn: Callable[[Any], Mapping[str, tf.Tensor]],
    skip_nonfinite: bool,
    most: int,
    processes: Processes | None = None,
    clock: Callable[[], float] = time.monotonic,
  ) -> None:
    self._step_fn = step_fn
    self._skip_nonfinite = skip_nonfinite
    self._most = most
    self._processes = processes or Processes()
    self._clock = clock
    self._function = tf.function(self._several, autograph=False)
    self._at_once = 1

  def run(self, iterator: Any, step: int, stops: Iterable[int]) -> Metrics:
    """Runs a number of steps, at least one.

    Args:
      iterator: a `tf.data.Iterator` of batches.
      step: how many have been done.
      stops: not beyond the nearest multiple of any of these.

    Returns:
      For each of `METRICS` an array with an element for each step that was
      done.
    """
    at_once = -self._processes.largest(-self._at_once)
    count = min(at_once, *(n - step % n for n in stops))
    begin = self._clock()
    metrics = self._function(iterator, tf.constant(count))
    arrays = {name: x.numpy() for name, x in metrics.items()}
    self._plan(count, self._clock() - begin)
    return arrays

  def _plan(self, count: int, seconds: float) -> None:
    """How many steps to run next time, from how long these took."""
    fit = int(LOOK_SECONDS * count / seconds) if seconds > 0 else self._most
    # The first call includes the tracing, so that it says little.
    self._at_once = min(max(fit, 1), 4 * self._at_once, self._most)

  def _several(self, iterator: Any, count: tf.Tensor) -> dict[str, tf.Tensor]:
    arrays = {
      name: tf.TensorArray(
        dtype, size=0, dynamic_size=True, element_shape=[], name=name
      )
      for name, dtype in METRICS.items()
    }

    def more(i: tf.Tensor, goes_on: tf.Tensor, arrays: Any) -> tf.Tensor:
      del arrays
      return tf.logical_and(i < count, goes_on)

    def body(i: tf.Tensor, goes_on: tf.Tensor, arrays: Any) -> Any:
      del goes_on
      metrics = self._step_fn(next(iterator))
      arrays = {n: a.write(i, metrics[n]) for n, a in arrays.items()}
      goes_on = tf.logical_or(metrics["finite"], self._skip_nonfinite)
      return i + 1, goes_on, arrays

    start = (tf.constant(0), tf.constant(True), arrays)
    *_, arrays = tf.while_loop(more, body, start, parallel_iterations=1)
    return {name: array.stack() for name, array in arrays.items()}
