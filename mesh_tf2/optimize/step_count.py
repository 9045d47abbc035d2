"""How often something has been applied, in a variable."""

from __future__ import annotations

import math

import tensorflow as tf

from ..core.graph import Mesh, Operation, Tensor
from ..core.names import absolute_names
from ..ops.binary import sub
from ..ops.cast import cast
from ..ops.elementwise import add, multiply
from ..ops.unary import exp
from ..ops.variables import assign, get_variable


class StepCount:
  """How often an optimizer or an average has been applied.

  Unlike the step of a program it begins with the slots: at 0 in a run that
  starts from weights alone. However often it is asked for in one graph, that is
  one step.

  Args:
    name: of the variable.
  """

  def __init__(self, name: str) -> None:
    self._name = name

  def next(self, mesh: Mesh) -> tuple[Tensor, list[Operation]]:
    """The number of this step, from 1: int64 scalar; and what stores it.

    Raises:
      ValueError: something else counts its steps under this name.
    """
    old = self.last(mesh)
    numbers = mesh.graph.notes[self]
    if len(numbers) > 1:
      return numbers[1], []
    new = add(old, 1)
    numbers.append(new)
    return new, [assign(old, new)]

  def last(self, mesh: Mesh) -> Tensor:
    """The number of the step before, 0 if there is none: int64 scalar.

    Raises:
      ValueError: something else counts its steps under this name.
    """
    graph = mesh.graph
    if self not in graph.notes:
      if self._name in graph.name_to_variable:
        raise ValueError(
          f"{self._name} counts the steps of something else, too; give one of "
          "the two another name"
        )
      with absolute_names():
        old = get_variable(
          mesh, self._name, [], tf.int64, initializer=0, trainable=False
        )
      graph.notes[self] = [old]
    return graph.notes[self][0]


def one_minus_power(beta: float, t: Tensor) -> Tensor:
  """1 - beta^t in float32, to its last digit.

  In float32 all along, 1 - 0.999^1 would be off in the fifth digit.

  Args:
    beta: in [0, 1).
    t: an integer scalar, not negative.
  """
  log = math.log(max(beta, 1e-300))
  power = exp(multiply(cast(t, tf.float64), log))
  return cast(sub(1.0, power), tf.float32)
