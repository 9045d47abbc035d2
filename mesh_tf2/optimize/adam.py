"""Adam with decoupled weight decay, without bias correction.

Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015.
Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from ..core.graph import Operation, Tensor
from ..ops.binary import divide
from ..ops.elementwise import add, multiply
from ..ops.unary import sqrt, square
from ..ops.variables import Variable, assign, assign_sub
from .base import Optimizer, Rate, scalar
from .slots import slot, to_slot, to_variable


class AdamWeightDecayOptimizer(Optimizer):
  """Steps of about the learning rate, whatever the size of the gradients.

      m = beta_1 * m + (1 - beta_1) * g
      v = beta_2 * v + (1 - beta_2) * g^2
      w -= learning_rate * (m / (sqrt(v) + epsilon) + weight_decay_rate * w)

  m and v are kept in the slots `<variable>/adam_m` and `<variable>/adam_v`.

  Args:
    learning_rate: a number, a scalar, or a function of the step.
    weight_decay_rate: a number.
    beta_1: the decay of the mean of gradients, in [0, 1).
    beta_2: the decay of the mean of squared gradients, in [0, 1).
    epsilon: keeps the divisor from zero.
    exclude_from_weight_decay: regular expressions; a variable in whose full
      name one of them is found does not decay.
  """

  def __init__(
    self,
    learning_rate: Rate,
    weight_decay_rate: float = 0.0,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-6,
    exclude_from_weight_decay: Sequence[str] | None = None,
  ) -> None:
    self.learning_rate = learning_rate
    self.weight_decay_rate = weight_decay_rate
    self.beta_1 = beta_1
    self.beta_2 = beta_2
    self.epsilon = epsilon
    self.exclude_from_weight_decay = list(exclude_from_weight_decay or ())

  def learning_rate_of(self, var: Variable) -> Rate:
    """The learning rate of a variable: here, the same of all."""
    return self.learning_rate

  def apply_grad(self, grad: Tensor, var: Variable) -> list[Operation]:
    """Three assignments: to the variable and to both slots."""
    means = Moments.of(to_slot(grad, var), var, self.beta_1, self.beta_2)
    step = divide(means.m, add(sqrt(means.v), self.epsilon))
    if decays(var, self.weight_decay_rate, self.exclude_from_weight_decay):
      w = to_slot(var.value, var)
      step = add(step, multiply(w, self.weight_decay_rate))
    step = multiply(step, scalar(self.learning_rate_of(var), var.graph))
    return [assign_sub(var, to_variable(step, var)), *means.assignments]


@dataclasses.dataclass(frozen=True)
class Moments:
  """The decaying means of gradients and of their squares, both from 0.

  They are kept in the slots `<variable>/adam_m` and `<variable>/adam_v`.
  """

  m: Tensor
  v: Tensor
  assignments: list[Operation]

  @staticmethod
  def of(g: Tensor, var: Variable, b1: float, b2: float) -> Moments:
    """With the gradient `g`, laid out as a slot of `var`."""
    m, v = slot(var, "/adam_m"), slot(var, "/adam_v")
    new_m = add(multiply(m, b1), multiply(g, 1 - b1))
    new_v = add(multiply(v, b2), multiply(square(g), 1 - b2))
    return Moments(new_m, new_v, [assign(m, new_m), assign(v, new_v)])


def decays(var: Variable, rate: float, excluded: Sequence[str]) -> bool:
  """Whether a variable has weight decay.

  Args:
    var: the variable.
    rate: of the decay.
    excluded: regular expressions; one that is found in the full name of `var`
      spares it.
  """
  return bool(rate) and not any(re.search(x, var.full_name) for x in excluded)
