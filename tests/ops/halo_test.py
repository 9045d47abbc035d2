"""Halo exchange against the padded whole."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

BLOCKS, BLOCK = mtf.Dimension("blocks", 4), mtf.Dimension("block", 3)


def _around(x, halo, wrap, right=True):
  """Windows of the whole line, with zeros or itself at both ends."""
  line = x.reshape([12, *x.shape[2:]])
  pads = [(halo, halo), *[(0, 0)] * (line.ndim - 1)]
  mode = "wrap" if wrap else "constant"
  padded = np.pad(line, pads, mode)
  size = 3 + halo * (1 + right)
  return np.stack([padded[i : i + size] for i in range(0, 12, 3)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("halo", [0, 1, 3, 5, 7])
def test_a_block_comes_with_what_is_next_to_it(halo, wrap, kind):
  x = np.arange(24, dtype=np.float32).reshape([4, 3, 2]) + 1

  def build(mesh):
    blocks = tensor(mesh, "blocks:4 block:3 c:2", x)
    return [
      mtf.halo_exchange(blocks, BLOCKS, BLOCK, halo, wrap),
      mtf.left_halo_exchange(blocks, BLOCKS, BLOCK, halo, wrap),
    ]

  for layout in ("", "blocks:x", "blocks:y"):
    got = run(build, "x:2;y:4", layout, kind)
    both, left = got.values
    np.testing.assert_array_equal(both, _around(x, halo, wrap))
    np.testing.assert_array_equal(left, _around(x, halo, wrap, right=False))


def test_only_the_halo_is_sent():
  def build(mesh):
    x = tensor(mesh, "blocks:4 block:3 c:2")
    return mtf.halo_exchange(x, BLOCKS, BLOCK, 1)

  got = run(build, "x:4", "blocks:x")
  assert got.counters("shift") == [("shift[1]", 8), ("shift[-1]", 8)]


def test_what_is_lent_comes_back_in_the_gradient():
  def build(mesh):
    x = tensor(mesh, "blocks:4 block:3")
    y = mtf.halo_exchange(x, BLOCKS, BLOCK, 2)
    return mtf.gradients([y], [x])

  seen = np.zeros(12)
  for begin in range(-2, 10, 3):
    seen[max(begin, 0) : begin + 7] += 1
  for layout in ("", "blocks:x"):
    got = run(build, "x:2", layout).value()
    np.testing.assert_array_equal(got, seen.reshape([4, 3]))


def test_a_halo_that_cannot_be_is_told():
  mesh = new_mesh()
  x = tensor(mesh, "blocks:4 block:3")
  with pytest.raises(mtf.ShapeError, match="halo cannot be negative"):
    mtf.halo_exchange(x, BLOCKS, BLOCK, -1)
  with pytest.raises(mtf.ShapeError, match="no dimension other:2"):
    mtf.halo_exchange(x, mtf.Dimension("other", 2), BLOCK, 1)
