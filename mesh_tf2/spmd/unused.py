"""Layout rules and mesh dimensions that split nothing in a program."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.errors import did_you_mean
from ..core.graph import Operation
from ..core.slot_names import is_slot_dimension, rule_name, variable_of_rule
from .lowering import with_inner
from .mesh import MeshImpl


def unused(operations: Iterable[Operation], impl: MeshImpl) -> list[str]:
  """A sentence for each rule and mesh dimension that is without effect."""
  dims = {
    d for op in with_inner(operations) for t in op.outputs for d in t.shape
  }
  names = {rule_name(d.name) for d in dims}
  has_slots = any(is_slot_dimension(d.name) for d in dims)
  slots_split = {
    (rule_name(d.name), impl.tensor_dimension_to_mesh_axis(d))
    for d in dims
    if is_slot_dimension(d.name)
  }
  mesh_names = impl.shape.dimension_names
  found, working = [], set()
  for tensor_name, mesh_name in impl.layout_rules.pairs:
    rule = f"layout rule '{tensor_name}:{mesh_name}' splits nothing: "
    variable_dim = variable_of_rule(tensor_name)
    if variable_dim in names and not has_slots:
      continue  # a rule for training, in a program that does not train
    if tensor_name not in names:
      found.append(
        f"{rule}no tensor has a dimension '{tensor_name}'"
        f"{did_you_mean(tensor_name, names)}"
      )
    elif mesh_name not in mesh_names:
      found.append(
        f"{rule}the mesh [{impl.shape}] has no dimension '{mesh_name}'"
        f"{did_you_mean(mesh_name, mesh_names)}"
      )
    elif (
      variable_dim in names
      and (tensor_name, mesh_names.index(mesh_name)) not in slots_split
    ):
      found.append(
        f"{rule}'{mesh_name}' splits another dimension of every variable with "
        f"'{variable_dim}'"
      )
    else:
      working.add(mesh_name)
  for d in impl.shape:
    if d.name not in working and d.size > 1:
      found.append(
        f"mesh dimension {d} splits nothing: all its processors do the same "
        "work; add a layout rule for it"
      )
  return found
