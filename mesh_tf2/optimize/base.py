"""What all optimizers share: the loop over variables, and rates."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from ..core.graph import Graph, Operation, Tensor
from ..core.names import absolute_names
from ..ops.cast import cast
from ..ops.variables import Variable, variable_of

_log = logging.getLogger(__name__)

Scalar: TypeAlias = float | tf.Tensor | Tensor
# A value, or a function of the step that makes it.
Rate: TypeAlias = Scalar | Callable[[tf.Tensor], Scalar]


class Optimizer(abc.ABC):
  """Turns gradients into assignments."""

  def apply_grads(
    self,
    grads: Sequence[Tensor | None],
    variables: Sequence[Variable | Tensor],
  ) -> list[Operation]:
    """The assignments of one step, to the variables and to their slots.

    Args:
      grads: for each variable its gradient, or None: the variable is left
        alone then, with a warning in the log.
      variables: variables, or the tensors of their values.

    Raises:
      ValueError: there are more of the ones than of the others.
    """
    if len(grads) != len(variables):
      raise ValueError(
        f"apply_grads: {len(grads)} gradients for {len(variables)} variables; "
        "give one for each, or None"
      )
    updates: list[Operation] = []
    with absolute_names():
      for grad, var in zip(grads, map(variable_of, variables), strict=True):
        if grad is None:
          _log.warning("%s has no gradient and stays as it is", var.full_name)
        else:
          updates += self.apply_grad(grad, var)
    return updates

  @abc.abstractmethod
  def apply_grad(self, grad: Tensor, var: Variable) -> list[Operation]:
    """The assignments of one step for one variable.

    Args:
      grad: the gradient, of the shape of `var`.
      var: a variable.
    """


def scalar(rate: Rate, graph: Graph) -> Any:
  """The value of a rate: a number, a TensorFlow or a mesh scalar.

  Args:
    rate: the value, or a function of the step (a float32 scalar).
    graph: the graph whose step it is.

  Raises:
    ValueError: the graph does not know its step.
  """
  if isinstance(rate, Tensor):
    return cast(rate, tf.float32)
  if not callable(rate):
    return rate
  if graph.step is None:
    raise ValueError(
      "this rate depends on the step, and the graph does not know it: pass "
      "learning_rate and decay_rate as numbers or scalars, run inside a "
      "Program, or set graph.step"
    )
  key = scalar, rate
  if key not in graph.notes:  # the same for all variables
    graph.notes[key] = rate(tf.cast(graph.step, tf.float32))
  return scalar(graph.notes[key], graph)
