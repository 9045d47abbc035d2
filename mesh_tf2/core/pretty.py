"""A graph as text that a person can read, and compare with another one.

    variables
      w: float32[d_model:8 d_ff:16] trainable, kept in float32
    operations
      import: import() -> float32[batch:4 d_model:8]
      einsum: einsum(import, w) -> float32[batch:4 d_ff:16]

A line depends on its own operation alone, so that a change of the program is
a change of few lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from .graph import Graph, Operation, Tensor


def to_text(graph: Graph) -> str:
  """The variables in order of creation, then the other operations in order."""
  return "\n".join(_lines(graph))


def _lines(graph: Graph) -> Iterator[str]:
  variables = dict.fromkeys(graph.all_variables)
  if variables:
    yield "variables"
    yield from (f"  {variable_line(v)}" for v in variables)
  others = [op for op in graph.operations if op not in variables]
  if others:
    yield "operations"
    yield from (f"  {operation_line(op)}" for op in others)


def variable_line(variable: Operation) -> str:
  """`name: float32[a:4] trainable, kept in float32`."""
  v: Any = variable
  kind = "trainable" if v.trainable else "untrainable"
  return f"{v.full_name}: {v.value.aval!r} {kind}, kept in {v.slice_dtype.name}"


def operation_line(op: Operation) -> str:
  """`name: kind(inputs) -> float32[a:4]`, or what it assigns to."""
  inputs = ", ".join(map(tensor_name, op.inputs))
  line = f"{op.name}: {kind_of(op)}({inputs})"
  if op.outputs:
    line += f" -> {', '.join(repr(y.aval) for y in op.outputs)}"
  if variables := getattr(op, "variables", None):
    line += f" to {', '.join(v.full_name for v in variables)}"
  return line


def kind_of(op: Operation) -> str:
  """The name of the primitive, or of the class of another operation."""
  primitive = getattr(op, "primitive", None)
  if primitive is not None:
    return str(primitive.name)
  return type(op).__name__.removesuffix("Operation").lower()


def tensor_name(x: Tensor) -> str:
  """The name of the operation that made it, with a number if it made more."""
  return x.operation.name if len(x.operation.outputs) == 1 else x.name
