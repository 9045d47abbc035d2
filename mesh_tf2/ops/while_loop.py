"""A loop whose number of rounds is known only when it runs.

Its condition and its body are graphs of their own, lowered inside one
`tf.while_loop`. Loop variables keep their layout from round to round. What the
body sums up over all rounds (its accumulators) is reduced over the mesh once,
after the last round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Aval, Mesh, Operation, Tensor
from ..core.shape import Shape
from ..spmd import random_bits
from ..spmd.laid_out import PendingSum, Slices
from ..spmd.lowering import Lowering, needed_among
from ..spmd.mesh import MeshImpl
from .variables import Variable

LoopFn = Callable[..., Any]


class LoopInput(Operation):
  """A loop variable, as the body sees it."""

  def __init__(self, mesh: Mesh, aval: Aval) -> None:
    super().__init__([], mesh, "loop_input")
    self._outputs = [Tensor(self, aval.shape, aval.dtype)]


@dataclasses.dataclass(frozen=True)
class Subgraph:
  """Operations that run inside the loop, and what they lead to."""

  operations: list[Operation]
  results: list[Tensor]

  def externals(self, inputs: Sequence[Tensor]) -> Iterator[Tensor]:
    """The tensors from outside that the operations and results need."""
    made = {y for op in self.operations for y in op.outputs} | set(inputs)
    used = [x for op in self.operations for x in op.inputs]
    for x in (*used, *self.results):
      if x not in made:
        made.add(x)
        yield x


class WhileLoopOperation(Operation):
  """Runs `body` while `cond` holds.

  Args:
    cond_fn: from the loop variables to a bool scalar.
    body_fn: from the loop variables to their new values, and then the values
      to be accumulated.
    inputs: the first values of the loop variables.
    has_accumulators: whether the body returns more than loop variables.
    tf_kwargs: for `tf.while_loop`.
    name: a name for the operation.
  """

  def __init__(
    self,
    cond_fn: LoopFn,
    body_fn: LoopFn,
    inputs: Sequence[Tensor],
    has_accumulators: bool = False,
    tf_kwargs: dict[str, Any] | None = None,
    name: str = "while_loop",
  ) -> None:
    mesh = inputs[0].mesh
    self._loop_inputs = [LoopInput(mesh, x.aval).outputs[0] for x in inputs]
    self._cond = _capture(cond_fn, self._loop_inputs)
    self._body = _capture(body_fn, self._loop_inputs)
    mesh.graph.detach([x.operation for x in self._loop_inputs])
    self._tf_kwargs = dict(tf_kwargs or {})
    _check_results(
      inputs, self._cond.results, self._body.results, has_accumulators
    )
    externals = [
      *self._cond.externals(self._loop_inputs),
      *self._body.externals(self._loop_inputs),
    ]
    super().__init__([*inputs, *dict.fromkeys(externals)], mesh, name)
    self._outputs = [
      Tensor(self, y.shape, y.dtype, index=i)
      for i, y in enumerate(self._body.results)
    ]

  @property
  def inner_operations(self) -> Sequence[Operation]:
    """The operations of the condition and of the body."""
    return [*self._cond.operations, *self._body.operations]

  @property
  def max_rounds(self) -> int | None:
    """The largest number of rounds, if it is known."""
    return self._tf_kwargs.get("maximum_iterations")

  def gradient(self, grad_ys: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """There is none: the rounds are not kept."""
    raise NotImplementedError(
      f"{self.name}: a while_loop has no gradient; take the gradient inside "
      "its body"
    )

  def lower(self, lowering: Lowering) -> None:
    """One `tf.while_loop` over the tensors of all loop variables."""
    impl = lowering.mesh_impl(self)
    externals = [lowering.slices(x) for x in self._inputs]
    count = len(self._loop_inputs)
    first = externals[:count]
    first += [
      impl.full(tf.zeros([], y.dtype), y.shape)
      for y in self._body.results[count:]
    ]
    loop = _Loop(lowering, impl, first, self._loop_inputs)

    def run() -> list[tf.Tensor]:
      return loop.run(self._cond, self._body, self._tf_kwargs)

    if tf.executing_eagerly():
      run = tf.function(run, autograph=False)
    for y, value in zip(self._outputs, loop.results(run()), strict=True):
      lowering.set_tensor_lowering(y, value)


class _Loop:
  """The lowering of a loop: from slices to flat tensors and back."""

  def __init__(
    self,
    lowering: Lowering,
    impl: MeshImpl,
    first: Sequence[Slices],
    loop_inputs: Sequence[Tensor],
  ) -> None:
    self._lowering = lowering
    self._impl = impl
    self._first = first
    self._loop_inputs = loop_inputs
    self._pending: dict[int, tuple[int, ...]] = {}

  def run(
    self, cond: Subgraph, body: Subgraph, tf_kwargs: dict[str, Any]
  ) -> list[tf.Tensor]:
    """The flat tensors after the last round."""

    def test(round_: tf.Tensor, *flat: tf.Tensor) -> tf.Tensor:
      (go,) = self._lower(cond, round_, self._unflatten(flat))
      value = go.total() if isinstance(go, PendingSum) else go
      scalar = Shape([])
      return self._impl.export_tensor(value, scalar)

    def step(round_: tf.Tensor, *flat: tf.Tensor) -> list[tf.Tensor]:
      before = self._unflatten(flat)
      after = self._lower(body, round_, before)
      count = len(self._loop_inputs)
      values = [self._total(y) for y in after[:count]]
      for i in range(count, len(after)):
        values.append(self._accumulate(i, before[i], after[i]))
      return [round_ + 1, *self._flatten(values)]

    zero = tf.constant(0, tf.int64)
    start = [zero, *self._flatten(self._first)]
    return list(tf.while_loop(test, step, start, **tf_kwargs)[1:])

  def results(self, flat: Sequence[tf.Tensor]) -> list[Slices | PendingSum]:
    """The slices after the last round; sums of accumulators are pending."""
    values: list[Slices | PendingSum] = list(self._unflatten(flat))
    for i, mesh_axes in self._pending.items():
      values[i] = self._impl.pending_sum(values[i], mesh_axes)
    return values

  def _lower(
    self, graph: Subgraph, round_: tf.Tensor, loop_values: Sequence[Slices]
  ) -> list[Slices | PendingSum]:
    lowering = self._lowering
    outer, key = dict(lowering.tensors), lowering.random_key
    lowering.random_key = random_bits.fold(key, round_)
    for x, value in zip(self._loop_inputs, loop_values, strict=False):
      lowering.set_tensor_lowering(x, value)
    lowering.run(graph.operations)
    results = [lowering.maybe_pending(y) for y in graph.results]
    lowering.tensors, lowering.random_key = outer, key
    return results

  def _total(self, y: Slices | PendingSum) -> Slices:
    return y.total() if isinstance(y, PendingSum) else y

  def _accumulate(
    self, i: int, before: Slices, y: Slices | PendingSum
  ) -> Slices:
    if isinstance(y, PendingSum) and self._impl.delays_sums:
      self._pending[i] = y.mesh_axes
      y = y.partial()
    return self._impl.map_trailing(tf.add, before, self._total(y))

  def _flatten(self, values: Sequence[Slices]) -> list[tf.Tensor]:
    return [t for x in values for t in self._impl.flatten(x)]

  def _unflatten(self, flat: Sequence[tf.Tensor]) -> list[Slices]:
    rest = iter(flat)
    values = []
    for like in self._first:
      tensors = [next(rest) for _ in self._impl.flatten(like)]
      values.append(self._impl.unflatten(like, tensors))
    return values


def _capture(fn: LoopFn, inputs: Sequence[Tensor]) -> Subgraph:
  """Traces `fn`; its operations leave the program, variables stay."""
  graph = inputs[0].graph
  results, operations = graph.capture_operations(lambda: fn(*inputs))
  results = [results] if isinstance(results, Tensor) else list(results)
  inner = [op for op in operations if not isinstance(op, Variable)]
  graph.detach(inner)
  if assigns := [op for op in inner if op.variables]:
    raise ValueError(
      f"{assigns[0].name}: a variable cannot be assigned inside a while_loop; "
      "make it a loop variable"
    )
  effects = [op for op in inner if op.has_effect]
  roots = [y.operation for y in results] + effects
  return Subgraph(needed_among(roots, inner), results)


def _check_results(
  inputs: Sequence[Tensor],
  cond: Sequence[Tensor],
  body: Sequence[Tensor],
  has_accumulators: bool,
) -> None:
  if len(cond) != 1 or len(cond[0].shape) or cond[0].dtype != tf.bool:
    raise ShapeError(
      "while_loop: the condition must be a bool scalar, got "
      f"{', '.join(map(repr, cond))}"
    )
  if len(body) < len(inputs) or (
    len(body) > len(inputs) and not has_accumulators
  ):
    raise ShapeError(
      f"while_loop: the body returns {len(body)} tensors for {len(inputs)} "
      "loop variables; more are allowed with has_accumulators=True only"
    )
  for i, (x, y) in enumerate(zip(inputs, body, strict=False)):
    if x.aval != y.aval:
      raise ShapeError(
        f"while_loop: loop variable {i} goes in as {x.aval!r} and comes out "
        f"as {y.aval!r}; transpose, reshape or cast it in the body"
      )


def while_loop(
  cond_fn: LoopFn,
  body_fn: LoopFn,
  inputs: Sequence[Tensor],
  num_loop_vars: int | None = None,
  has_accumulators: bool = False,
  **tf_kwargs: Any,
) -> list[Tensor]:
  """Runs `body_fn` while `cond_fn` holds.

  Args:
    cond_fn: takes the loop variables, returns a bool scalar.
    body_fn: takes the loop variables, returns a list of their new values, of
      the same shapes and dtypes. With `has_accumulators`, further tensors may
      follow, each of which is summed over all rounds.
    inputs: the first values of the loop variables.
    num_loop_vars: return that many of them only; by default all.
    has_accumulators: whether the body returns accumulators.
    **tf_kwargs: for `tf.while_loop`, such as `maximum_iterations`.

  Returns:
    The loop variables after the last round, then the accumulators.

  Raises:
    ShapeError: a loop variable changes its shape or dtype.
  """
  outputs = WhileLoopOperation(
    cond_fn, body_fn, inputs, has_accumulators, tf_kwargs
  ).outputs
  return outputs if num_loop_vars is None else outputs[:num_loop_vars]
