"""Names of the dimensions of what optimizers remember of a variable.

A slot has the shape of its variable under names of its own, so that a layout
rule can split it where the variable is replicated. Dimension `d_model` of the
slot of a variable [d_model, d_ff] is `slot_d_model@d_model,d_ff`; rules call it
`slot_d_model`. What stands behind the @ are the variable's dimensions, in
order: they tell which mesh dimensions split the slot already.
"""

from __future__ import annotations

from collections.abc import Callable

from .shape import Dimension, Shape

PREFIX = "slot_"
_OF = "@"


def slot_shape(shape: Shape) -> Shape:
  """The shape of a slot of a variable of this shape."""
  siblings = ",".join(d.name for d in shape)
  return Shape(
    Dimension(f"{PREFIX}{d.name}{_OF}{siblings}", d.size) for d in shape
  )


def is_slot_dimension(name: str) -> bool:
  """Whether a name is one that `slot_shape` gives."""
  return name.startswith(PREFIX) and _OF in name


def rule_name(name: str) -> str:
  """What layout rules call a dimension: `slot_d_model` without its variable."""
  return name.partition(_OF)[0] if is_slot_dimension(name) else name


def variable_name(name: str) -> str:
  """The variable's dimension that one of its slot is named for: `d_model`."""
  return rule_name(name).removeprefix(PREFIX)


def variable_of_rule(name: str) -> str | None:
  """The variable's dimension that a layout rule for slots is about, or None."""
  return name.removeprefix(PREFIX) if name.startswith(PREFIX) else None


def slot_axis(name: str, axis_of: Callable[[str], int | None]) -> int | None:
  """The mesh axis that splits a dimension of a slot, or None.

  A rule for a slot counts where its mesh dimension splits nothing else of the
  slot: of several such rules, that of the variable's first dimension. Otherwise
  the dimension is split as the variable's own.

  Args:
    name: a name that `slot_shape` gives.
    axis_of: the mesh axis of a rule for this name, or None.
  """
  siblings = name.partition(_OF)[2].split(",")
  found = {d: axis_of(d) for d in siblings}
  for d in siblings:
    axis = axis_of(PREFIX + d)
    if axis is not None and axis not in found.values():
      found[d] = axis
  return found[variable_name(name)]
