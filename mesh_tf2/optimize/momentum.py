"""Gradient descent with momentum (Polyak, 1964)."""

from __future__ import annotations

from ..core.graph import Operation, Tensor
from ..ops.elementwise import add, multiply
from ..ops.variables import Variable, assign, assign_sub
from .base import Optimizer, Rate, scalar
from .slots import slot, to_slot, to_variable


class MomentumOptimizer(Optimizer):
  """Moves with a velocity that gradients accelerate.

      v = learning_rate * g + momentum * v
      w -= v

  The velocity is kept in the slot `<variable>_momentum_v`.

  Args:
    learning_rate: a number, a scalar, or a function of the step.
    momentum: likewise, in [0, 1).
  """

  def __init__(self, learning_rate: Rate, momentum: Rate) -> None:
    self._learning_rate = learning_rate
    self._momentum = momentum

  @property
  def lr(self) -> Rate:
    """The learning rate."""
    return self._learning_rate

  @property
  def momentum(self) -> Rate:
    """How much of the velocity stays from step to step."""
    return self._momentum

  def apply_grad(self, grad: Tensor, var: Variable) -> list[Operation]:
    """Two assignments: to the velocity and to the variable."""
    lr = scalar(self.lr, var.graph)
    momentum = scalar(self.momentum, var.graph)
    g = to_slot(grad, var)
    v = slot(var, "_momentum_v")

    new_v = add(multiply(g, lr), multiply(v, momentum))
    return [assign(v, new_v), assign_sub(var, to_variable(new_v, var))]
