"""Operations that run inside another one: a round of a loop, a branch.

They are traced like any others, and then taken out of the program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.graph import Aval, Graph, Mesh, Operation, Tensor
from ..ops.variables import Variable
from ..spmd.laid_out import PendingSum, Slices
from ..spmd.lowering import Lowering, needed_among
from .clone import clone_operations


class SubgraphInput(Operation):
  """A value that is given anew each time the subgraph runs."""

  def __init__(self, mesh: Mesh, aval: Aval) -> None:
    super().__init__([], mesh, "subgraph_input")
    self._outputs = [Tensor(self, aval.shape, aval.dtype)]


@dataclasses.dataclass(frozen=True)
class Subgraph:
  """Operations from some inputs to some results.

  Attributes:
    inputs: outputs of `SubgraphInput`s.
    operations: all that the results need, each after what it depends on, and
      those with an effect.
    results: tensors; they may be inputs, or come from outside.
  """

  inputs: list[Tensor]
  operations: list[Operation]
  results: list[Tensor]

  def externals(self) -> list[Tensor]:
    """The tensors from outside that the operations and results need."""
    made = {y for op in self.operations for y in op.outputs} | set(self.inputs)
    used = [x for op in self.operations for x in op.inputs]
    return list(
      dict.fromkeys(x for x in (*used, *self.results) if x not in made)
    )

  def call(self, mapping: dict[Tensor, Tensor]) -> list[Operation]:
    """Copies of the operations where we are now, reading mapped tensors.

    Args:
      mapping: what takes the place of inputs and externals; what takes that of
        the outputs of the operations is added.
    """
    return clone_operations(self.operations, mapping)

  def clone(self, mapping: dict[Tensor, Tensor]) -> Subgraph:
    """A copy of its own, in which other tensors from outside are read."""
    inner = dict(mapping)

    def fn(*inputs: Tensor) -> list[Tensor]:
      inner.update(zip(self.inputs, inputs, strict=True))
      self.call(inner)
      return [inner.get(y, y) for y in self.results]

    mesh = self.inputs[0].mesh if self.inputs else self.results[0].mesh
    return capture(fn, mesh, [x.aval for x in self.inputs], "clone")

  def lower(
    self, lowering: Lowering, values: Sequence[Slices]
  ) -> list[Slices | PendingSum]:
    """Lowers the operations; nothing but the results stays in `lowering`."""
    outer = dict(lowering.tensors)
    for x, value in zip(self.inputs, values, strict=True):
      lowering.set_tensor_lowering(x, value)
    lowering.run(self.operations)
    results = [lowering.maybe_pending(y) for y in self.results]
    lowering.tensors = outer
    return results


def new_inputs(mesh: Mesh, avals: Iterable[Aval]) -> list[Tensor]:
  """Inputs of a subgraph, which stand in no program."""
  inputs = [SubgraphInput(mesh, aval) for aval in avals]
  mesh.graph.detach(inputs)
  return [x.outputs[0] for x in inputs]


def capture(
  fn: Callable[..., Any],
  mesh: Mesh,
  inputs: Sequence[Tensor | Aval],
  what: str,
) -> Subgraph:
  """Traces `fn`; its operations leave the program, variables stay.

  Args:
    fn: takes `inputs`, returns a tensor or a list of them.
    mesh: on which it runs.
    inputs: inputs of a subgraph, or what is known of ones to be made.
    what: how to call the operation in errors.

  Raises:
    ValueError: a variable is assigned inside.
    TypeError: something else than mesh tensors is returned.
  """
  given = [
    x if isinstance(x, Tensor) else new_inputs(mesh, [x])[0] for x in inputs
  ]
  graph: Graph = mesh.graph
  results, operations = graph.capture_operations(lambda: fn(*given))
  if isinstance(results, Tensor):
    results = [results]
  if not isinstance(results, (list, tuple)) or not all(
    isinstance(y, Tensor) for y in results
  ):
    raise TypeError(
      f"a function given to {what} returns a mesh tensor or a list of them, "
      f"got {results!r}; make a tensor of a number with mtf.constant"
    )
  inner = [op for op in operations if not isinstance(op, Variable)]
  graph.detach(inner)
  if assigns := [op for op in inner if op.variables]:
    raise ValueError(
      f"{assigns[0].name}: a variable cannot be assigned inside a {what}; "
      "return the value, and assign it outside"
    )
  effects = [op for op in inner if op.has_effect]
  roots = [y.operation for y in results] + effects
  return Subgraph(given, needed_among(roots, inner), list(results))


def total(y: Slices | PendingSum) -> Slices:
  """The slices, summed up."""
  return y.total() if isinstance(y, PendingSum) else y
