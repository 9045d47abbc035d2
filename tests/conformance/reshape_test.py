"""Reshape between any two layouts: thousands of random pairs, both ways."""

import random

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support.meshes import KINDS, PLACEMENT, VIRTUAL, Setting
from tests.support.running import Run, run, tensor

POWERS = [
  (("x", 2), ("y", 2)),
  (("x", 2), ("y", 4)),
  (("x", 2), ("y", 2), ("z", 2)),
]
ODD = [
  (("x", 4), ("y", 2)),
  (("x", 3), ("y", 2)),
  (("x", 2), ("y", 1)),
  (("x", 1),),
  (("x", 1), ("y", 3), ("z", 2)),
]
PAIRS_PER_SEED, SEEDS = 200, 20


def _random_shape(rng, total):
  """Dimensions with random names, in a random factorisation of `total`."""
  sizes = []
  while total > 1 and len(sizes) < 3:
    divisors = [d for d in range(2, total + 1) if total % d == 0]
    sizes.append(rng.choice(divisors))
    total //= sizes[-1]
  sizes += [total] if total > 1 else []
  rng.shuffle(sizes)
  return list(zip(rng.sample("abcdef", len(sizes)), sizes, strict=True))


def _is_legal(shape, layout, mesh):
  axes = [layout[n] for n, _ in shape if n in layout]
  sizes = dict(mesh)
  return len(set(axes)) == len(axes) and all(
    s % sizes[layout[n]] == 0 for n, s in shape if n in layout
  )


def _random_pairs(meshes, seed, count):
  rng = random.Random(seed)
  while count:
    mesh = rng.choice(meshes)
    threes = any(m == 3 for _, m in mesh)
    total = rng.choice([12, 36] if threes else [16, 32, 64])
    old, new = _random_shape(rng, total), _random_shape(rng, total)
    axes = [n for n, _ in mesh]
    layout = {n: rng.choice(axes) for n in "abcdef" if rng.random() < 0.7}
    if _is_legal(old, layout, mesh) and _is_legal(new, layout, mesh):
      count -= 1
      yield mesh, tuple(layout.items()), mtf.Shape(old), mtf.Shape(new)


def _check(where, old, new):
  """Forward and gradient are in order, and each where it ought to be."""
  whole = np.arange(old.size, dtype=np.float32)
  weights = whole[::-1].reshape(new.to_integer_list)

  def build(mesh):
    x = tensor(mesh, old)
    y = mtf.reshape(x, new)
    return [y, *mtf.gradients([y], [x], [tensor(mesh, new, weights)])]

  result = Run(build, where)
  context = f"[{old}] to [{new}], {where}"
  forward, backward = result.values
  np.testing.assert_array_equal(
    forward, whole.reshape(new.to_integer_list), err_msg=context
  )
  np.testing.assert_array_equal(
    backward, whole[::-1].reshape(old.to_integer_list), err_msg=context
  )
  return result


def _check_slices(result):
  for t, value in zip(result.tensors, result.values, strict=True):
    result.check_slices(t, value)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_two_layouts_give_the_elements_in_order(seed):
  pairs = _random_pairs(POWERS, seed, PAIRS_PER_SEED)
  for i, (mesh, layout, old, new) in enumerate(pairs):
    _check(Setting(VIRTUAL, mesh, layout), old, new).check_variation()
    if i % 10 == 0:
      _check_slices(_check(Setting(PLACEMENT, mesh, layout), old, new))


def test_four_thousand_pairs_are_tried_and_most_of_them_move_elements():
  pairs = [
    (layout, old, new)
    for seed in range(SEEDS)
    for _, layout, old, new in _random_pairs(POWERS, seed, PAIRS_PER_SEED)
  ]
  assert len(pairs) == 4000
  split = [
    [m for n in s.dimension_names for d, m in layout if d == n]
    for layout, *shapes in pairs
    for s in shapes
  ]
  assert sum(map(bool, split)) > 4000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_meshes_of_three_and_of_one_are_no_exception(seed, kind):
  for mesh, layout, old, new in _random_pairs(ODD, seed, 60):
    result = _check(Setting(kind, mesh, layout), old, new)
    result.check_variation()
    _check_slices(result)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_a_sum_that_is_still_to_be_taken_can_change_its_layout(seed, kind):
  pairs = _random_pairs([*POWERS, *ODD], 100 + seed, 60)
  for mesh, layout, old, new in pairs:
    for axis, _ in mesh:
      rules = (*layout, ("s", axis))
      whole = mtf.Shape([("s", 12), *old])

      def build(m, whole=whole, old=old, new=new):
        x = tensor(m, whole)
        y = mtf.reshape(mtf.reduce_sum(x, output_shape=old), new)
        return [y, *mtf.gradients([y], [x])]

      if not _is_legal([(d.name, d.size) for d in whole], dict(rules), mesh):
        continue
      result = Run(build, Setting(kind, mesh, rules))
      for got, want in zip(result.values, run(build).values, strict=True):
        np.testing.assert_array_equal(got, want)
      result.check_variation()
      _check_slices(result)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_without_elements_can_change_its_layout(kind):
  old, new = map(mtf.convert_to_shape, ("p:2;z:0", "w:0;q:2"))
  where = Setting(kind, (("x", 2),), (("p", "x"), ("q", "x")))
  run = Run(lambda mesh: [mtf.reshape(mtf.zeros(mesh, old), new)], where)
  assert run.values[0].shape == (0, 2)
  run.check_slices(run.tensors[0], run.values[0])
