"""Copies of operations that read other tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.graph import Operation, Tensor


def clone_operations(
  operations: Sequence[Operation], mapping: dict[Tensor, Tensor]
) -> list[Operation]:
  """Copies of operations, reading the mapped tensors.

  Args:
    operations: each after those that it depends on.
    mapping: from tensors to those that take their place; the outputs of the
      operations are added to it.
  """
  clones: dict[Operation, Operation] = {}
  for op in operations:
    if not op.outputs:
      continue  # an assignment: what is computed twice assigns once
    clone = op.clone([mapping.get(x, x) for x in op.inputs])
    clone.adopt(clones)
    mapping.update(zip(op.outputs, clone.outputs, strict=True))
    clones[op] = clone
  return list(clones.values())
