"""Optimizers with other learning rates for some of the variables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..ops.variables import Variable
from .adafactor import AdafactorOptimizer
from .adam import AdamWeightDecayOptimizer
from .base import Rate
from .schedules import Schedule, compute_lr_for_step


class _RatesByName:
  """What is the same whatever the optimizer does with its rate."""

  def _set_rates(
    self,
    variable_search: Sequence[str] | None,
    alt_lr_schedules: Sequence[Schedule] | None,
    learning_rate: Rate,
  ) -> None:
    schedules = _one_for_each(variable_search, alt_lr_schedules)
    self._patterns = list(variable_search or ())
    self._rates = self.rates_of(schedules, learning_rate)
    self._rate_of_others = learning_rate

  def rates_of(
    self, alt_lr_schedules: Sequence[Schedule], learning_rate: Rate
  ) -> list[Rate]:
    """What `compute_lr_for_step` returns."""
    return compute_lr_for_step(alt_lr_schedules, learning_rate)

  def learning_rate_of(self, var: Variable) -> Rate:
    """The rate of the last expression that is found in the variable's name."""
    last = _last_match(self._patterns, var)
    return self._rate_of_others if last is None else self._rates[last]


class AdafactorWithMultiLRSchedule(_RatesByName, AdafactorOptimizer):
  """Adafactor with learning rates by the name of a variable.

  Args:
    variable_search: regular expressions. A variable in whose full name one of
      them is found has the learning rate of its schedule; if several are, that
      of the last one. Each variable is assigned to once.
    alt_lr_schedules: for each expression what `compute_lr_for_step` takes: a
      number, a function of the step and the number of steps, a list of both, or
      None for `learning_rate`.
    **kwargs: those of `AdafactorOptimizer`, `learning_rate` among them.

  Raises:
    ValueError: there are more of the ones than of the others.
  """

  def __init__(
    self,
    variable_search: Sequence[str] | None = None,
    alt_lr_schedules: Sequence[Schedule] | None = None,
    **kwargs: Any,
  ) -> None:
    super().__init__(**kwargs)
    self._set_rates(variable_search, alt_lr_schedules, self._learning_rate)


class AdamWithMultiLRSchedule(_RatesByName, AdamWeightDecayOptimizer):
  """Adam with weight decay, with learning rates by the name of a variable.

  Args:
    variable_search: regular expressions. A variable in whose full name one of
      them is found has the learning rate of its schedule; if several are, that
      of the last one. Each variable is assigned to once.
    alt_lr_schedules: for each expression what `compute_lr_for_step` takes: a
      number, a function of the step and the number of steps, a list of both, or
      None for `learning_rate`.
    **kwargs: those of `AdamWeightDecayOptimizer`, `learning_rate` among them.

  Raises:
    ValueError: there are more of the ones than of the others.
  """

  def __init__(
    self,
    variable_search: Sequence[str] | None = None,
    alt_lr_schedules: Sequence[Schedule] | None = None,
    **kwargs: Any,
  ) -> None:
    super().__init__(**kwargs)
    self._set_rates(variable_search, alt_lr_schedules, self.learning_rate)


def _one_for_each(
  patterns: Sequence[str] | None, schedules: Sequence[Schedule] | None
) -> list[Schedule]:
  if len(patterns or ()) != len(schedules or ()):
    raise ValueError(
      f"variable_search has {len(patterns or ())} regular expressions and "
      f"alt_lr_schedules {len(schedules or ())} schedules; give one for each, "
      "or None for the learning rate of all others"
    )
  return list(schedules or ())


def _last_match(patterns: Sequence[str], var: Variable) -> int | None:
  found = None
  for i, pattern in enumerate(patterns):
    if re.search(pattern, var.full_name):
      found = i
  return found
