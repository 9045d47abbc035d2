"""Adam and AdamW as published, with bias correction.

Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015,
algorithm 1. Loshchilov and Hutter, Decoupled weight decay regularization, ICLR
2019, algorithm 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.graph import Operation, Tensor
from ..ops.binary import divide
from ..ops.elementwise import add, multiply
from ..ops.unary import sqrt
from ..ops.variables import Variable, assign_sub
from .adam import Moments, decays
from .base import Optimizer, Rate, scalar
from .slots import to_slot, to_variable
from .step_count import StepCount, one_minus_power


class AdamWOptimizer(Optimizer):
  """Adam with decoupled weight decay.

      m = beta_1 * m + (1 - beta_1) * g
      v = beta_2 * v + (1 - beta_2) * g^2
      step = (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)
      w -= learning_rate * (step + weight_decay_rate * w)

  t counts the steps of this optimizer from 1, in the variable `<name>/step`.
  m and v are kept in the slots `<variable>/adam_m` and `<variable>/adam_v`.

  Args:
    learning_rate: a number, a scalar, or a function of the step.
    weight_decay_rate: a number. Decay is multiplied by the learning rate.
    beta_1: the decay of the mean of gradients, in [0, 1).
    beta_2: the decay of the mean of squared gradients, in [0, 1).
    epsilon: keeps the divisor from zero.
    exclude_from_weight_decay: regular expressions; a variable in whose full
      name one of them is found does not decay.
    name: differs between the optimizers of a program.
  """

  def __init__(
    self,
    learning_rate: Rate,
    weight_decay_rate: float = 0.01,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-8,
    exclude_from_weight_decay: Sequence[str] | None = None,
    name: str = "adam",
  ) -> None:
    self.learning_rate = learning_rate
    self.weight_decay_rate = weight_decay_rate
    self.beta_1 = beta_1
    self.beta_2 = beta_2
    self.epsilon = epsilon
    self.exclude_from_weight_decay = list(exclude_from_weight_decay or ())
    self._count = StepCount(f"{name}/step")

  def apply_grad(self, grad: Tensor, var: Variable) -> list[Operation]:
    """Assignments to the variable, both slots and the count of steps."""
    t, counted = self._count.next(var.mesh)
    means = Moments.of(to_slot(grad, var), var, self.beta_1, self.beta_2)
    m = divide(means.m, one_minus_power(self.beta_1, t))
    v = divide(means.v, one_minus_power(self.beta_2, t))
    step = divide(m, add(sqrt(v), self.epsilon))
    if decays(var, self.weight_decay_rate, self.exclude_from_weight_decay):
      w = to_slot(var.value, var)
      step = add(step, multiply(w, self.weight_decay_rate))
    step = multiply(step, scalar(self.learning_rate, var.graph))
    updates = [assign_sub(var, to_variable(step, var)), *means.assignments]
    return [*updates, *counted]


class AdamOptimizer(Optimizer):
  """Adam. `AdamWOptimizer` has the formulas; here no weight decays.

  Args:
    learning_rate: a number, a scalar, or a function of the step.
    beta_1: the decay of the mean of gradients, in [0, 1).
    beta_2: the decay of the mean of squared gradients, in [0, 1).
    epsilon: keeps the divisor from zero.
    name: differs between the optimizers of a program.
  """

  def __init__(
    self,
    learning_rate: Rate,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-8,
    name: str = "adam",
  ) -> None:
    self._adamw = AdamWOptimizer(
      learning_rate, 0.0, beta_1, beta_2, epsilon, name=name
    )

  def apply_grad(self, grad: Tensor, var: Variable) -> list[Operation]:
    """Assignments to the variable, both slots and the count of steps."""
    return self._adamw.apply_grad(grad, var)
