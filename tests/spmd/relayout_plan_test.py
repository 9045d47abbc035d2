"""Plans for a change of layout: right, and as cheap as any."""

import heapq
import itertools
import math
import random

import numpy as np
import pytest

import mesh_tf2 as mtf
from mesh_tf2.core.layout import TensorLayout
from mesh_tf2.core.shape import Shape
from mesh_tf2.spmd import relayout_plan as planning
from mesh_tf2.spmd.digits import Digit, digits

from tests.support.running import run, tensor

MESHES = [(2, 2), (2, 4), (2, 2, 2)]


def _bits(n):
  return n.bit_length() - 1


def _cheapest(total, mesh, source, target):
  """Searches all ways in which bits of processors can own bits of the index.

  A state gives each bit of a processor's number a bit of the index, or None.
  Unlike the planner's, bits of one mesh axis need not stand side by side, and
  some of them may own nothing.
  """
  of_axis, first = [], 0
  for m in mesh:
    of_axis.append(range(first, first + _bits(m)))
    first += _bits(m)
  start, goal = (_spell(d, of_axis, first) for d in (source, target))
  size = _bits(total)
  best, queue, number = {start: 0}, [(0, 0, start)], itertools.count(1)
  while queue:
    cost, _, state = heapq.heappop(queue)
    if state == goal:
      return cost
    if cost > best[state]:
      continue
    for price, after in _neighbours(state, of_axis, size):
      if cost + price < best.get(after, math.inf):
        best[after] = cost + price
        heapq.heappush(queue, (cost + price, next(number), after))
  raise AssertionError("no way")


def _spell(owned, of_axis, count):
  state = [None] * count
  for a, d in owned.items():
    for i, bit in enumerate(of_axis[a]):
      state[bit] = _bits(d.stride) + i
  return tuple(state)


def _neighbours(state, of_axis, size):
  owned = [i for i in state if i is not None]
  free = [i for i in range(size) if i not in owned]
  n = 2 ** (size - len(owned))
  for bit, i in enumerate(state):
    if i is None:
      for new in free:  # every processor keeps a half of what it has
        yield 0, (*state[:bit], new, *state[bit + 1 :])
  for places in itertools.permutations(range(len(state)), len(owned)):
    after = [None] * len(state)
    for place, i in zip(places, owned, strict=True):
      after[place] = i
    yield n, tuple(after)  # permute
  for bits in of_axis:
    if any(state[b] is None for b in bits):
      continue
    for new in itertools.permutations(free, len(bits)):
      after = list(state)
      after[bits.start : bits.stop] = new
      yield n, tuple(after)  # alltoall
    after = list(state)
    after[bits.start : bits.stop] = [None] * len(bits)
    yield n * 2 ** len(bits), tuple(after)  # allconcat


def _random_digits(rng, total, mesh):
  """Digits that some shape and layout could have."""
  while True:
    sizes, rest = [], total
    while rest > 1:
      sizes.append(2 ** rng.randint(1, _bits(rest)))
      rest //= sizes[-1]
    axes = [rng.choice([None, *range(len(mesh))]) for _ in sizes]
    used = [a for a in axes if a is not None]
    legal = all(
      a is None or n % mesh[a] == 0 for n, a in zip(sizes, axes, strict=True)
    )
    if legal and len(set(used)) == len(used):
      shape = Shape((f"d{i}", n) for i, n in enumerate(sizes))
      mesh_shape = Shape((f"m{i}", n) for i, n in enumerate(mesh))
      return digits(shape, TensorLayout(axes), mesh_shape)


def _pairs(mesh, seed, count):
  rng = random.Random(seed)
  for _ in range(count):
    total = rng.choice([16, 32, 64])
    yield total, *(_random_digits(rng, total, mesh) for _ in range(2))


@pytest.mark.parametrize("mesh", MESHES)
def test_no_other_sequence_of_instructions_is_cheaper(mesh):
  for total, source, target in _pairs(mesh, 5, 150):
    plan = planning.relayout_plan(total, mesh, source, target)
    assert not plan.gathered
    least = _cheapest(total, mesh, source, target)
    assert plan.cost == least, (total, mesh, source, target, plan)


@pytest.mark.parametrize("mesh", MESHES)
def test_what_is_sent_is_the_least_that_is_possible(mesh):
  names = "xyz"[: len(mesh)]
  mesh_text = ";".join(f"{n}:{m}" for n, m in zip(names, mesh, strict=True))
  for total, source, target in _pairs(mesh, 6, 25):
    rules, shapes = [], []
    for prefix, owned in (("p", source), ("q", target)):
      shapes.append(_shape_of(prefix, total, owned))
      rules += [f"{prefix}{a}:{names[a]}" for a in owned]

    def build(m, shapes=shapes):
      return mtf.reshape(tensor(m, shapes[0]), shapes[1])

    split = run(build, mesh_text, ";".join(rules))
    np.testing.assert_array_equal(
      split.value().ravel(), np.arange(total), err_msg=f"{shapes} {rules}"
    )
    sent = sum(c.elements for _, c in split.lowering.collectives)
    assert sent == _cheapest(total, mesh, source, target)


def _shape_of(prefix, total, owned):
  """A shape in which each digit is the upper end of a dimension."""
  dims, above = [], total
  for a, d in sorted(owned.items(), key=lambda item: -item[1].stride):
    dims.append((f"{prefix}_{a}", above // (d.stride * d.size)))
    above = d.stride * d.size
    dims.append((f"{prefix}{a}", d.size))
    above = d.stride
  return mtf.Shape([*dims, (f"{prefix}_", above)])


def test_a_large_mesh_is_planned_quickly_and_still_right():
  mesh = (8, 8, 8, 4, 2)
  shapes = [Shape([("a", 64), ("b", 64), ("c", 64)])] * 2
  layouts = [TensorLayout([0, 1, 2]), TensorLayout([2, 3, 0])]
  mesh_shape = Shape((f"m{i}", n) for i, n in enumerate(mesh))
  source, target = (
    digits(s, layout, mesh_shape)
    for s, layout in zip(shapes, layouts, strict=True)
  )
  plan = planning.relayout_plan(64**3, mesh, source, target)
  owned = {a: plan.steps.run(d) for a, d in target.items()}
  assert plan.end == tuple(owned.get(a) for a in range(len(mesh)))


def test_every_processor_sends_once_in_a_permute():
  mesh = (2, 4)
  source = {0: Digit(8, 2)}
  target = {1: Digit(4, 4)}
  plan = planning.relayout_plan(16, mesh, source, target)
  (move,) = plan.moves
  assert (move.kind, plan.cost) == ("permute", 4)
  sources, parts = planning.senders(plan.steps, move, mesh)
  assert sorted(sources) == list(range(8))
  # A sender is at x = half of the index; y is half and quarter at once.
  assert [s // 4 for s in sources] == [p % 4 // 2 for p in range(8)]
  assert parts == [p % 2 for p in range(8)]
