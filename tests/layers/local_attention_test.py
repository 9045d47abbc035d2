"""Local attention against attention with a mask of its own, in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running
from tests.support.meshes import PLACEMENT, VIRTUAL

B = mtf.Dimension("batch", 2)
L = mtf.Dimension("length", 12)
C = mtf.Dimension("channels", 8)
H = mtf.Dimension("heads", 2)
K = mtf.Dimension("kv", 4)
RNG = np.random.default_rng(0)
X = RNG.normal(size=[2, 12, 8]).astype(np.float32)
DY = RNG.normal(size=[2, 12, 8]).astype(np.float32)
ONE = (VIRTUAL, "", "")
SPLIT = (VIRTUAL, "a:2;b:2", "length:a;heads:b")
LAYOUTS = [ONE, SPLIT, (PLACEMENT, "a:2", "length:a")]


def run(build, where=ONE):
  kind, mesh, layout = where
  return running.run(build, mesh, layout, kind).values


def wanted(x, kernels, window):
  """Position by position; the positions before the first one are zero."""
  wq, wk, wv, wo = kernels
  q, k, v = (np.einsum("blc,hck->blhk", x, w) for w in (wq, wk, wv))
  k, v = (np.pad(y, [(0, 0), (window, 0), (0, 0), (0, 0)]) for y in (k, v))
  result = np.zeros_like(x)
  for p in range(x.shape[1]):
    seen = slice(p + 1, p + 1 + window)
    e = np.exp(np.einsum("bhk,bmhk->bhm", q[:, p], k[:, seen]))
    weights = e / e.sum(axis=-1, keepdims=True)
    o = np.einsum("bhm,bmhk->bhk", weights, v[:, seen])
    result[:, p] = np.einsum("bhk,hck->bc", o, wo)
  return result


def attend(mesh, window, per_split=None, **kwargs):
  x = running.tensor(mesh, [B, L, C], X)
  y = mtf.layers.masked_local_attention_1d(
    x,
    K,
    H,
    False,
    window_size=window,
    length_per_split=per_split,
    name="a",
    **kwargs,
  )
  return x, y


@pytest.mark.parametrize("where", LAYOUTS)
@pytest.mark.parametrize("window", [1, 4, 128])
def test_a_position_sees_a_window_that_ends_with_it(where, window):
  def build(mesh):
    _, y = attend(mesh, window, 6)
    (qkvo,) = mesh.graph.all_variables
    assert qkvo.full_name == "a/qkvo"
    return [y, qkvo.value]

  y, kernels = run(build, where)
  np.testing.assert_allclose(
    y, wanted(X, kernels, window), rtol=1e-4, atol=1e-5
  )


def test_gradients_with_a_split_length_are_those_of_one_processor():
  def build(mesh):
    x, y = attend(mesh, 4, 6)
    (qkvo,) = mesh.graph.all_variables
    dy = running.tensor(mesh, [B, L, C], DY)
    return mtf.gradients([y], [x, qkvo.value], [dy])

  for got, one in zip(run(build, SPLIT), run(build), strict=True):
    np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-5)


def test_a_split_length_is_not_gathered():
  where = ("a:2", "length:a", VIRTUAL)
  kinds = running.run(lambda mesh: attend(mesh, 4, 6)[1], *where).kinds
  assert set(kinds) == {"shift"}


@pytest.mark.parametrize("where", [ONE, (VIRTUAL, "b:2", "heads:b")])
@pytest.mark.parametrize("window", [1, 5])
def test_step_by_step_gives_the_same(where, window):
  def build(mesh):
    x, whole = attend(mesh, window)
    slots = mtf.Dimension("window", window)
    k = v = mtf.zeros(mesh, [B, H, slots, K])
    results = [whole]
    for i in range(L.size):
      y, k, v = mtf.layers.masked_local_attention_1d_incremental(
        mtf.gather(x, i, L),
        k,
        v,
        mtf.constant(mesh, i, [], tf.int32),
        name="a",
      )
      results.append(y)
    assert list(mesh.graph.name_to_variable) == ["a/qkvo"]
    return results

  whole, *steps = run(build, where)
  np.testing.assert_allclose(
    np.stack(steps, axis=1), whole, rtol=1e-4, atol=1e-5
  )


def test_kernels_may_be_given_and_keys_and_values_are_returned():
  def build(mesh):
    params = mtf.layers.multihead_attention_params(
      mesh, H, C, K, mtf.VariableDType()
    )
    found = []
    _, y = attend(mesh, 4, params=params, return_kv=found)
    names = list(mesh.graph.name_to_variable)
    assert names == ["q", "k", "v", "o"]
    return [y, *found, *params]

  y, k, v, *kernels = run(build)
  np.testing.assert_allclose(y, wanted(X, kernels, 4), rtol=1e-4, atol=1e-5)
  for got, w in ((k, kernels[1]), (v, kernels[2])):
    np.testing.assert_allclose(
      got, np.einsum("blc,hck->bhlk", X, w), rtol=1e-4, atol=1e-5
    )


def test_a_window_that_is_empty_and_a_part_that_does_not_divide_are_named():
  with pytest.raises(mtf.ShapeError, match="window_size 0 must be positive"):
    run(lambda mesh: attend(mesh, 0)[1])
  message = r"length:12: .* length_per_split 5 must divide the length"
  with pytest.raises(mtf.ShapeError, match=message):
    run(lambda mesh: attend(mesh, 4, 5)[1])
