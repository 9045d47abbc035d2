"""Stochastic gradient descent."""

from __future__ import annotations

import tensorflow as tf

from ..core.graph import Operation, Tensor
from ..ops.cast import cast
from ..ops.elementwise import multiply
from ..ops.variables import Variable, assign_sub
from .base import Optimizer, Rate, scalar


class SgdOptimizer(Optimizer):
  """w -= learning_rate * g. No slots.

  Args:
    learning_rate: a number, a scalar, or a function of the step.
  """

  def __init__(self, learning_rate: Rate) -> None:
    self._learning_rate = learning_rate

  @property
  def lr(self) -> Rate:
    """The learning rate."""
    return self._learning_rate

  def apply_grad(self, grad: Tensor, var: Variable) -> list[Operation]:
    """One assignment."""
    g = cast(grad, tf.float32)
    return [assign_sub(var, multiply(g, scalar(self.lr, var.graph)))]
