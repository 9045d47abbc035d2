"""Assignments that are carried out only if a step went well."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from ..core.graph import Operation, Tensor
from ..core.shape import Shape
from ..ops.binary import add_n, less
from ..ops.cast import cast
from ..ops.unary import mtf_abs
from ..spmd.lowering import Lowering


class AssignIf(Operation):
  """An assignment, carried out where `condition` holds.

  The variables keep their values bit for bit where it does not, whatever was
  to be assigned: not a number, too.

  Args:
    condition: a scalar, bool.
    assign: the operation that assigns; the program must not carry it out, too.
  """

  has_effect = True

  def __init__(self, condition: Tensor, assign: Operation) -> None:
    super().__init__([condition, *assign.inputs], name="assign_if")
    self.variables = assign.variables
    self._assign = assign

  def lower(self, lowering: Lowering) -> None:
    """Records the new values, or the old ones once more."""
    condition = lowering.slices(self.inputs[0])
    old = {v: lowering.variable_value(v) for v in self.variables}
    self._assign.lower(lowering)
    for variable, before in old.items():
      lowering.new_values[variable] = lowering.mesh_impl(variable).map_points(
        tf.where,
        [condition, lowering.new_values[variable], before],
        [Shape([]), variable.shape, variable.shape],
        variable.shape,
      )


def only_if(
  condition: Tensor, assignments: Sequence[Operation]
) -> list[Operation]:
  """Assignments, to be carried out only if `condition` holds.

  Args:
    condition: a scalar, bool.
    assignments: operations of the same graph; they are taken out of it.

  Returns:
    The operations that stand for them now, at the end of the graph: what is
    read by `read_variable` before this call is the old value.
  """
  condition.graph.detach(assignments)
  return [AssignIf(condition, assign) for assign in assignments]


def all_finite(xs: Sequence[Tensor]) -> Tensor:
  """Whether all of these scalars are neither infinite nor not a number."""
  total = add_n([mtf_abs(cast(x, tf.float32)) for x in xs])
  return less(total, float("inf"))
