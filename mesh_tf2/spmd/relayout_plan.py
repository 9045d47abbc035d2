"""The cheapest way from one layout to another, as a list of moves.

A state says which steps (`digits.py`) each mesh axis owns. Moves are

* split: an axis that owns nothing takes steps that nobody owns. Nothing is
  sent;
* alltoall: an axis leaves its steps for some that nobody owns;
* concat: an axis gives up its steps: every processor gets the whole of them;
* permute: axes own other steps than before, and together at least the same
  ones. Every processor receives one slice, or part of one.

A move costs the elements of one processor's result; a split costs nothing.
The plan is the path of least cost (A*: Hart, Nilsson, Raphael, 1968), and among
such paths one of the fewest moves.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from .digits import (
  Digit,
  Run,
  Steps,
  common_steps,
  elements,
  finer_steps,
  values_of_steps,
)

SPLIT, ALLTOALL, CONCAT, PERMUTE = "split", "alltoall", "concat", "permute"
_MOST_STATES = 600  # a search among as many takes some milliseconds

State = tuple[Run | None, ...]  # what each mesh axis owns


@dataclasses.dataclass(frozen=True)
class Move:
  """One step of a plan.

  Attributes:
    kind: split, alltoall, concat or permute.
    before: what each mesh axis owned.
    after: what each mesh axis owns then.
    axis: the mesh axis that moves; of a permute, None.
  """

  kind: str
  before: State
  after: State
  axis: int | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
  """How to get from one layout to another.

  Attributes:
    steps: how the flat index is cut.
    gathered: axes to make whole beforehand: no step fits their digits.
    start: what each mesh axis owns then.
    moves: what to do.
    cost: elements that one processor receives in `moves`.
  """

  steps: Steps
  gathered: tuple[int, ...]
  start: State
  moves: tuple[Move, ...]
  cost: int

  @property
  def end(self) -> State:
    """What each mesh axis owns after all moves."""
    return self.moves[-1].after if self.moves else self.start


def relayout_plan(
  total: int,
  mesh_sizes: Sequence[int],
  source: Mapping[int, Digit],
  target: Mapping[int, Digit],
) -> Plan:
  """The cheapest plan. What fits no step is to be split afterwards.

  Args:
    total: the number of elements, 1 or more.
    mesh_sizes: the size of each mesh dimension.
    source: the digit of each mesh axis that owns one now.
    target: the digit that it is to own. Axes of one processor are left out of
      both.
  """
  return _planned(
    total,
    tuple(mesh_sizes),
    tuple(sorted(source.items(), key=lambda item: item[0])),
    tuple(sorted(target.items(), key=lambda item: item[0])),
  )


@functools.lru_cache(maxsize=4096)
def _planned(
  total: int,
  mesh_sizes: tuple[int, ...],
  source: tuple[tuple[int, Digit], ...],
  target: tuple[tuple[int, Digit], ...],
) -> Plan:
  owned, wanted = dict(source), dict(target)
  steps = common_steps(total, [*owned.values(), *wanted.values()])
  plan = _Search(steps, mesh_sizes, owned, wanted, Steps.runs).plan()
  if plan.cost <= elements(plan.steps, filter(None, plan.end)):
    return plan  # no other one can be cheaper
  finer = finer_steps(steps, [m for m in mesh_sizes if m > 1])
  for choices in (Steps.picks, Steps.runs):
    search = _Search(finer, mesh_sizes, owned, wanted, choices)
    if search.is_small:
      other = search.plan()
      return other if other.cost < plan.cost else plan
  return plan


class _Search:
  """A* from what is owned to what is wanted, on the same steps."""

  def __init__(
    self,
    steps: Steps,
    mesh_sizes: Sequence[int],
    owned: Mapping[int, Digit],
    wanted: Mapping[int, Digit],
    choices: Callable[[Steps, int], list[Run]],
  ) -> None:
    self._steps, self._sizes = steps, mesh_sizes
    runs = {a: steps.run(d) for a, d in owned.items()}
    self._gathered = tuple(a for a, run in runs.items() if run is None)
    self._axes = [a for a, m in enumerate(mesh_sizes) if m > 1]
    self._choices = {a: choices(steps, mesh_sizes[a]) for a in self._axes}
    count = range(len(mesh_sizes))
    self._start = tuple(runs.get(a) for a in count)
    self._goal = tuple(
      steps.run(wanted[a]) if a in wanted else None for a in count
    )
    self._least = elements(steps, filter(None, self._goal))

  def plan(self) -> Plan:
    moves, cost = self._cheapest()
    return Plan(self._steps, self._gathered, self._start, tuple(moves), cost)

  def _cheapest(self) -> tuple[list[Move], int]:
    if self._start == self._goal:
      return [], 0
    if self._is_permuted() or not self.is_small:
      return self._simple()
    best, number = {self._start: (0, 0)}, itertools.count()
    came: dict[State, Move] = {}
    queue = [(self._at_least(self._start), 0, next(number), self._start)]
    limit = self._simple()[1]
    while queue:
      _, _, _, state = heapq.heappop(queue)
      if state == self._goal:
        return self._path(came), best[state][0]
      cost, length = best[state]
      for move in self._moves(state):
        after = move.after
        price = cost + self._price(move), length + 1
        bound = price[0] + self._at_least(after)
        if bound <= limit and price < best.get(after, (math.inf, 0)):
          best[after], came[after] = price, move
          heapq.heappush(queue, (bound, length + 1, next(number), after))
    raise AssertionError("the simple plan is one of those searched")

  def _path(self, came: Mapping[State, Move]) -> list[Move]:
    moves, state = [], self._goal
    while state != self._start:
      moves.append(came[state])
      state = came[state].before
    return moves[::-1]

  def _at_least(self, state: State) -> int:
    """What is still to be paid at the very least."""
    done = all(
      run in (None, goal) for run, goal in zip(state, self._goal, strict=True)
    )
    return 0 if done else self._least

  def _price(self, move: Move) -> int:
    if move.kind == SPLIT:
      return 0
    return elements(self._steps, filter(None, move.after))

  def _is_permuted(self) -> bool:
    """Whether all that is split stays so: there is nothing to search then."""
    return _covered(self._start) <= _covered(self._goal)

  def _simple(self) -> tuple[list[Move], int]:
    """A plan that is always there: permute, or make whole and split."""
    if self._is_permuted() and self._at_least(self._start):
      return [Move(PERMUTE, self._start, self._goal)], self._least
    moves, state = [], self._start
    pairs = zip(self._start, self._goal, strict=True)
    wrong = [a for a, (x, y) in enumerate(pairs) if x not in (None, y)]
    for a in wrong:
      moves.append(Move(CONCAT, state, _with(state, a, None), a))
      state = moves[-1].after
    for a, run in enumerate(self._goal):
      if run is not None and state[a] is None:
        moves.append(Move(SPLIT, state, _with(state, a, run), a))
        state = moves[-1].after
    return moves, sum(map(self._price, moves))

  def _moves(self, state: State) -> Iterator[Move]:
    taken = _covered(state)
    for a in self._axes:
      free = [r for r in self._choices[a] if taken.isdisjoint(r)]
      if (goal := self._goal[a]) in free:  # the first of equals is taken
        free = [goal, *(r for r in free if r != goal)]
      if state[a] is None:
        for run in free:
          yield Move(SPLIT, state, _with(state, a, run), a)
        continue
      for run in free:
        yield Move(ALLTOALL, state, _with(state, a, run), a)
      yield Move(CONCAT, state, _with(state, a, None), a)
    for after, covered in self._states.items():
      if after != state and taken <= covered:
        yield Move(PERMUTE, state, after)

  @property
  def is_small(self) -> bool:
    """Whether there are few enough states to search among them."""
    count = math.prod(len(c) + 1 for c in self._choices.values())
    return count <= _MOST_STATES

  @functools.cached_property
  def _states(self) -> dict[State, frozenset[int]]:
    """All states, and the steps that are split in each of them."""
    states: list[State] = [(None,) * len(self._sizes)]
    for a in self._axes:
      states += [
        _with(s, a, run)
        for s in states
        for run in self._choices[a]
        if _covered(s).isdisjoint(run)
      ]
    return {s: _covered(s) for s in states}


def _covered(state: State) -> frozenset[int]:
  return frozenset(i for run in state if run is not None for i in run)


def _with(state: State, axis: int, run: Run | None) -> State:
  return (*state[:axis], run, *state[axis + 1 :])


def newly_split(move: Move) -> list[int]:
  """The steps that are split after a move and were not before, ascending."""
  return sorted(_covered(move.after) - _covered(move.before))


def senders(
  steps: Steps, move: Move, mesh_sizes: Sequence[int]
) -> tuple[list[int], list[int]]:
  """Of whom each processor receives in a permute, and which part of the slice.

  Every processor sends to one. The parts are the values of the steps that are
  newly split, numbered row-major.
  """
  places = list(itertools.product(*map(range, mesh_sizes)))
  held = [_values(move.before, steps, at) for at in places]
  wanted = [_values(move.after, steps, at) for at in places]
  kept, new = sorted(_covered(move.before)), newly_split(move)
  waiting: dict[tuple[int, ...], set[int]] = {}
  for p, values in enumerate(held):
    waiting.setdefault(_pick(values, kept), set()).add(p)
  sources = [-1] * len(places)
  for p, values in enumerate(wanted):
    if values.items() >= held[p].items():  # has it already
      sources[p] = p
      waiting[_pick(values, kept)].remove(p)
  for p, values in enumerate(wanted):
    if sources[p] < 0:
      holders = waiting[_pick(values, kept)]
      sources[p] = min(holders)
      holders.remove(sources[p])
  sizes, parts = steps.sizes, []
  for values in wanted:
    part = 0
    for i in reversed(new):
      part = part * sizes[i] + values[i]
    parts.append(part)
  return sources, parts


def _values(
  state: State, steps: Steps, coordinates: Sequence[int]
) -> dict[int, int]:
  owned = {a: run for a, run in enumerate(state) if run is not None}
  return values_of_steps(owned, steps, coordinates)


def _pick(values: Mapping[int, int], steps: Sequence[int]) -> tuple[int, ...]:
  return tuple(values[i] for i in steps)
