"""Assignments that are carried out only if a step went well."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

import mesh_tf2 as mtf


class AssignIf(mtf.Operation):
  """An assignment, carried out where `condition` holds.

  The variables keep their values bit for bit where it does not, whatever was
  to be assigned: not a number, too.

  Args:
    condition: a scalar, bool.
    assign: the operation that assigns; the program must not carry it out, too.
  """

  has_effect = True

  def __init__(self, condition: mtf.Tensor, assign: mtf.Operation) -> None:
    super().__init__([condition, *assign.inputs], name="assign_if")
    self.variables = assign.variables
    self._assign = assign

  def lower(self, lowering: mtf.Lowering) -> None:
    """Records the new values, or the old ones once more."""
    condition = lowering.slices(self.inputs[0])
    old = {v: lowering.variable_value(v) for v in self.variables}
    self._assign.lower(lowering)
    for variable, before in old.items():

      def choose(
        condition: tf.Tensor, new: tf.Tensor, old: tf.Tensor
      ) -> tf.Tensor:
        return tf.where(tf.reshape(condition, []), new, old)

      lowering.new_values[variable] = lowering.mesh_impl(variable).map_trailing(
        choose, condition, lowering.new_values[variable], before
      )


def only_if(
  condition: mtf.Tensor, assignments: Sequence[mtf.Operation]
) -> list[mtf.Operation]:
  """Assignments, to be carried out only if `condition` holds.

  Args:
    condition: a scalar, bool.
    assignments: operations of the same graph; they are taken out of it.
  """
  condition.graph.detach(assignments)
  return [AssignIf(condition, assign) for assign in assignments]


def is_finite(xs: Sequence[mtf.Tensor]) -> mtf.Tensor:
  """Whether all of these scalars are neither infinite nor not a number."""
  total = mtf.add_n([mtf.abs(mtf.cast(x, tf.float32)) for x in xs])
  return mtf.less(total, float("inf"))


def squared_norm(xs: Sequence[mtf.Tensor]) -> mtf.Tensor:
  """The sum of the squares of all elements, float32."""
  squares = [mtf.square(mtf.cast(x, tf.float32)) for x in xs]
  return mtf.add_n([mtf.reduce_sum(s, output_shape=[]) for s in squares])
