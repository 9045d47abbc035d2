"""The cost of a program as values that print as tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..core.shape import Shape


@dataclasses.dataclass(frozen=True)
class VariableCost:
  """The variables of a program.

  Attributes:
    parameters: elements of trainable variables.
    parameters_per_processor: those that one processor holds.
    bytes: of all variables, optimizer slots included, as kept between steps.
    bytes_per_processor: those that one processor holds.
  """

  parameters: int
  parameters_per_processor: int
  bytes: int
  bytes_per_processor: int

  def __str__(self) -> str:
    return (
      f"{self.parameters:,} parameters ({self.parameters_per_processor:,} per "
      f"processor); all variables take {self.bytes:,} bytes "
      f"({self.bytes_per_processor:,} per processor)"
    )


@dataclasses.dataclass(frozen=True)
class CollectiveCost:
  """All communication of one kind over the same mesh dimensions.

  Attributes:
    kind: allreduce, reduce_scatter, allconcat, alltoall, permute or shift.
    mesh_dims: names of the mesh dimensions along which it goes.
    dtype: of an element.
    count: how many times.
    elements: of one processor's results, all times together. A processor puts
      in as many, but for allconcat (fewer) and reduce_scatter (more).
  """

  kind: str
  mesh_dims: tuple[str, ...]
  dtype: tf.DType
  count: int
  elements: int

  @property
  def bytes(self) -> int:
    """The bytes of `elements`."""
    return self.elements * self.dtype.size


@dataclasses.dataclass(frozen=True)
class Cost:
  """What one call of a function costs. Prints as a table.

  Attributes:
    mesh_shape: the mesh dimensions.
    variables: their number and size.
    activation_bytes_per_processor: of the results of all operations, as if all
      lived at once; what a loop makes is counted for one round.
    flops: operations on numbers that the program asks for.
    flops_per_processor: operations that one processor carries out; where work
      is replicated, all of them together do more than `flops`.
    collectives: the communication, by kind, mesh dimensions and dtype.
  """

  mesh_shape: Shape
  variables: VariableCost
  activation_bytes_per_processor: int
  flops: int
  flops_per_processor: int
  collectives: tuple[CollectiveCost, ...]

  @property
  def parameters(self) -> int:
    """Elements of trainable variables."""
    return self.variables.parameters

  def __str__(self) -> str:
    v = self.variables
    sizes = [
      (f"mesh [{self.mesh_shape}]", "whole", "per processor"),
      ("parameters", v.parameters, v.parameters_per_processor),
      ("variables, bytes", v.bytes, v.bytes_per_processor),
      ("activations, bytes", "", self.activation_bytes_per_processor),
      ("FLOPs", self.flops, self.flops_per_processor),
    ]
    if not self.collectives:
      return f"{table(sizes)}\nno communication"
    sent: list[Sequence[Any]] = [
      ("communication per processor", "times", "elements", "bytes")
    ]
    for c in self.collectives:
      what = f"{c.kind} over {' '.join(c.mesh_dims)}, {c.dtype.name}"
      sent.append((what, c.count, c.elements, c.bytes))
    return f"{table(sizes)}\n\n{table(sent)}"


def table(rows: Sequence[Sequence[Any]]) -> str:
  """Aligns columns: the first to the left, the others to the right."""
  cells = [[f"{x:,}" if isinstance(x, int) else x for x in row] for row in rows]
  first, *widths = [
    max(map(len, column)) for column in zip(*cells, strict=True)
  ]
  return "\n".join(
    "  ".join([row[0].ljust(first), *map(str.rjust, row[1:], widths)])
    for row in cells
  )
