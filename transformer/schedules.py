"""Learning rates as functions of the step.

A schedule is `f(step, total_train_steps, **settings) -> float32 scalar`, where
`step` counts from 0 and is a number or a scalar `tf.Tensor`. Names and settings
are those of Mesh TensorFlow; in gin files they are bound as
`learning_rate_schedules.<name>.<setting>`. No schedule is ever negative: one
that has fallen to 0 at the last step of a run stays there.
"""

import collections.abc
import typing

import gin
import tensorflow as tf

import mesh_tf2 as mtf

Step: typing.TypeAlias = int | float | tf.Tensor
Schedule: typing.TypeAlias = collections.abc.Callable[[Step, Step], tf.Tensor]

configurable = gin.configurable(
  module="mesh_tf2.transformer.learning_rate_schedules"
)


@configurable
def product_learning_rate(
  step: Step,
  total_train_steps: Step,
  factors: collections.abc.Sequence[float | Schedule] = gin.REQUIRED,
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
  return mtf.optimize.product_learning_rate(
    step, total_train_steps, factors, offset
  )


@configurable
def linear_decay(
  step: Step, total_train_steps: Step, steps_or_fraction: float = 0.1
) -> tf.Tensor:
  """A factor of 1 that falls to 0 in a line at the end of the run.

  Args:
    step: the step, from 0.
    total_train_steps: the number of steps of the run.
    steps_or_fraction: how long the fall takes: in steps from 1 on, as a
      fraction of the run below.

  Returns:
    A float32 scalar in [0, 1].
  """
  left = _float(total_train_steps) - _float(step)
  return _ramp(left, _steps(steps_or_fraction, total_train_steps))


@configurable
def linear_warmup(
  step: Step, total_train_steps: Step, steps_or_fraction: float = 10000
) -> tf.Tensor:
  """A factor that rises from 0 at the first step to 1 in a line.

  Args:
    step: the step, from 0.
    total_train_steps: the number of steps of the run.
    steps_or_fraction: how long the rise takes: in steps from 1 on, as a
      fraction of the run below.

  Returns:
    A float32 scalar in [0, 1].
  """
  return _ramp(_float(step), _steps(steps_or_fraction, total_train_steps))


@configurable
def truncated_rsqrt(
  step: Step, total_train_steps: Step, warmup_steps: Step = 10000
) -> tf.Tensor:
  """`1 / sqrt(max(step, warmup_steps))`: flat at first, then falling.

  Args:
    step: the step, from 0.
    total_train_steps: has no influence.
    warmup_steps: how many steps the rate stays flat.

  Returns:
    A float32 scalar, at most 1.
  """
  del total_train_steps
  # The 1 keeps the first step of a run without warm-up finite.
  return tf.math.rsqrt(tf.maximum(_float(step), _float(max(warmup_steps, 1))))


@configurable
def constant(
  step: Step, total_train_steps: Step, value: float = 1.0
) -> tf.Tensor:
  """The same at every step.

  Args:
    step: has no influence.
    total_train_steps: has no influence.
    value: the rate, not negative.

  Returns:
    A float32 scalar.

  Raises:
    ValueError: if `value` is negative.
  """
  del step, total_train_steps
  return tf.constant(_not_negative(value, "constant.value"))


@configurable
def constant_learning_rate(
  step: Step, total_train_steps: Step, learning_rate: float = gin.REQUIRED
) -> tf.Tensor:
  """The same at every step; `constant` by another name.

  Args:
    step: has no influence.
    total_train_steps: has no influence.
    learning_rate: the rate, not negative.

  Returns:
    A float32 scalar.

  Raises:
    ValueError: if `learning_rate` is negative.
  """
  del step, total_train_steps
  name = "constant_learning_rate.learning_rate"
  return tf.constant(_not_negative(learning_rate, name))


@configurable
def linear_decay_learning_rate(
  step: Step,
  total_train_steps: Step,
  initial_lr: float = 0.1,
  offset: Step = 0,
) -> tf.Tensor:
  """Falls in a line from `initial_lr` to 0 at the end of the run.

  Args:
    step: the step, from 0.
    total_train_steps: the number of steps of the run.
    initial_lr: the rate at the start, not negative.
    offset: the step at which the fall begins.

  Returns:
    A float32 scalar in [0, initial_lr].

  Raises:
    ValueError: if `initial_lr` is negative.
  """
  rate = _not_negative(initial_lr, "linear_decay_learning_rate.initial_lr")
  left = _float(total_train_steps) - _float(step)
  return rate * _ramp(left, _float(total_train_steps) - offset)


@configurable
def learning_rate_schedule_noam(
  step: Step,
  total_train_steps: Step,
  warmup_steps: Step = 10000,
  linear_decay_fraction: float = 0.1,
  multiplier: float = 1.0,
  offset: Step = 0,
) -> tf.Tensor:
  """Flat, then falling as 1 / sqrt(step), then in a line to 0.

  This is the schedule of Shazeer et al., Mesh-TensorFlow (NeurIPS 2018), where
  the line to 0 takes the last epoch of ten.

  Args:
    step: the step, from 0.
    total_train_steps: the number of steps of the run.
    warmup_steps: how many steps the rate stays flat.
    linear_decay_fraction: the part of the run that the line takes; 0 for none.
    multiplier: multiplies the rate; not negative.
    offset: steps are counted from here.

  Returns:
    A float32 scalar, not negative.

  Raises:
    ValueError: if `multiplier` is negative.
  """
  rate = _not_negative(multiplier, "learning_rate_schedule_noam.multiplier")
  step = _float(step) - offset
  steps = _float(total_train_steps) - offset
  rate *= truncated_rsqrt(step, steps, warmup_steps=warmup_steps)
  if linear_decay_fraction > 0:
    rate *= _ramp(steps - step, steps * linear_decay_fraction)
  return rate


@configurable
def slanted_triangular(
  step: Step,
  total_train_steps: Step,
  cut_fraction: float = 0.1,
  ratio: float = 32,
  max_learning_rate: float = 0.01,
  start_step: Step = 0,
) -> tf.Tensor:
  """A short rise in a line, then a long fall in a line.

  Source: Howard and Ruder, Universal Language Model Fine-tuning for Text
  Classification (ACL 2018), equation 3.

  Args:
    step: the step, from 0.
    total_train_steps: the number of steps of the run.
    cut_fraction: the part of the run that the rise takes.
    ratio: the highest rate divided by the lowest, at least 1.
    max_learning_rate: the highest rate, not negative.
    start_step: the step at which the rise begins.

  Returns:
    A float32 scalar in [max_learning_rate / ratio, max_learning_rate].

  Raises:
    ValueError: if `max_learning_rate` is negative or `ratio` is below 1.
  """
  highest = _not_negative(
    max_learning_rate, "slanted_triangular.max_learning_rate"
  )
  if ratio < 1:
    raise ValueError(
      f"slanted_triangular.ratio is {ratio}: the highest rate divided by the "
      "lowest is at least 1."
    )
  steps = _float(total_train_steps) - start_step
  step = _float(step) - start_step
  cut = cut_fraction * steps
  height = tf.minimum(_ramp(step, cut), _ramp(steps - step, steps - cut))
  return highest * (1.0 + height * (ratio - 1.0)) / ratio


def _float(step: Step) -> tf.Tensor:
  return tf.cast(step, tf.float32)


def _steps(steps_or_fraction: float, total_train_steps: Step) -> tf.Tensor:
  if steps_or_fraction < 1:
    return steps_or_fraction * _float(total_train_steps)
  return _float(steps_or_fraction)


def _ramp(steps: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
  """`steps / length` within [0, 1]; a ramp of no length is a step up at 0."""
  above = steps / tf.where(length > 0, length, 1.0)
  return tf.where(
    length > 0, tf.clip_by_value(above, 0.0, 1.0), _float(steps >= 0)
  )


def _not_negative(value: float, name: str) -> float:
  if value < 0:
    raise ValueError(f"{name} is {value}: a learning rate is not negative.")
  return float(value)
