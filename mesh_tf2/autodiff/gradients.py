"""Reverse-mode gradients, from the rules that stand with each operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.graph import Operation, Tensor
from ..ops.binary import add
from ..ops.source import ones_like, zeros_like


def gradients(
  ys: Sequence[Tensor],
  xs: Sequence[Tensor],
  grad_ys: Sequence[Tensor | None] | None = None,
  operations: Sequence[Operation] | None = None,
) -> list[Tensor | None]:
  """Gradients of the sum of `ys` with respect to `xs`.

  Args:
    ys: tensors.
    xs: tensors that `ys` depend on.
    grad_ys: the gradient of each of `ys`; ones by default.
    operations: look at these operations only, by default at the whole graph.

  Returns:
    For each of `xs` a tensor of its shape and dtype, or None where `ys` do not
    depend on it.

  Example:
    >>> import mesh_tf2 as mtf
    >>> program = mtf.Program()
    >>> @program.function
    ... def slope(mesh, x):
    ...   x = mtf.import_tf_tensor(mesh, x, "points:3")
    ...   return mtf.gradients([x * x], [x])
    >>> print(slope([1.0, 2.0, 3.0])[0].numpy())
    [2. 4. 6.]
  """
  for name, given in (("ys", ys), ("xs", xs)):
    if isinstance(given, Tensor):
      raise TypeError(
        f"gradients: {name} is {given}; give a list: [{given.name}]"
      )
  if not xs:
    return []
  if operations is None:
    operations = list(xs[0].graph.operations)
  reached = _downstream(xs, operations)
  grads: dict[Tensor, Tensor] = {}
  for y, dy in zip(ys, grad_ys or [None] * len(ys), strict=True):
    _accumulate(grads, y, ones_like(y) if dy is None else dy)
  for op in reversed(operations):
    if op in reached and op.has_gradient:
      _backward(op, grads)
  return [grads.get(x) for x in xs]


def _downstream(
  xs: Sequence[Tensor], operations: Iterable[Operation]
) -> set[Operation]:
  """The operations through which a change of `xs` is felt."""
  changed, reached = set(xs), set()
  for op in operations:
    if any(x in changed for x in op.inputs):
      reached.add(op)
      changed.update(op.outputs)
  return reached


def _backward(op: Operation, grads: dict[Tensor, Tensor]) -> None:
  """Adds what flows through one operation to the gradients of its inputs."""
  dys = [grads.get(y) for y in op.outputs]
  if all(dy is None for dy in dys):
    return
  filled: list[Any] = [
    zeros_like(y) if dy is None and op.fills_gradients else dy
    for y, dy in zip(op.outputs, dys, strict=True)
  ]
  for x, dx in zip(op.inputs, op.gradient(filled), strict=True):
    if dx is not None and x.dtype.is_floating:
      _accumulate(grads, x, dx)


def _accumulate(grads: dict[Tensor, Tensor], x: Tensor, dx: Tensor) -> None:
  if dx.shape != x.shape or dx.dtype != x.dtype:
    raise AssertionError(
      f"the gradient for {x} is {dx.aval!r}; its shape and dtype must agree"
    )
  grads[x] = add(grads[x], dx) if x in grads else dx
