"""Several variables of one shape, read as one."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from ..core.graph import Tensor
from ..core.shape import Dimension, Shape
from ..spmd.lowering import Lowering
from .variables import Typed, Variable


class StackedVariable(Typed):
  """Takes the place of several variables in a graph.

  They are kept, assigned and saved one by one, under their own names, and the
  tensors of their values stay the same; there is one more, of all values,
  stacked along a dimension `stacked`.

  Args:
    vs: variables that agree in mesh, shape, dtype and trainability.
  """

  def __init__(self, vs: Sequence[Variable]) -> None:
    super().__init__([], vs[0].mesh, f"stacked/{vs[0].name}")
    self.full_name = f"stacked/{vs[0].full_name}"
    self.variables = list(vs)
    self.variable_dtype = vs[0].variable_dtype
    self.trainable = vs[0].trainable
    self.shape = Shape([Dimension("stacked", len(vs)), *vs[0].shape])
    self._outputs = [Tensor(self, self.shape, self.dtype)]

  @property
  def original_names(self) -> list[str]:
    """The full names of the variables."""
    return [v.full_name for v in self.variables]

  def lower(self, lowering: Lowering) -> None:
    """Reads the slices of all, and stacks them."""
    for v in self.variables:
      v.lower(lowering)
    at = -1 - len(self.variables[0].shape)
    slices = lowering.mesh_impl(self).map_trailing(
      lambda *xs: tf.stack(xs, axis=at),
      *(lowering.slices(v.value) for v in self.variables),
    )
    lowering.set_tensor_lowering(self.value, slices)
