"""Adafactor: adaptive steps with less memory than the parameters take.

Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory
cost, ICML 2018. The mean square of a matrix of gradients is kept as its row
and column means only. Where a factored dimension is split over the mesh, those
means are reduced over it; so is the root mean square of the update.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from ..core.graph import Operation, Tensor
from ..core.shape import Dimension, Shape
from ..core.slot_names import variable_name
from ..layers.unit_scaling import unit_scaling
from ..ops.binary import divide, maximum
from ..ops.cast import cast
from ..ops.elementwise import add, multiply
from ..ops.reductions import reduce_mean
from ..ops.unary import rsqrt, sqrt, square
from ..ops.variables import Variable, assign, assign_sub
from .base import Optimizer, Rate, scalar
from .slots import slot, to_slot, to_variable


@dataclasses.dataclass(frozen=True)
class _Preconditioned:
  """A gradient divided by its root mean square, and the new statistics."""

  step: Tensor
  assignments: list[Operation]


class AdafactorOptimizer(Optimizer):
  """Relative step sizes, factored second moments, clipped updates.

      v = decay_rate * v + (1 - decay_rate) * (g^2 + epsilon1)
      u = g / sqrt(v)
      u = u / max(1, rms(u) / clipping_threshold)
      w -= learning_rate * max(rms(w), epsilon2) * u

  A variable with two dimensions of `min_dim_size_to_factor` or more keeps,
  instead of v, its means `vr` over the largest and `vc` over the second-largest
  of them (of equal ones, the first in the shape is the larger): v is then
  vr * vc / mean(vr). Slots: `<variable>_slot_v`, or `_slot_vr` and `_slot_vc`,
  and `_slot_m` with `beta1`.

  Args:
    multiply_by_parameter_scale: whether steps are relative to the root mean
      square of the variable.
    learning_rate: a number, a scalar, or a function of the step; by default
      min(1 / sqrt(step + 1), 0.01), and a twentieth of it where steps are not
      relative.
    decay_rate: likewise; by default `adafactor_decay_rate_pow()`.
    beta1: the decay of the mean of updates; 0 for none, which saves a slot.
    clipping_threshold: the largest root mean square of an update; None for
      none.
    factored: whether to factor at all.
    epsilon1: added to squared gradients.
    epsilon2: the least scale of a variable.
    min_dim_size_to_factor: the size from which on a dimension is factored.
    stacked_dim_names: names of dimensions that number separate parameters:
      they are neither factored nor averaged over.
    exclude_from_parameter_scale: a variable whose full name contains one of
      these strings has steps that are not relative.
  """

  def __init__(  # noqa: PLR0913  the names of the original, for gin
    self,
    multiply_by_parameter_scale: bool = True,
    learning_rate: Rate | None = None,
    decay_rate: Rate | None = None,
    beta1: float = 0.0,
    clipping_threshold: float | None = 1.0,
    factored: bool = True,
    epsilon1: float = 1e-30,
    epsilon2: float = 1e-3,
    min_dim_size_to_factor: int = 128,
    stacked_dim_names: Sequence[str] | None = None,
    exclude_from_parameter_scale: Sequence[str] | None = None,
  ) -> None:
    self._multiply_by_parameter_scale = multiply_by_parameter_scale
    self._learning_rate = (
      _default_learning_rate(multiply_by_parameter_scale)
      if learning_rate is None
      else learning_rate
    )
    self._decay_rate = (
      self.default_decay_rate() if decay_rate is None else decay_rate
    )
    self._beta1 = beta1
    self._clipping_threshold = clipping_threshold
    self._factored = factored
    self._epsilon1 = epsilon1
    self._epsilon2 = epsilon2
    self._min_dim_size_to_factor = min_dim_size_to_factor
    self._stacked_dim_names = frozenset(stacked_dim_names or ())
    self._unscaled = tuple(exclude_from_parameter_scale or ())

  def default_decay_rate(self) -> Rate:
    """The rate that is used where none is given."""
    return adafactor_decay_rate_pow()

  def learning_rate_of(self, var: Variable) -> Rate:
    """The learning rate of a variable: here, the same of all."""
    return self._learning_rate

  def apply_grad(self, grad: Tensor, var: Variable) -> list[Operation]:
    """Assignments to the variable and to two or three slots."""
    g = to_slot(grad, var)
    preconditioned = self._precondition(g, var)
    u = self._clipped(preconditioned.step)
    updates = preconditioned.assignments

    u = multiply(u, scalar(self.learning_rate_of(var), var.graph))
    if self._is_scaled(var.full_name):
      rms = self._rms(to_slot(var.value, var))
      u = multiply(u, maximum(rms, self._epsilon2))
    if self._beta1:
      m = slot(var, "_slot_m")
      u = add(multiply(m, self._beta1), multiply(u, 1 - self._beta1))
      updates.append(assign(m, u))
    # The difference is taken in the dtype in which the variable is kept: one
    # taken in narrower activations would lose small steps.
    return [*updates, assign_sub(var, to_variable(u, var))]

  def _precondition(self, g: Tensor, var: Variable) -> _Preconditioned:
    decay = scalar(self._decay_rate, var.graph)
    g2 = add(square(g), self._epsilon1)

    def decayed(suffix: str, value: Tensor) -> tuple[Tensor, Operation]:
      old = slot(var, suffix, value.shape)
      new = add(multiply(old, decay), multiply(value, 1 - decay))
      return new, assign(old, new)

    dims = self._factored_dims(g.shape)
    if dims is None:
      v, assign_v = decayed("_slot_v", g2)
      return _Preconditioned(multiply(g, rsqrt(v)), [assign_v])

    largest, second = dims
    row_means = reduce_mean(g2, reduced_dim=largest)
    column_means = reduce_mean(g2, reduced_dim=second)
    vr, assign_vr = decayed("_slot_vr", row_means)
    vc, assign_vc = decayed("_slot_vc", column_means)
    r = rsqrt(divide(vr, reduce_mean(vr, reduced_dim=second)))
    u = multiply(multiply(g, r), rsqrt(vc))
    return _Preconditioned(u, [assign_vr, assign_vc])

  def _factored_dims(self, shape: Shape) -> tuple[Dimension, Dimension] | None:
    if not self._factored:
      return None
    free = [d for d in shape if not self._is_stacked(d)]
    by_size = sorted(free, key=lambda d: -d.size)
    if len(by_size) < 2 or by_size[1].size < self._min_dim_size_to_factor:
      return None
    return by_size[0], by_size[1]

  def _clipped(self, u: Tensor) -> Tensor:
    if self._clipping_threshold is None:
      return u
    excess = multiply(self._rms(u), 1.0 / self._clipping_threshold)
    return divide(u, maximum(excess, 1.0))

  def _is_scaled(self, name: str) -> bool:
    return self._multiply_by_parameter_scale and not any(
      part in name for part in self._unscaled
    )

  def _rms(self, x: Tensor) -> Tensor:
    """One number for each separate parameter."""
    stacked = [d for d in x.shape if self._is_stacked(d)]
    return reduce_rms(x, output_shape=Shape(stacked))

  def _is_stacked(self, dim: Dimension) -> bool:
    return variable_name(dim.name) in self._stacked_dim_names


def _default_learning_rate(relative: bool) -> Callable[[tf.Tensor], tf.Tensor]:
  # Under unit scaling all parameters are of size one, as relative steps want.
  factor = 1.0 if relative or unit_scaling() else 0.05

  def at(step: tf.Tensor) -> tf.Tensor:
    return factor * tf.minimum(tf.math.rsqrt(step + 1.0), 0.01)

  return at


def adafactor_decay_rate_adam(
  beta2: float,
) -> Callable[[tf.Tensor], tf.Tensor]:
  """Adam's decay with its bias correction: 0 at the first step, then beta2.

  Args:
    beta2: the decay in the long run, in [0, 1).

  Returns:
    A function of the step, to be given as `decay_rate`.
  """

  def at(step: tf.Tensor) -> tf.Tensor:
    return beta2 * (1.0 - beta2**step) / (1.0 - beta2 ** (step + 1.0))

  return at


def adafactor_decay_rate_pow(
  exponent: float = 0.8, offset: int = 0
) -> Callable[[tf.Tensor], tf.Tensor]:
  """1 - (step - offset + 1)^-exponent: 0 at the first step, then towards 1.

  Args:
    exponent: in (0, 1]. At 1, all steps so far count alike.
    offset: the step to count from, in fine-tuning; before it, the rate is 0.

  Returns:
    A function of the step, to be given as `decay_rate`.
  """

  def at(step: tf.Tensor) -> tf.Tensor:
    return 1.0 - (tf.maximum(step - offset, 0.0) + 1.0) ** -exponent

  return at


def reduce_rms(
  x: Tensor,
  output_shape: Shape | None = None,
  reduced_dim: Dimension | None = None,
) -> Tensor:
  """The root of the mean square, in float32.

  Args:
    x: any shape.
    output_shape: the dimensions to keep; by default none.
    reduced_dim: the dimension to reduce, instead of `output_shape`.
  """
  squares = square(cast(x, tf.float32))
  return sqrt(
    reduce_mean(squares, output_shape=output_shape, reduced_dim=reduced_dim)
  )
