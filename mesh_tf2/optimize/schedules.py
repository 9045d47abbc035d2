"""Learning rates put together from schedules, also for some variables only.

A schedule is a function of the step, counted from 0, and of the number of steps
of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

from .base import Rate

Step: TypeAlias = int | float | tf.Tensor
Factor: TypeAlias = float | Callable[[Step, Step], float | tf.Tensor]


def product_learning_rate(
  step: Step,
  total_train_steps: Step,
  factors: Sequence[Factor],
  offset: Step = 0,
) -> tf.Tensor:
  """The product of schedules and numbers.

  Args:
    step: the step, from 0.
    total_train_steps: the number of steps of the run.
    factors: numbers, none negative, and schedules.
    offset: the schedules count their steps from here, and end where the run
      ends.

  Returns:
    A float32 scalar, not negative.

  Raises:
    ValueError: if a factor is a negative number.
  """
  product = tf.constant(1.0)
  for factor in factors:
    if callable(factor):
      begin = tf.cast(offset, tf.float32)
      product *= factor(
        tf.cast(step, tf.float32) - begin,
        tf.cast(total_train_steps, tf.float32) - begin,
      )
    elif factor < 0:
      raise ValueError(
        f"product_learning_rate.factors is {factor}: a learning rate is not "
        "negative."
      )
    else:
      product *= float(factor)
  return product


Schedule: TypeAlias = Factor | Sequence[Factor] | None


def compute_lr_for_step(
  schedules: Sequence[Schedule],
  learning_rate: Rate,
  train_steps: int = 524288,
) -> list[Rate]:
  """The learning rate that each of several schedules stands for.

  Args:
    schedules: each a number, a schedule, a list of both, whose product is
      taken, or None for `learning_rate`.
    learning_rate: of whoever has no schedule of its own.
    train_steps: the number of steps of the run.

  Returns:
    A rate for each schedule: a function of the step, or `learning_rate`.
  """

  def rate(schedule: Schedule) -> Rate:
    if schedule is None:
      return learning_rate
    factors: Sequence[Factor] = (
      schedule if isinstance(schedule, Sequence) else [schedule]
    )
    return lambda step: product_learning_rate(step, train_steps, factors)

  return [rate(s) for s in schedules]
