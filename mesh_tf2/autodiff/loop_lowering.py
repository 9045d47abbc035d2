"""Loops on a mesh: from slices to a `tf.while_loop` over tensors, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from ..core.graph import Tensor
from ..core.shape import Dimension, Shape
from ..spmd import random_bits
from ..spmd.laid_out import PendingSum, Slices
from ..spmd.lowering import Lowering
from ..spmd.mesh import MeshImpl
from .subgraph import Subgraph, total

if TYPE_CHECKING:
  from .loop import LoopOperation


@dataclasses.dataclass(frozen=True)
class Rounds:
  """How many rounds a loop has, and in which order.

  Attributes:
    dim: one round for each of its positions.
    condition: without a dimension, go on while it holds: from the carried
      values to a bool scalar.
    after: without either, an output of another loop: as many rounds as that
      had, from the last one to the first.
    reverse: whether the last position comes first.
  """

  dim: Dimension | None = None
  condition: Subgraph | None = None
  after: Tensor | None = None
  reverse: bool = False

  def clone(self, mapping: dict[Tensor, Tensor]) -> Rounds:
    """The same, where other tensors from outside are read."""
    condition, after = self.condition, self.after
    return dataclasses.replace(
      self,
      condition=None if condition is None else condition.clone(mapping),
      after=None if after is None else mapping.get(after, after),
    )

  def turned_back(self, loop: LoopOperation) -> Rounds:
    """The rounds of the gradient of `loop`, which has these."""
    if self.dim is None:
      return Rounds(after=loop.outputs[0], reverse=True)
    return Rounds(self.dim, reverse=not self.reverse)


@dataclasses.dataclass(frozen=True)
class _History:
  """What the rounds of a loop began with.

  Attributes:
    like: a carried value each.
    stacks: for each of them, its tensors of all rounds.
    rounds: how many rounds there were: an int32 scalar.
  """

  like: list[Slices]
  stacks: list[list[tf.Tensor]]
  rounds: tf.Tensor

  def at(self, mesh: MeshImpl, t: tf.Tensor) -> list[Slices]:
    """The values that round `t` began with."""
    return [
      mesh.unflatten(like, [x[t] for x in stack])
      for like, stack in zip(self.like, self.stacks, strict=True)
    ]


class LoopLowering:
  """The lowering of one loop.

  Args:
    lowering: of the program that the loop is part of.
    loop: the loop.
    inputs: the slices of the first carried values and of the scanned tensors.
  """

  def __init__(
    self, lowering: Lowering, loop: LoopOperation, inputs: Sequence[Slices]
  ) -> None:
    self._lowering, self._loop = lowering, loop
    self._mesh = mesh = lowering.mesh_impl(loop)
    carried = loop.parts.carried
    collected = carried + loop.parts.collected
    self._first, self._scanned = list(inputs[:carried]), list(inputs[carried:])
    self._elements = loop.body.results[carried:collected]
    self._terms = loop.body.results[collected:]
    self._blank = [
      mesh.full(tf.zeros([], y.dtype), y.shape) for y in self._elements
    ]
    self._zeros = [
      mesh.full(tf.zeros([], _sum_dtype(y)), y.shape) for y in self._terms
    ]
    self._pending: dict[int, tuple[int, ...]] = {}
    self._history: _History | None = None
    if loop.rounds.after is not None:
      self._history = lowering.histories[loop.rounds.after.operation]

  def results(self) -> list[Slices | PendingSum]:
    """The slices of the loop's outputs; sums over all rounds are pending."""
    run: Callable[[], list[list[tf.Tensor]]] = self._run
    if tf.executing_eagerly():
      run = tf.function(run, autograph=False)
    rounds, carried, sums, collected, history = run()
    values: list[Slices | PendingSum] = []
    values += self._unflatten(self._first, carried)
    values += self._joined(self._blank, self._elements, collected)
    for i, x in enumerate(self._unflatten(self._zeros, sums)):
      values.append(self._sum(i, x))
    if history and self._loop.rounds.dim is not None:
      began_with = self._loop.body.inputs[: len(self._first)]
      values += self._joined(self._first, began_with, history)
    elif self._loop.keeps_history:
      self._lowering.histories[self._loop] = _History(
        self._first, self._grouped(self._first, history), rounds[0]
      )
    return values

  def _run(self) -> list[list[tf.Tensor]]:
    """After the last round: how many, carried values, sums, stacks."""
    first = self._flatten(self._first)
    start = [
      [tf.constant(0, tf.int32)],
      first,
      self._flatten(self._zeros),
      self._arrays(self._flatten(self._blank)),
      self._arrays(first if self._loop.keeps_history else []),
    ]
    with self._mesh.looped():
      last = tf.while_loop(
        self._goes_on, self._round, start, **self._loop.tf_kwargs
      )
    rounds, carried, sums, *arrays = last
    stacks = [[x.stack() for x in group] for group in arrays]
    return [rounds, carried, sums, *stacks]

  def _goes_on(
    self, rounds: list[tf.Tensor], carried: list[tf.Tensor], *rest: Any
  ) -> tf.Tensor:
    condition = self._loop.rounds.condition
    if condition is None:
      return rounds[0] < self._number_of_rounds()
    values = self._unflatten(self._first, carried)
    (go,) = self._lower(condition, rounds[0], values)
    return self._mesh.export_tensor(total(go), Shape([]))

  def _round(
    self,
    rounds: list[tf.Tensor],
    carried: list[tf.Tensor],
    sums: list[tf.Tensor],
    collected: list[tf.TensorArray],
    history: list[tf.TensorArray],
  ) -> list[Any]:
    t = rounds[0]
    if self._loop.rounds.reverse:
      t = self._number_of_rounds() - 1 - t
    values = self._unflatten(self._first, carried)
    for x, like in zip(self._scanned, self._loop_elements(), strict=True):
      values.append(self._element(x, t, len(like.shape)))
    if self._history is not None:
      values += self._history.at(self._mesh, t)
    results = self._lower(self._loop.body, t, values)
    after = [total(y) for y in results[: len(self._first)]]
    rest = results[len(self._first) :]
    elements = [total(y) for y in rest[: len(self._blank)]]
    terms = rest[len(self._blank) :]
    added = [
      self._accumulate(i, before, y)
      for i, (before, y) in enumerate(
        zip(self._unflatten(self._zeros, sums), terms, strict=True)
      )
    ]
    return [
      [rounds[0] + 1],
      self._flatten(after),
      self._flatten(added),
      _written(collected, t, self._flatten(elements)),
      _written(history, t, carried),
    ]

  def _loop_elements(self) -> Sequence[Tensor]:
    """The inputs of the body that are elements of scanned tensors."""
    start = len(self._first)
    return self._loop.body.inputs[start : start + len(self._scanned)]

  def _number_of_rounds(self) -> tf.Tensor:
    if self._history is not None:
      return self._history.rounds
    dim = self._loop.rounds.dim
    assert dim is not None, "a loop with a condition does not go backwards"
    return tf.constant(dim.size, tf.int32)

  def _lower(
    self, graph: Subgraph, t: tf.Tensor, values: Sequence[Slices]
  ) -> list[Slices | PendingSum]:
    """Lowers one round; random numbers are those of round `t`."""
    lowering = self._lowering
    key = lowering.random_key
    lowering.random_key = random_bits.fold(key, tf.cast(t, tf.int64))
    results = graph.lower(lowering, values[: len(graph.inputs)])
    lowering.random_key = key
    return results

  def _element(self, x: Slices, t: tf.Tensor, ndims: int) -> Slices:
    def take(x: tf.Tensor) -> tf.Tensor:
      return tf.gather(x, t, axis=x.shape.rank - ndims - 1)

    return self._mesh.map_trailing(take, x)

  def _accumulate(
    self, i: int, before: Slices, y: Slices | PendingSum
  ) -> Slices:
    if isinstance(y, PendingSum) and self._mesh.delays_sums:
      self._pending[i] = y.mesh_axes
      y = y.partial()

    def add(before: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
      return before + tf.cast(y, before.dtype)

    return self._mesh.map_trailing(add, before, total(y))

  def _sum(self, i: int, x: Slices) -> Slices | PendingSum:
    dtype = self._terms[i].dtype
    x = self._mesh.map_trailing(lambda x: tf.cast(x, dtype), x)
    return self._mesh.pending_sum(x, self._pending.get(i, ()))

  def _arrays(self, like: Sequence[tf.Tensor]) -> list[tf.TensorArray]:
    """Arrays of tensors, an element for each round."""
    most = self._loop.max_rounds
    return [
      tf.TensorArray(
        x.dtype,
        size=most or 0,
        dynamic_size=most is None,
        clear_after_read=False,
        element_shape=x.shape,
      )
      for x in like
    ]

  def _joined(
    self,
    like: Sequence[Slices],
    elements: Sequence[Tensor],
    stacks: Sequence[tf.Tensor],
  ) -> list[Slices]:
    """Slices that have the dimension of the rounds in front."""
    return [
      self._mesh.unflatten(x, [_behind_lead(s, len(y.shape)) for s in stack])
      for x, y, stack in zip(
        like, elements, self._grouped(like, stacks), strict=True
      )
    ]

  def _grouped(
    self, like: Sequence[Slices], flat: Sequence[tf.Tensor]
  ) -> list[list[tf.Tensor]]:
    """For each of the slices, the tensors that belong to it."""
    rest = iter(flat)
    return [[next(rest) for _ in self._mesh.flatten(x)] for x in like]

  def _flatten(self, values: Sequence[Slices]) -> list[tf.Tensor]:
    return [t for x in values for t in self._mesh.flatten(x)]

  def _unflatten(
    self, like: Sequence[Slices], flat: Sequence[tf.Tensor]
  ) -> list[Slices]:
    groups = self._grouped(like, flat)
    return [
      self._mesh.unflatten(x, group)
      for x, group in zip(like, groups, strict=True)
    ]


def _written(
  arrays: Sequence[tf.TensorArray], t: tf.Tensor, values: Sequence[tf.Tensor]
) -> list[tf.TensorArray]:
  return [
    x.write(t, value) for x, value in zip(arrays, values, strict=bool(arrays))
  ]


def _behind_lead(x: tf.Tensor, ndims: int) -> tf.Tensor:
  """Moves the first axis behind what a virtual mesh has in front."""
  lead = x.shape.rank - 1 - ndims
  if not lead:
    return x
  after = range(1 + lead, x.shape.rank)
  return tf.transpose(x, [*range(1, 1 + lead), 0, *after])


def _sum_dtype(y: Tensor) -> tf.DType:
  """Many terms of 16 bits are added up in 32."""
  return tf.float32 if y.dtype.is_floating and y.dtype.size < 4 else y.dtype
