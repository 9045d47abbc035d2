"""One of two branches, chosen when the program runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Operation, Tensor
from ..core.shape import Shape
from ..ops.source import zeros_like
from ..spmd.lowering import Lowering
from .gradients import gradients
from .subgraph import Subgraph, capture, total


class CondOperation(Operation):
  """Runs one of two subgraphs, which give results of the same kind.

  Args:
    predicate: a bool scalar.
    branches: what to run where it holds, and where it does not. They read what
      they need from outside.
    name: a name for the operation.
  """

  def __init__(
    self,
    predicate: Tensor,
    branches: tuple[Subgraph, Subgraph],
    name: str = "cond",
  ) -> None:
    self._branches = branches
    externals = [x for branch in branches for x in branch.externals()]
    inputs = [predicate, *dict.fromkeys(externals)]
    super().__init__(inputs, predicate.mesh, name)
    self._outputs = [
      Tensor(self, y.shape, y.dtype, index=i)
      for i, y in enumerate(branches[0].results)
    ]
    self.inner_operations = [op for b in branches for op in b.operations]

  def clone(self, inputs: Sequence[Tensor]) -> CondOperation:
    """The same branches, reading other tensors."""
    mapping = dict(zip(self._inputs, inputs, strict=True))
    first, second = (branch.clone(mapping) for branch in self._branches)
    return CondOperation(inputs[0], (first, second))

  def lower(self, lowering: Lowering) -> None:
    """One `tf.cond`; nothing of the other branch is computed or sent."""
    mesh = lowering.mesh_impl(self)
    predicate, *_ = map(lowering.slices, self._inputs)
    like = [mesh.full(tf.zeros([], y.dtype), y.shape) for y in self._outputs]

    def branch(graph: Subgraph) -> Callable[[], list[list[tf.Tensor]]]:
      def run() -> list[list[tf.Tensor]]:
        return [mesh.flatten(total(y)) for y in graph.lower(lowering, [])]

      return run

    def choose() -> Any:
      holds = mesh.export_tensor(predicate, Shape([]))
      return tf.cond(holds, *map(branch, self._branches))

    if tf.executing_eagerly():
      choose = tf.function(choose, autograph=False)
    for y, x, flat in zip(self._outputs, like, choose(), strict=True):
      lowering.set_tensor_lowering(y, mesh.unflatten(x, flat))

  def gradient(self, grad_ys: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """The gradient of the branch that ran, which is computed again."""
    predicate, *externals = self._inputs
    wanted = [x for x in externals if x.dtype.is_floating]
    matters: set[Tensor] = set()

    def backward(branch: Subgraph) -> Subgraph:
      def fn() -> list[Tensor]:
        dxs = _gradients(branch, wanted, grad_ys)
        matters.update(dxs)
        return [dxs[x] if x in dxs else zeros_like(x) for x in wanted]

      return capture(fn, self.mesh, [], "cond")

    graphs = [backward(branch) for branch in self._branches]
    if not matters:
      return [None] * len(self._inputs)
    used = [i for i, x in enumerate(wanted) if x in matters]
    first, second = (
      dataclasses.replace(g, results=[g.results[i] for i in used])
      for g in graphs
    )
    dxs = CondOperation(predicate, (first, second), "cond_gradient").outputs
    found = {wanted[i]: dx for i, dx in zip(used, dxs, strict=True)}
    return [None, *map(found.get, externals)]


def _gradients(
  branch: Subgraph, xs: Sequence[Tensor], grad_ys: Sequence[Tensor]
) -> dict[Tensor, Tensor]:
  """The gradients of a branch, computed again, for those xs that matter."""
  mapping: dict[Tensor, Tensor] = {}
  clones = branch.call(mapping)
  pairs = [
    (mapping.get(y, y), dy)
    for y, dy in zip(branch.results, grad_ys, strict=True)
    if y.dtype.is_floating
  ]
  ys, dys = [y for y, _ in pairs], [dy for _, dy in pairs]
  found = zip(xs, gradients(ys, xs, dys, clones), strict=True)
  return {x: dx for x, dx in found if dx is not None}


def cond(
  predicate: Tensor, true_fn: Callable[[], Any], false_fn: Callable[[], Any]
) -> Any:
  """What `true_fn` returns where `predicate` holds, else what `false_fn` does.

  Only the branch that is taken is computed, and its gradient likewise. For a
  choice element by element, see `where`.

  Args:
    predicate: a bool scalar.
    true_fn: returns a tensor or a list of them. It may use other tensors and
      create variables.
    false_fn: returns as many, of the same shapes and dtypes.

  Raises:
    TypeError: the predicate, or what a branch returns, is no mesh tensor.
    ShapeError: the predicate is no bool scalar, or the branches do not return
      the same shapes and dtypes.
    ValueError: a branch assigns to a variable.

  Example:
    >>> import mesh_tf2 as mtf
    >>> program = mtf.Program()
    >>> @program.function
    ... def halved(mesh, x):
    ...   x = mtf.import_tf_tensor(mesh, x, "a:2")
    ...   large = mtf.reduce_sum(x) > 10.0
    ...   return mtf.cond(large, lambda: x * 0.5, lambda: x)
    >>> print(halved([8.0, 4.0]).numpy(), halved([2.0, 4.0]).numpy())
    [4. 2.] [2. 4.]
  """
  if not isinstance(predicate, Tensor):
    raise TypeError(
      f"cond: the predicate is a mesh tensor, got {predicate!r}; where it is "
      "known already, use Python's if"
    )
  if len(predicate.shape) or predicate.dtype != tf.bool:
    raise ShapeError(f"cond: the predicate must be a bool scalar: {predicate}")
  mesh = predicate.mesh
  single: list[bool] = []

  def noted(fn: Callable[[], Any]) -> Callable[[], Any]:
    def call() -> Any:
      result = fn()
      single.append(isinstance(result, Tensor))
      return result

    return call

  first = capture(noted(true_fn), mesh, [], "cond")
  second = capture(noted(false_fn), mesh, [], "cond")
  avals = [[y.aval for y in graph.results] for graph in (first, second)]
  if avals[0] != avals[1] or single[0] != single[1]:
    raise ShapeError(
      f"cond: true_fn returns {avals[0]}, false_fn returns {avals[1]}; they "
      "must be alike: transpose, reshape or cast one of them"
    )
  ys = CondOperation(predicate, (first, second)).outputs
  return ys[0] if single[0] else ys
