"""Loops as operations, and their gradients.

A round takes the carried values and, where the number of rounds is known, an
element of each scanned tensor. It gives the new carried values, an element of
each collected tensor, and terms of sums over all rounds (accumulators).

The gradient is a loop the other way round. It computes each round again, from
the carried values that the round began with: those alone are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import ShapeError
from ..core.graph import Mesh, Operation, Tensor
from ..core.shape import Shape
from ..ops.source import zeros_like
from ..spmd.lowering import Lowering
from .gradients import gradients
from .loop_lowering import LoopLowering, Rounds
from .subgraph import Subgraph, capture


@dataclasses.dataclass(frozen=True)
class Parts:
  """How many of each kind a round takes and gives, in this order."""

  carried: int
  scanned: int = 0
  collected: int = 0


class LoopOperation(Operation):
  """Runs a body round by round.

  Args:
    mesh: on which it runs.
    inputs: the first carried values, then the scanned tensors, whose first
      dimension is that of the rounds.
    body: from carried values, elements and history to carried values, elements
      and terms. Its last inputs, if there are more than `parts` says, are the
      carried values of the same round of the loop that `rounds` comes after.
    parts: how many there are of each.
    rounds: how many, and in which order.
    tf_kwargs: for `tf.while_loop`.
    name: a name for the operation.
  """

  def __init__(
    self,
    mesh: Mesh,
    inputs: Sequence[Tensor],
    body: Subgraph,
    parts: Parts,
    rounds: Rounds,
    tf_kwargs: Mapping[str, Any] | None = None,
    name: str = "loop",
  ) -> None:
    self.body, self.parts, self.rounds = body, parts, rounds
    self.tf_kwargs = dict(tf_kwargs or {})
    self.keeps_history = False
    self._count = len(inputs)
    externals = body.externals()
    if rounds.condition is not None:
      externals = [*rounds.condition.externals(), *externals]
    if rounds.after is not None:
      externals.append(rounds.after)
      loop_of(rounds.after).keeps_history = True
    super().__init__([*inputs, *dict.fromkeys(externals)], mesh, name)
    self._outputs = [
      Tensor(self, self._output_shape(i), y.dtype, index=i)
      for i, y in enumerate(body.results)
    ]
    self._history: list[Tensor] = []
    condition = rounds.condition.operations if rounds.condition else []
    self.inner_operations = [*condition, *body.operations]

  def _output_shape(self, i: int) -> Shape:
    shape = self.body.results[i].shape
    first = self.parts.carried
    if not first <= i < first + self.parts.collected:
      return shape
    return self._stacked(shape)

  def _stacked(self, shape: Shape) -> Shape:
    dim = self.rounds.dim
    assert dim is not None, "without a dimension, nothing can be collected"
    return Shape([dim, *shape])

  @property
  def max_rounds(self) -> int | None:
    """The largest number of rounds, if it is known."""
    if self.rounds.dim is not None:
      return self.rounds.dim.size
    if self.rounds.after is not None:
      return loop_of(self.rounds.after).max_rounds
    return self.tf_kwargs.get("maximum_iterations")

  @property
  def unsplittable_dims(self) -> frozenset[str]:
    """The dimension of the rounds: they come one after another."""
    dim = self.rounds.dim
    return frozenset() if dim is None else frozenset([dim.name])

  def clone(self, inputs: Sequence[Tensor]) -> LoopOperation:
    """The same loop on other inputs."""
    count = self._count
    mapping = dict(zip(self._inputs[count:], inputs[count:], strict=True))
    clone = LoopOperation(
      self.mesh,
      inputs[:count],
      self.body.clone(mapping),
      self.parts,
      self.rounds.clone(mapping),
      self.tf_kwargs,
    )
    if self._history:
      clone.collect_history()
    return clone

  def lower(self, lowering: Lowering) -> None:
    """One `tf.while_loop` over the tensors of all carried values."""
    slices = [lowering.slices(x) for x in self._inputs[: self._count]]
    for x in self._inputs[self._count :]:
      lowering.slices(x)  # a sum that the body needs is taken once, before it
    run = LoopLowering(lowering, self, slices)
    for y, value in zip(self._outputs, run.results(), strict=True):
      lowering.set_tensor_lowering(y, value)

  # Gradient.

  def collect_history(self) -> list[Tensor]:
    """What each round began with, along the dimension of the rounds.

    Empty where that is not known: the history is then kept outside of the
    graph, by the lowering.
    """
    self.keeps_history = True
    if not self._history and self.rounds.dim is not None:
      start = len(self._outputs)
      self._history = [
        Tensor(self, self._stacked(x.shape), x.dtype, index=start + i)
        for i, x in enumerate(self.body.inputs[: self.parts.carried])
      ]
      self._outputs += self._history
    return self._history

  def gradient(self, grad_ys: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """A loop through the same rounds, from the last one to the first."""
    if self.rounds.after is not None:
      raise NotImplementedError(
        f"{self.name}: the gradient of a gradient of a while_loop is not "
        "known; use scan, whose number of rounds is"
      )
    known = len(self.body.results)
    results = [*self.body.results, *self.body.inputs[: len(grad_ys) - known]]
    return _Backward(self, results, grad_ys).input_gradients()


class _Backward:
  """The loop that goes back through another one.

  Args:
    loop: that one.
    results: what a round gives, and then what it began with, if that was
      collected, and has a gradient, too.
    grad_ys: the gradient of each of the loop's outputs.
  """

  def __init__(
    self,
    loop: LoopOperation,
    results: Sequence[Tensor],
    grad_ys: Sequence[Tensor],
  ) -> None:
    self._loop = loop
    carried, collected = loop.parts.carried, loop.parts.collected
    accumulated = range(carried + collected, len(loop.body.results))
    pairs = [
      (y, dy) if y.dtype.is_floating else None
      for y, dy in zip(results, grad_ys, strict=True)
    ]
    self._carried = _known(pairs[:carried])
    self._per_round = _known(
      p for i, p in enumerate(pairs[carried:], carried) if i not in accumulated
    )
    self._accumulated = _known(pairs[i] for i in accumulated)
    self._scanned = loop.inputs[carried : carried + loop.parts.scanned]
    self._externals = loop.inputs[carried + loop.parts.scanned :]
    # Externals that have a gradient: known when a round has been traced.
    self._summed: list[Tensor] = []

  def input_gradients(self) -> list[Tensor | None]:
    """The gradient for each input of the loop."""
    loop, parts = self._loop, self._loop.parts
    history = loop.collect_history()
    scanned = [*self._scanned, *(dy for _, dy in self._per_round), *history]
    avals = [y.aval for y, _ in self._carried]
    avals += [x.aval for x in loop.body.inputs[parts.carried :]]
    avals += [y.aval for y, _ in self._per_round]
    avals += [x.aval for x in loop.body.inputs[: parts.carried]]
    body = capture(self._round, loop.mesh, avals, "loop")
    floating = [x for x in self._scanned if x.dtype.is_floating]
    backward = LoopOperation(
      loop.mesh,
      [*(dy for _, dy in self._carried), *scanned],
      body,
      Parts(len(self._carried), len(scanned), len(floating)),
      loop.rounds.turned_back(loop),
      _without_limit(loop.tf_kwargs),
      "loop_gradient",
    )
    dxs = iter(backward.outputs)
    grads: dict[int, Tensor] = {}
    wanted = [*loop.inputs[: parts.carried], *self._scanned]
    for i, x in enumerate(wanted):
      if x.dtype.is_floating:
        grads[i] = next(dxs)
    summed = dict(zip(self._summed, dxs, strict=True))
    return [
      *(grads.get(i) for i in range(len(wanted))),
      *(summed.get(x) for x in self._externals),
    ]

  def _round(self, *values: Tensor) -> list[Tensor]:
    """The gradient of one round, which is computed again."""
    loop = self._loop
    carried, ndx = len(self._carried), loop.parts.scanned
    dcarried = values[:carried]
    elements = values[carried : carried + ndx]
    started_with = values[len(values) - loop.parts.carried :]
    dper_round = values[carried + ndx : len(values) - loop.parts.carried]
    fresh = [*started_with, *elements]
    mapping = dict(zip(loop.body.inputs, fresh, strict=True))
    clones = loop.body.call(mapping)
    ys = [*self._carried, *self._per_round, *self._accumulated]
    dys = [*dcarried, *dper_round, *(dy for _, dy in self._accumulated)]
    own = [x for x in fresh if x.dtype.is_floating]
    outside = [x for x in self._externals if x.dtype.is_floating]
    grads = gradients(
      [mapping.get(y, y) for y, _ in ys], [*own, *outside], dys, clones
    )
    summed = [
      (x, dx)
      for x, dx in zip(outside, grads[len(own) :], strict=True)
      if dx is not None
    ]
    self._summed = [x for x, _ in summed]
    return [
      *(
        zeros_like(x) if dx is None else dx
        for x, dx in zip(own, grads, strict=False)
      ),
      *(dx for _, dx in summed),
    ]


def _known(pairs: Any) -> list[tuple[Tensor, Tensor]]:
  return [pair for pair in pairs if pair is not None]


def _without_limit(tf_kwargs: Mapping[str, Any]) -> dict[str, Any]:
  """The gradient has as many rounds as there were; nobody has to stop it."""
  return {k: v for k, v in tf_kwargs.items() if k != "maximum_iterations"}


def loop_of(output: Tensor) -> LoopOperation:
  """The loop that a tensor comes out of."""
  loop = output.operation
  assert isinstance(loop, LoopOperation), f"{output} comes out of no loop"
  return loop


def check_carried(
  what: str, before: Sequence[Tensor], after: Sequence[Tensor]
) -> None:
  """Checks that carried values keep their shape and dtype.

  Raises:
    ShapeError: one does not.
  """
  for i, (x, y) in enumerate(zip(before, after, strict=False)):
    if x.aval != y.aval:
      raise ShapeError(
        f"{what}: loop variable {i} goes in as {x.aval!r} and comes out "
        f"as {y.aval!r}; transpose, reshape or cast it in the body"
      )
