"""Reshape between any two layouts: hundreds of random pairs, both ways."""

import math
import random

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support.meshes import KINDS, Setting
from tests.support.running import Run, tensor

MESHES = [
  (("x", 2), ("y", 2)),
  (("x", 2), ("y", 4)),
  (("x", 4), ("y", 2)),
  (("x", 2), ("y", 2), ("z", 2)),
  (("x", 3), ("y", 2)),
  (("x", 2), ("y", 1)),
  (("x", 1),),
]
PAIRS_PER_SEED, SEEDS = 64, 10


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


def _random_pairs(seed, count):
  rng = random.Random(seed)
  while count:
    mesh = rng.choice(MESHES)
    total = rng.choice([16, 32, 64] if mesh[0] != ("x", 3) else [12, 36])
    old, new = _random_shape(rng, total), _random_shape(rng, total)
    axes = [n for n, _ in mesh]
    layout = {n: rng.choice(axes) for n in "abcdef" if rng.random() < 0.7}
    if _is_legal(old, layout, mesh) and _is_legal(new, layout, mesh):
      count -= 1
      yield mesh, tuple(layout.items()), mtf.Shape(old), mtf.Shape(new)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_two_layouts_give_the_elements_in_order(seed):
  for mesh, layout, old, new in _random_pairs(seed, PAIRS_PER_SEED):
    whole = np.arange(old.size, dtype=np.float32)
    weights = whole[::-1].reshape(new.to_integer_list)

    def build(mesh, old=old, new=new, weights=weights):
      x = tensor(mesh, old)
      y = mtf.reshape(x, new)
      return [y, *mtf.gradients([y], [x], [tensor(mesh, new, weights)])]

    for kind in KINDS:
      where = Setting(kind, mesh, layout)
      run = Run(build, where)
      context = f"[{old}] to [{new}], {where}"
      forward, backward = run.values
      np.testing.assert_array_equal(
        forward, whole.reshape(new.to_integer_list), err_msg=context
      )
      np.testing.assert_array_equal(
        backward, whole[::-1].reshape(old.to_integer_list), err_msg=context
      )
      for t, value in zip(run.tensors, run.values, strict=True):
        run.check_slices(t, value)
      run.check_variation()


def test_hundreds_of_pairs_are_tried_and_most_of_them_move_elements():
  pairs = [p for s in range(SEEDS) for p in _random_pairs(s, PAIRS_PER_SEED)]
  assert len(pairs) >= 500
  moving = [p for p in pairs if math.prod(m for _, m in p[0]) > 1 and p[1]]
  assert len(moving) > 500


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_without_elements_can_change_its_layout(kind):
  old, new = map(mtf.convert_to_shape, ("p:2;z:0", "w:0;q:2"))
  where = Setting(kind, (("x", 2),), (("p", "x"), ("q", "x")))
  run = Run(lambda mesh: [mtf.reshape(mtf.zeros(mesh, old), new)], where)
  assert run.values[0].shape == (0, 2)
  run.check_slices(run.tensors[0], run.values[0])
