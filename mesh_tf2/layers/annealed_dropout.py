"""Dropout that fades away as training goes on."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..core.graph import Tensor
from ..core.shape import ShapeLike
from ..ops.random import dropout
from ..ops.source import import_tf_tensor


def annealed_dropout(
  x: Tensor,
  is_training: bool,
  start_step: int,
  end_step: int,
  init_rate: float | None = None,
  noise_shape: ShapeLike | None = None,
  name: str | None = None,
  step: Any = None,
) -> Tensor:
  """Dropout whose rate falls linearly to 0 between two steps.

  Args:
    x: any shape.
    is_training: otherwise `x` is returned as it is.
    start_step: up to this step the rate is `init_rate`.
    end_step: from this step on it is 0.
    init_rate: the rate to begin with, in [0, 1).
    noise_shape: the dimensions of `x` along which the decisions differ.
    name: a name for the operation.
    step: the step, a number or a TensorFlow scalar; by default the program's.

  Raises:
    ValueError: there is no rate or it is not in [0, 1), the steps are not in
      order, or nobody knows the step.
  """
  if init_rate is None or not 0 <= init_rate < 1:
    raise ValueError(
      f"annealed_dropout: init_rate is {init_rate}, it must be in [0, 1)"
    )
  if end_step <= start_step:
    raise ValueError(
      f"annealed_dropout: end_step ({end_step}) must be larger than "
      f"start_step ({start_step})"
    )
  if not is_training or init_rate == 0:
    return x
  now = x.graph.step if step is None else step
  if now is None:
    raise ValueError(
      "annealed_dropout: the graph does not know its step; pass step=, build "
      "the graph in a function of a Program, or set graph.step"
    )
  passed = (tf.cast(now, tf.float32) - start_step) / (end_step - start_step)
  rate = init_rate * (1.0 - tf.clip_by_value(passed, 0.0, 1.0))
  keep_prob = import_tf_tensor(x.mesh, 1.0 - rate, [])
  return dropout(x, True, keep_prob, noise_shape=noise_shape, name=name)
