"""Attention of blocks to their neighbours against NumPy."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support import running
from tests.support.meshes import PLACEMENT, VIRTUAL

B = mtf.Dimension("batch", 2)
N = mtf.Dimension("blocks", 4)
W = mtf.Dimension("w", 3)
ROWS = mtf.Dimension("rows", 2)
COLUMNS = mtf.Dimension("columns", 2)
TALL = mtf.Dimension("h", 2)
C = mtf.Dimension("channels", 6)
H = mtf.Dimension("heads", 2)
K = mtf.Dimension("kv", 4)
LINE, IMAGE = [B, N, W, C], [B, ROWS, COLUMNS, TALL, W, C]
ONE = (VIRTUAL, "", "")
SPLIT = (VIRTUAL, "a:2;b:2", "blocks:a;rows:a;columns:b")
LAYOUTS = [ONE, SPLIT, (PLACEMENT, "a:2", "blocks:a;columns:a")]


def numbers(dims, seed=0):
  sizes = [d.size for d in dims]
  return np.random.default_rng(seed).normal(size=sizes).astype(np.float32)


def run(build, where=ONE):
  kind, mesh, layout = where
  return running.run(build, mesh, layout, kind).values


def attend(mesh, dims, x=None, **kwargs):
  x = running.tensor(mesh, dims, numbers(dims) if x is None else x)
  fn = (
    mtf.layers.local_self_attention_spatial_blocks
    if dims == LINE
    else mtf.layers.local_2d_self_attention_spatial_blocks
  )
  y = fn(x, K, H, False, name="a", **kwargs)
  (qkvo,) = mesh.graph.all_variables
  assert qkvo.full_name == "a/qkvo"
  return x, y, qkvo.value


def weigh(q, k, v, wo):
  """One query, heads and kv, over a list of keys: positions, heads, kv."""
  e = np.exp(np.einsum("hk,mhk->mh", q, k))
  o = np.einsum("mh,mhk->hk", e / e.sum(axis=0), v)
  return np.einsum("hk,hck->c", o, wo)


def line(x, kernels, mask_right):
  wq, wk, wv, wo = kernels
  q, k, v = (np.einsum("bnwc,hck->bnwhk", x, w) for w in (wq, wk, wv))
  k, v = (np.pad(y, [(0, 0), (1, 1)] + 3 * [(0, 0)]) for y in (k, v))
  result = np.zeros_like(x)
  for b, n, i in np.ndindex(*x.shape[:3]):
    if mask_right:
      seen = np.r_[0:3, 3 : 3 + i + 1]
      near = slice(n, n + 2)
    else:
      seen, near = np.r_[0:9], slice(n, n + 3)
    keys, values = (y[b, near].reshape(-1, 2, 4)[seen] for y in (k, v))
    result[b, n, i] = weigh(q[b, n, i], keys, values, wo)
  return result


def image(x, kernels, mask_right):
  wq, wk, wv, wo = kernels
  q, k, v = (np.einsum("brsijc,hck->brsijhk", x, w) for w in (wq, wk, wv))
  k, v = (np.pad(y, [(0, 0), (1, 1), (1, 1)] + 4 * [(0, 0)]) for y in (k, v))
  around = [(r, s) for r in range(3) for s in range(3)]
  if mask_right:  # the blocks that are made before, and this one
    around = [(r, s) for r, s in around if r < 2 and s < 2]
  result = np.zeros_like(x)
  for b, r, s, i, j in np.ndindex(*x.shape[:5]):
    parts = []
    for dr, ds in around:
      own = mask_right and dr == ds == 1
      count = 3 * i + j + 1 if own else 6
      parts.append(
        [y[b, r + dr, s + ds].reshape(6, 2, 4)[:count] for y in (k, v)]
      )
    keys, values = (np.concatenate(p) for p in zip(*parts, strict=True))
    result[b, r, s, i, j] = weigh(q[b, r, s, i, j], keys, values, wo)
  return result


@pytest.mark.parametrize("where", LAYOUTS)
@pytest.mark.parametrize("mask_right", [False, True])
@pytest.mark.parametrize(("dims", "reference"), [(LINE, line), (IMAGE, image)])
def test_blocks_see_themselves_and_their_neighbours(
  where, mask_right, dims, reference
):
  def build(mesh):
    _, y, kernels = attend(mesh, dims, mask_right=mask_right)
    return [y, kernels]

  y, kernels = run(build, where)
  wanted = reference(numbers(dims), kernels, mask_right)
  np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dims", [LINE, IMAGE])
def test_gradients_with_split_blocks_are_those_of_one_processor(dims):
  def build(mesh):
    x, y, kernels = attend(mesh, dims, mask_right=True)
    dy = running.tensor(mesh, dims, numbers(dims, 1))
    return mtf.gradients([y], [x, kernels], [dy])

  for got, wanted in zip(run(build, SPLIT), run(build), strict=True):
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_split_blocks_are_not_gathered():
  for dims in (LINE, IMAGE):
    kind, mesh, layout = SPLIT
    lowered = running.run(
      lambda mesh, dims=dims: attend(mesh, dims)[1], mesh, layout, kind
    )
    assert set(lowered.kinds) == {"shift"}


def test_nothing_that_is_made_later_changes_what_a_masked_query_sees():
  x = numbers(IMAGE)
  later = x.copy()
  # Block (1, 0) is made after block (0, 1); in it, position (1, 1) on.
  later[:, 1, 0, 1, 1:] += 1
  later[:, 1, 1] += 1
  before, after = (
    run(lambda mesh, x=x: attend(mesh, IMAGE, x, mask_right=True)[1])[0]
    for x in (x, later)
  )
  unchanged = np.ones([2, 2, 2, 3], bool)
  unchanged[1, 0, 1, 1:] = unchanged[1, 1] = False
  same = np.isclose(before, after).all(axis=(0, -1))
  np.testing.assert_array_equal(same, unchanged)


@pytest.mark.parametrize("mask_right", [False, True])
def test_a_single_block_has_zeros_for_neighbours(mask_right):
  k = numbers([B, W, K])

  def build(mesh):
    x = running.tensor(mesh, [B, W, K], k)
    tall = mtf.einsum([x], [B, TALL, W, K])
    one = mtf.layers.local_1d_halo_exchange(x, x + 1, None, W, mask_right)
    two = mtf.layers.local_2d_halo_exchange(
      tall, tall + 1, None, TALL, None, W, mask_right
    )
    return [*one, *two]

  right = 0 if mask_right else 3
  below = 0 if mask_right else 2
  both = np.stack([k, k], axis=1)
  one, more, two, two_more = run(build)
  padding = [(0, 0), (3, right), (0, 0)]
  np.testing.assert_array_equal(one, np.pad(k, padding))
  np.testing.assert_array_equal(more, np.pad(k + 1, padding))
  padding = [(0, 0), (2, below), (3, right), (0, 0)]
  np.testing.assert_array_equal(two, np.pad(both, padding))
  np.testing.assert_array_equal(two_more, np.pad(both + 1, padding))


def test_dimensions_of_the_memory_may_be_named_but_not_resized():
  plain, named = (
    run(lambda mesh, d=d: attend(mesh, LINE, memory_w_dim=d)[1])[0]
    for d in (None, mtf.Dimension("seen", 3))
  )
  np.testing.assert_array_equal(named, plain)
  message = "memory dimension seen:4 must have the size of w:3, and another"
  with pytest.raises(mtf.ShapeError, match=message):
    run(
      lambda mesh: attend(mesh, LINE, memory_w_dim=mtf.Dimension("seen", 4))[1]
    )


def test_inputs_of_another_rank_are_named():
  mesh = running.new_mesh()
  x = running.tensor(mesh, [B, W, C])
  with pytest.raises(
    mtf.ShapeError, match=r"blocks, w, channels\], got \[batch"
  ):
    mtf.layers.local_self_attention_spatial_blocks(x, K, H, False)
  with pytest.raises(mtf.ShapeError, match=r"h, w, channels\], got \[batch:2"):
    mtf.layers.local_2d_self_attention_spatial_blocks(x, K, H, False)
