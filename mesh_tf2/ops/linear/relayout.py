"""Relayout: slices of one shape become slices of another one of equal size.

The moves are planned by `spmd/relayout_plan.py`; here they are carried out. On
the way a slice has one axis for each step of the flat index, the largest stride
first; where a mesh axis owns a step, its size is 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import tensorflow as tf

from ...core.shape import Shape
from ...spmd import relayout_plan as planning
from ...spmd import slices as on_slice
from ...spmd.digits import Digit, Run, Steps, common_steps, digits
from ...spmd.laid_out import PendingSum, Slices
from ...spmd.mesh import MeshImpl
from ...spmd.relayout_plan import Move, Plan, State


def moves_nothing(mesh: MeshImpl, old: Shape, new: Shape) -> bool:
  """Whether every mesh axis splits both shapes at the same place."""
  same_axes = mesh.axes(old) == mesh.axes(new)
  return same_axes and _digits(mesh, old) == _digits(mesh, new)


def local_reshape(mesh: MeshImpl, x: Slices, sizes: Sequence[int]) -> Slices:
  """Gives every slice other sizes."""
  ndims = len(mesh.slice_sizes(x))

  def change(x: tf.Tensor) -> tf.Tensor:
    return on_slice.reshape(x, ndims, sizes)

  return mesh.map_trailing(change, x)


def relayout(mesh: MeshImpl, x: Slices, old: Shape, new: Shape) -> Slices:
  """From the slices of `old` to those of `new`."""
  if not old.size:
    return mesh.full(tf.zeros([], mesh.dtype(x)), new)
  if moves_nothing(mesh, old, new):
    return local_reshape(mesh, x, mesh.slice_shape(new))
  plan = _plan(mesh, old.size, _digits(mesh, old), _digits(mesh, new))
  layout, gone = list(mesh.tensor_layout(old)), {*mesh.axes(old)}
  with mesh.unobserved():  # one processor sends nothing
    for a in sorted(gone - {*mesh.axes(new)}):
      if mesh.shape[a].size == 1:
        x = mesh.allconcat(x, a, layout.index(a))
  for a in plan.gathered:
    x = mesh.allconcat(x, a, layout.index(a))
  has = {a for a in gone if mesh.shape[a].size == 1}
  return _finish(mesh, _go(mesh, x, plan), plan, new, has)


def relayout_sum(
  mesh: MeshImpl, x: PendingSum, old: Shape, new: Shape
) -> Slices | PendingSum:
  """The slices of `new`, given a sum of slices of `old` still to be taken.

  What `new` splits further is split before the sum is taken, which then is of
  smaller slices. If an axis of the sum does that, its part of the sum comes by
  a reduce_scatter. Where nothing else has to move, the sum stays pending.
  """
  early = None if x.is_taken else _early_splits(mesh, old, new)
  if early is None:
    return relayout(mesh, x.total(), old, new)
  added, plan = early
  start = tuple(None if a in added else r for a, r in enumerate(plan.start))
  free = {a: r for a, r in added.items() if a not in x.mesh_axes}
  places: dict[int, int] = {}

  def split(x: Slices) -> Slices:
    walk = _Walk(mesh, plan.steps, x, start)
    for a, run in free.items():
      walk.split(a, run)
    scattered = [a for a in added if a not in free]
    at = walk.view(*(added[a] for a in scattered))
    places.update(zip(scattered, at, strict=True))
    return walk.x

  def finish(x: Slices) -> Slices:
    return _finish(mesh, _go(mesh, x, plan), plan, new)

  def total() -> Slices:
    return finish(mesh.sum_scattered(x, split, places))

  if len(free) < len(added) or plan.moves or _late(mesh, plan, new):
    return total()
  return PendingSum(
    x.mesh_axes, lambda: finish(split(x.partial())), total, like=x
  )


def _early_splits(
  mesh: MeshImpl, old: Shape, new: Shape
) -> tuple[dict[int, Run], Plan] | None:
  """What can be split at once, and the plan for the rest; None if nothing."""
  if not old.size or any(d.size == 1 for d in mesh.shape):
    return None
  owned, target = _digits(mesh, old), _digits(mesh, new)
  steps = common_steps(old.size, [*owned.values(), *target.values()])
  taken = {i for d in owned.values() for i in steps.run(d) or ()}
  added = []
  for a, d in target.items():
    run = steps.run(d)
    if a not in owned and run is not None and taken.isdisjoint(run):
      taken.update(run)
      owned[a] = d
      added.append(a)
  plan = _plan(mesh, old.size, owned, target)
  runs = {a: run for a in added if (run := plan.start[a]) is not None}
  return (runs, plan) if runs and not plan.gathered else None


def _digits(mesh: MeshImpl, shape: Shape) -> dict[int, Digit]:
  """The digits of mesh axes that really split `shape`."""
  owned = digits(shape, mesh.tensor_layout(shape), mesh.shape)
  return {a: d for a, d in owned.items() if d.size > 1}


def _plan(
  mesh: MeshImpl,
  total: int,
  source: Mapping[int, Digit],
  target: Mapping[int, Digit],
) -> Plan:
  sizes = mesh.shape.to_integer_list
  return planning.relayout_plan(total, sizes, source, target)


def _go(mesh: MeshImpl, x: Slices, plan: Plan) -> Slices:
  walk = _Walk(mesh, plan.steps, x, plan.start)
  for move in plan.moves:
    walk.go(move)
  return walk.x


def _late(mesh: MeshImpl, plan: Plan, new: Shape) -> set[int]:
  """The axes that split `new` where there is no step in the plan."""
  return {a for a in mesh.axes(new) if plan.end[a] is None}


def _finish(
  mesh: MeshImpl,
  x: Slices,
  plan: Plan,
  new: Shape,
  has: AbstractSet[int] = frozenset(),
) -> Slices:
  """The slices of the new shape; splits what could not be split before.

  Axes in `has` consist of one processor and are there already.
  """
  late, layout = _late(mesh, plan, new), list(mesh.tensor_layout(new))
  sizes = [
    d.size if a is None or a in late else d.size // mesh.shape[a].size
    for d, a in zip(new, layout, strict=True)
  ]
  x = local_reshape(mesh, x, sizes)
  for a in sorted(late - has):
    x = mesh.allsplit(x, a, layout.index(a))
  return x


class _Walk:
  """Slices on their way through a plan, and which axis owns what by now."""

  def __init__(
    self, mesh: MeshImpl, steps: Steps, x: Slices, state: State
  ) -> None:
    self._mesh = mesh
    self._steps = steps
    self._state = state
    # The step of each axis of a slice; all of them, the largest stride first.
    self._order = [*reversed(range(len(steps.sizes)))]
    self.x = x

  def go(self, move: Move) -> None:
    """Makes one move of a plan."""
    a = move.axis
    if a is None:
      self._permute(move)
    else:
      before, after = move.before[a], move.after[a]
      if before is None and after is not None:
        self.split(a, after)
      elif before is not None and after is not None:
        there, here = self.view(after, before)
        self.x = self._mesh.alltoall(self.x, a, there, here)
      elif before is not None:
        (at,) = self.view(before)
        self.x = self._mesh.allconcat(self.x, a, at)
    self._state = move.after
    self.restore()

  def split(self, mesh_axis: int, run: Run) -> None:
    """Lets a mesh axis own some steps."""
    (at,) = self.view(run)
    self.x = self._mesh.allsplit(self.x, mesh_axis, at)
    before, after = self._state[:mesh_axis], self._state[mesh_axis + 1 :]
    self._state = (*before, run, *after)
    self.restore()

  def view(self, *runs: Run) -> list[int]:
    """Makes each of some runs one axis; returns which ones these are."""
    of_step = {i: run for run in runs for i in run}
    groups: list[Run] = []
    for i in self._order:
      group = of_step.get(i, (i,))
      if group not in groups:
        groups.append(group)
    sizes = self._local_sizes()
    self._transpose([i for group in groups for i in reversed(group)])
    whole = [math.prod(sizes[i] for i in group) for group in groups]
    self.x = local_reshape(self._mesh, self.x, whole)
    return [groups.index(run) for run in runs]

  def restore(self) -> None:
    """Gives each step its own axis again, the largest stride first."""
    self._transpose(sorted(self._order, reverse=True))

  def _transpose(self, order: list[int]) -> None:
    sizes = self._local_sizes()
    here = [sizes[i] for i in self._order]
    axes = [self._order.index(i) for i in order]
    self._order = order

    def change(x: tf.Tensor, ndims: int) -> tf.Tensor:
      return on_slice.transpose(on_slice.reshape(x, ndims, here), axes)

    ndims = len(self._mesh.slice_sizes(self.x))
    self.x = self._mesh.map_trailing(lambda x: change(x, ndims), self.x)

  def _permute(self, move: Move) -> None:
    """The steps that are newly split become the first axis: the parts."""
    mesh, new = self._mesh, tuple(planning.newly_split(move))
    sizes = self._local_sizes()
    rest = [i for i in self._order if i not in new]
    self._transpose([*reversed(new), *rest])
    parts = math.prod(sizes[i] for i in new)
    cut = [parts, *(sizes[i] for i in rest)]
    sources, part = planning.senders(
      self._steps, move, mesh.shape.to_integer_list
    )
    varies = [a for a, run in enumerate(move.after) if run is not None]
    x = local_reshape(mesh, self.x, cut)
    self.x = mesh.permute(x, sources, part, varies)

  def _local_sizes(self) -> list[int]:
    """The size of each step in a slice, the smallest stride first."""
    owned = {i for run in self._state if run is not None for i in run}
    return [1 if i in owned else n for i, n in enumerate(self._steps.sizes)]
