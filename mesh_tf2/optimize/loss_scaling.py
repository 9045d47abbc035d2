"""Loss scaling: small gradients survive float16, large ones are noticed.

Micikevicius et al., Mixed precision training, ICLR 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from ..core.graph import Mesh, Operation, Tensor
from ..core.names import absolute_names
from ..ops.binary import divide, equal, maximum, where
from ..ops.cast import cast
from ..ops.elementwise import add, multiply
from ..ops.source import zeros_like
from ..ops.variables import Variable, assign, get_variable
from .base import Optimizer
from .clip import global_norm
from .guard import all_finite, only_if
from .slots import map_gradient


class LossScaling:
  """Multiplies the loss, divides its gradients, leaves out a bad step.

  A step whose gradients are not all finite changes no variable. With
  `growth_steps`, the scale is halved then, though not to less than 1, and
  doubled after so many good steps in a row. It is kept in the variable
  `<name>/scale`, the number of good steps in `<name>/good_steps`, and so in
  every checkpoint.

  Args:
    initial_scale: positive; a power of 2 rounds nothing.
    growth_steps: how many good steps double the scale; None keeps it fixed.
    name: of the variables.

  Raises:
    ValueError: one of the numbers is not positive.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mesh = mtf.Mesh(mtf.Graph(), "mesh")
    >>> w = mtf.get_variable(mesh, "w", "d_model:4")
    >>> scaling = mtf.optimize.LossScaling()
    >>> loss = mtf.reduce_sum(mtf.square(w))
    >>> grads = mtf.gradients([scaling.scale_loss(loss)], [w])
    >>> sgd = mtf.optimize.SgdOptimizer(0.1)
    >>> updates = scaling.apply_grads(sgd, grads, [w])
  """

  def __init__(
    self,
    initial_scale: float = 2.0**15,
    growth_steps: int | None = 2000,
    name: str = "loss_scale",
  ) -> None:
    if not initial_scale > 0 or (growth_steps is not None and growth_steps < 1):
      raise ValueError(
        f"LossScaling: initial_scale {initial_scale} and growth_steps "
        f"{growth_steps} have to be positive; growth_steps may be None"
      )
    self._initial_scale = initial_scale
    self._growth_steps = growth_steps
    self._name = name

  def scale(self, mesh: Mesh) -> Tensor:
    """The scale of this step, a float32 scalar."""
    with absolute_names():
      return get_variable(
        mesh,
        f"{self._name}/scale",
        [],
        tf.float32,
        initializer=self._initial_scale,
        trainable=False,
      )

  def scale_loss(self, loss: Tensor) -> Tensor:
    """The loss times the scale, float32: float16 would often be too narrow."""
    return multiply(cast(loss, tf.float32), self.scale(loss.mesh))

  def unscale(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Gradients of the loss, from those of the scaled one. They are float32.

    In a narrower dtype they would be lost once more. None stays None.
    """

    def unscale(g: Tensor) -> Tensor:
      scale = self.scale(g.mesh)
      return map_gradient(lambda g: divide(g, scale), g)

    return [None if g is None else unscale(g) for g in grads]

  def apply_grads(
    self,
    optimizer: Optimizer,
    grads: Sequence[Tensor | None],
    variables: Sequence[Variable | Tensor],
  ) -> list[Operation]:
    """Unscales gradients and has the optimizer use them, if all are finite.

    Args:
      optimizer: any.
      grads: of the scaled loss.
      variables: as for `Optimizer.apply_grads`.

    Returns:
      The assignments, those to the scale among them.
    """
    unscaled = self.unscale(grads)
    finite = all_finite([global_norm(unscaled)])
    return self.update(finite, optimizer.apply_grads(unscaled, variables))

  def update(
    self, finite: Tensor, updates: Sequence[Operation]
  ) -> list[Operation]:
    """Carries out assignments if a step went well, and adapts the scale.

    For those who do something with gradients between `unscale` and
    `apply_grads` of an optimizer, such as clipping.

    Args:
      finite: a scalar, bool: whether the gradients are.
      updates: what is to be assigned then.
    """
    guarded = only_if(finite, updates)
    if self._growth_steps is None:
      return guarded
    return [*guarded, *self._adapt(finite, self._growth_steps)]

  def _adapt(self, finite: Tensor, growth_steps: int) -> list[Operation]:
    scale = self.scale(finite.mesh)
    with absolute_names():
      good = get_variable(
        finite.mesh,
        f"{self._name}/good_steps",
        [],
        tf.int32,
        initializer=0,
        trainable=False,
      )
    more = add(good, 1)
    halved = maximum(multiply(scale, 0.5), min(1.0, self._initial_scale))
    enough = equal(more, growth_steps)
    grown = where(enough, _doubled(scale), scale)
    counted = where(enough, zeros_like(more), more)
    return [
      assign(scale, where(finite, grown, halved)),
      assign(good, where(finite, counted, zeros_like(good))),
    ]


def _doubled(scale: Tensor) -> Tensor:
  """Twice the scale, unless that would be infinite."""
  twice = multiply(scale, 2.0)
  return where(all_finite([twice]), twice, scale)
