"""Attention to means of neighbours against NumPy."""

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
LAYOUTS = [ONE, SPLIT, (PLACEMENT, "a:2", "memory_length:a")]


def run(build, where=ONE):
  kind, mesh, layout = where
  return running.run(build, mesh, layout, kind).values


def attend(mesh, mask_right):
  x = running.tensor(mesh, [B, L, C], X)
  y = mtf.layers.multihead_self_attention_memory_compressed(
    x, mask_right, 3, K, H, False, name="a"
  )
  (qkvo,) = mesh.graph.all_variables
  assert qkvo.full_name == "a/qkvo"
  return x, y, qkvo.value


@pytest.mark.parametrize("where", LAYOUTS)
@pytest.mark.parametrize("mask_right", [False, True])
def test_a_query_sees_means_of_groups_and_a_zero(where, mask_right):
  def build(mesh):
    _, y, kernels = attend(mesh, mask_right)
    return [y, kernels]

  y, (wq, wk, wv, wo) = run(build, where)
  memory = X.reshape(2, 4, 3, 8).mean(axis=2)
  q = np.einsum("blc,hck->bhlk", X, wq)
  k, v = (np.einsum("bmc,hck->bhmk", memory, w) for w in (wk, wv))
  e = np.exp(np.einsum("bhlk,bhmk->bhlm", q, k))
  if mask_right:
    ends = 3 * np.arange(4) + 2
    e = e * (ends <= np.arange(12)[:, None])
  weights = e / (1 + e.sum(axis=-1, keepdims=True))
  o = np.einsum("bhlm,bhmk->bhlk", weights, v)
  wanted = np.einsum("bhlk,hck->blc", o, wo)
  np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_gradients_with_a_split_length_are_those_of_one_processor():
  def build(mesh):
    x, y, kernels = attend(mesh, True)
    dy = running.tensor(mesh, [B, L, C], DY)
    return mtf.gradients([y], [x, kernels], [dy])

  for got, wanted in zip(run(build, SPLIT), run(build), strict=True):
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", LAYOUTS)
def test_means_are_of_groups_of_neighbours(where):
  def build(mesh):
    x = running.tensor(mesh, [B, L, C], X)
    y = mtf.layers.compress_mean(x, L, 4)
    assert y.shape == mtf.convert_to_shape("batch:2 length:3 channels:8")
    return y

  kind, mesh, layout = where
  layout = layout.replace("length", "channels").replace("memory_", "")
  (y,) = run(build, (kind, mesh, layout))
  np.testing.assert_allclose(
    y, X.reshape(2, 3, 4, 8).mean(axis=2), rtol=1e-5, atol=1e-6
  )


def test_means_of_bfloat16_are_taken_in_float32():
  long = mtf.Dimension("long", 512)

  def build(mesh):
    x = mtf.ones(mesh, [long], tf.bfloat16)
    y = mtf.layers.compress_mean(x, long, 512)
    assert y.dtype == tf.bfloat16
    return mtf.cast(y, tf.float32)

  np.testing.assert_array_equal(run(build)[0], [1])


@pytest.mark.parametrize("factor", [5, 0])
def test_a_factor_that_does_not_divide_is_named(factor):
  def build(mesh):
    x = running.tensor(mesh, [B, L, C], X)
    return mtf.layers.compress_mean(x, L, factor)

  message = f"length:12 does not divide into groups of {factor}; choose a"
  with pytest.raises(mtf.ShapeError, match=message):
    run(build)
