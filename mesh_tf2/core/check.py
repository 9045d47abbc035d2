"""Whether a graph is well formed.

For those who write operations and graph rewrites: a mistake is found where it
is made, not when something is lowered much later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .graph import Apply, Graph, Operation, Tensor
from .pretty import operation_line

_AROUND = 3  # operations shown before and after the one that is wrong


class GraphError(ValueError):
  """A graph that breaks a rule, with the operation that does and those near."""


def check_graph(graph: Graph) -> None:
  """Raises GraphError on the first operation that breaks a rule.

  An operation stands after those that make its inputs; its name is unique; its
  outputs name it as their maker; a primitive would infer the same shapes and
  dtypes again. The variables are those of the operations, by full name.
  """
  operations = graph.operations
  made: set[Tensor] = set()
  names: dict[str, int] = {}
  for i, op in enumerate(operations):
    for problem in _problems(op, i, made, names):
      raise GraphError(f"{op.name}: {problem}\n{_around(operations, i)}")
    made.update(op.outputs)
    names[op.name] = i
  _check_variables(graph)


def _problems(
  op: Operation, place: int, made: set[Tensor], names: dict[str, int]
) -> Iterator[str]:
  if op.name in names:
    yield f"operation {names[op.name]} has the same name; use unique_name"
  for x in op.inputs:
    if x not in made:
      yield (
        f"reads {x}, which no operation before it makes; put the operation "
        f"{x.operation.name} before number {place}"
      )
  for y in op.outputs:
    if y.operation is not op:
      yield f"its output {y} says that {y.operation.name} made it"
  if isinstance(op, Apply):
    yield from _differences(op)


def _differences(op: Apply) -> Iterator[str]:
  try:
    inferred = op.primitive.infer(*(x.aval for x in op.inputs))
  except (ValueError, TypeError) as e:
    yield f"its inputs do not fit: {e}"
    return
  want = list(inferred) if isinstance(inferred, tuple) else [inferred]
  got = [y.aval for y in op.outputs]
  if got != want:
    yield f"its outputs are {got}, its inputs make {want}"


def _check_variables(graph: Graph) -> None:
  operations = set(graph.operations)
  for name, variable in graph.name_to_variable.items():
    if variable.full_name != name:
      raise GraphError(
        f"variable {variable.full_name} is listed under the name {name}"
      )
    if variable not in operations:
      raise GraphError(
        f"variable {name} is not among the operations; do not detach it"
      )


def _around(operations: Sequence[Operation], place: int) -> str:
  first = max(place - _AROUND, 0)
  shown = operations[first : place + _AROUND + 1]
  return "\n".join(
    f"{'>' if i == place else ' '} {i}  {operation_line(op)}"
    for i, op in enumerate(shown, first)
  )
