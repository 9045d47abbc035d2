"""Adam with decoupled weight decay, without bias correction.

Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015.
Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import tensorflow as tf

from ..core.graph import Operation, Tensor
from ..ops.binary import divide
from ..ops.cast import cast
from ..ops.elementwise import add, multiply
from ..ops.unary import sqrt, square
from ..ops.variables import Variable, assign, assign_sub
from .base import Optimizer, Rate, scalar, slot


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

  def apply_grad(self, grad: Tensor, var: Variable) -> list[Operation]:
    """Three assignments: to the variable and to both slots."""
    b1, b2 = self.beta_1, self.beta_2
    g = cast(grad, tf.float32)
    m = slot(var, "/adam_m", var.shape)
    v = slot(var, "/adam_v", var.shape)

    new_m = add(multiply(m, b1), multiply(g, 1 - b1))
    new_v = add(multiply(v, b2), multiply(square(g), 1 - b2))
    step = divide(new_m, add(sqrt(new_v), self.epsilon))
    if self._decays(var.full_name):
      w = cast(var.value, tf.float32)
      step = add(step, multiply(w, self.weight_decay_rate))
    step = multiply(step, scalar(self.learning_rate, var.graph))
    return [assign_sub(var, step), assign(m, new_m), assign(v, new_v)]

  def _decays(self, name: str) -> bool:
    excluded = self.exclude_from_weight_decay
    return bool(self.weight_decay_rate) and not any(
      re.search(pattern, name) for pattern in excluded
    )
