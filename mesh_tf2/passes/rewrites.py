"""Changes to a graph that is built: methods of `Graph` and of `Lowering`.

They are bound here, above the operations that they know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..autodiff import clone
from ..core.graph import Graph, Mesh, Operation, Tensor
from ..ops.stacked_variable import StackedVariable
from ..ops.variables import Assign, AssignFn, Variable
from ..spmd.lowering import Lowering
from ..spmd.mesh import MeshImpl


def clone_operations(
  graph: Graph, ops: Sequence[Operation], input_mapping: Mapping[Tensor, Tensor]
) -> tuple[list[Operation], dict[Tensor, Tensor]]:
  """Copies of operations that read other tensors.

  Variables and random numbers are not copied: the copies read the same ones.

  Args:
    graph: the graph of the operations.
    ops: each after those that it depends on.
    input_mapping: from tensors to those that take their place.

  Returns:
    The copies, and the mapping with the outputs of the operations added.
  """
  mapping = dict(input_mapping)
  kept = [op for op in ops if isinstance(op, Variable) or _is_random(op)]
  for op in kept:
    mapping.update({y: y for y in op.outputs})
  copied = [op for op in ops if op not in kept]
  return clone.clone_operations(copied, mapping), mapping


def _is_random(op: Operation) -> bool:
  return getattr(getattr(op, "primitive", None), "is_random", False)


def combine_assignments(
  graph: Graph, assignments: Sequence[Operation]
) -> list[Operation]:
  """Assignments that do the same with their values, as one operation each.

  Args:
    graph: the graph of the assignments. They are taken out of it.
    assignments: what `assign` returns, or the like. Others stay as they are.

  Returns:
    The operations in their place.
  """
  groups: dict[tuple[Mesh, AssignFn], list[Assign]] = {}
  others: list[Operation] = []
  for op in assignments:
    if isinstance(op, Assign):
      groups.setdefault((op.mesh, op.assign_fn), []).append(op)
    else:
      others.append(op)
  graph.detach([op for group in groups.values() for op in group])
  combined: list[Operation] = [
    Assign(
      [v for op in group for v in op.variables],
      [x for op in group for x in op.inputs],
      assign_fn,
    )
    for (_, assign_fn), group in groups.items()
  ]
  return combined + others


def rewrite_stack_variables(
  graph: Graph,
  max_combined_variable_size: int = 2**29,
  max_combined_slice_size: int = 2**27,
  mesh_to_impl: Mapping[Mesh, MeshImpl] | None = None,
) -> None:
  """Puts one `StackedVariable` in the place of variables that are alike.

  These agree in mesh, shape, dtype, trainability and the operations that assign
  to them. They are still kept and saved one by one. A graph that has been
  rewritten can be rewritten again.

  Args:
    graph: the graph.
    max_combined_variable_size: the largest number of elements to combine.
    max_combined_slice_size: the same, for a processor's slice.
    mesh_to_impl: where variables are laid out; by default nothing is split. On
      a single processor nothing is combined.
  """
  groups: dict[Any, list[Variable]] = {}
  for v in graph.all_variables:
    if isinstance(v, Variable):
      assigns = [op for op in graph.operations if v in op.variables]
      alike = v.mesh, v.shape, v.variable_dtype, v.trainable, tuple(assigns)
      groups.setdefault(alike, []).append(v)
  for group in groups.values():
    first, impl = group[0], (mesh_to_impl or {}).get(group[0].mesh)
    if impl is not None and impl.size == 1:
      continue
    slice_size = impl.slice_size(first.shape) if impl else first.size
    count = min(
      max_combined_variable_size // first.size,
      max_combined_slice_size // slice_size,
    )
    for begin in range(0, len(group), max(count, 1)):
      if len(some := group[begin : begin + count]) > 1:
        graph.stack_variables(StackedVariable(some))


def autostack(lowering: Lowering) -> None:
  """Stacks the variables of its graph, for lowerings to come."""
  rewrite_stack_variables(lowering.graph, mesh_to_impl=lowering.mesh_to_impl)


setattr(Lowering, "autostack", autostack)  # noqa: B010  mypy knows it not
for _fn in (clone_operations, combine_assignments, rewrite_stack_variables):
  setattr(Graph, _fn.__name__, _fn)
