"""Attention against NumPy, whole and one position after another."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running
from tests.support.meshes import PLACEMENT, VIRTUAL

B = mtf.Dimension("batch", 2)
L = mtf.Dimension("length", 4)
M = mtf.Dimension("memory_length", 6)
C = mtf.Dimension("channels", 8)
H = mtf.Dimension("heads", 2)
K = mtf.Dimension("kv", 4)
RNG = np.random.default_rng(0)
X = RNG.normal(size=[2, 4, 8]).astype(np.float32)
MEMORY = RNG.normal(size=[2, 6, 8]).astype(np.float32)
DY = RNG.normal(size=[2, 4, 8]).astype(np.float32)
LAYOUTS = [
  (VIRTUAL, "", ""),
  (VIRTUAL, "a:2;b:2", "batch:a;heads:b"),
  (VIRTUAL, "a:2;b:2", "length:a;memory_length:b"),
  (PLACEMENT, "a:2", "heads:a"),
]


def softmax(x):
  e = np.exp(x - x.max(axis=-1, keepdims=True))
  return e / e.sum(axis=-1, keepdims=True)


def attend(x, memory, kernels, mask=0.0):
  """Multi-head attention in NumPy; kernels: part, heads, channels, kv."""
  wq, wk, wv, wo = kernels
  q = np.einsum("blc,hck->bhlk", x, wq)
  k = np.einsum("bmc,hck->bhmk", memory, wk)
  v = np.einsum("bmc,hck->bhmk", memory, wv)
  weights = softmax(np.einsum("bhlk,bhmk->bhlm", q, k) + mask)
  o = np.einsum("bhlm,bhmk->bhlk", weights, v)
  return np.einsum("bhlk,hck->blc", o, wo)


def causal(length):
  return np.triu(np.full([length, length], -1e9), 1)


def run(build, where=LAYOUTS[0]):
  kind, mesh, layout = where
  return running.run(build, mesh, layout, kind).values


def variables(mesh):
  return [v.value for v in mesh.graph.all_variables]


@pytest.mark.parametrize("where", LAYOUTS)
def test_attention_weighs_the_values_of_a_memory(where):
  def build(mesh):
    x = running.tensor(mesh, [B, L, C], X)
    memory = running.tensor(mesh, [B, M, C], MEMORY)
    mask = running.tensor(mesh, [L, M])
    y = mtf.layers.multihead_attention(x, memory, mask, K, H, False, name="a")
    (qkvo,) = mesh.graph.all_variables
    assert qkvo.full_name == "a/qkvo"
    assert qkvo.shape == mtf.convert_to_shape("qkvo:4 heads:2 channels:8 kv:4")
    return [y, qkvo.value]

  y, kernels = run(build, where)
  mask = np.arange(24).reshape(4, 6)
  np.testing.assert_allclose(
    y, attend(X, MEMORY, kernels, mask), rtol=1e-4, atol=1e-5
  )


@pytest.mark.parametrize("where", LAYOUTS[1:])
def test_gradients_of_attention_are_those_of_one_processor(where):
  def build(mesh):
    x = running.tensor(mesh, [B, L, C], X)
    memory = running.tensor(mesh, [B, M, C], MEMORY)
    y = mtf.layers.multihead_attention(x, memory, None, K, H, False)
    dy = running.tensor(mesh, [B, L, C], DY)
    return mtf.gradients([y], [x, memory, *variables(mesh)], [dy])

  for got, wanted in zip(run(build, where), run(build), strict=True):
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_without_a_memory_queries_look_at_themselves():
  def build(mesh):
    x = running.tensor(mesh, [B, L, C], X)
    position = mtf.mtf_range(mesh, L, tf.int32)
    mask = mtf.layers.attention_mask_autoregressive(position)
    y = mtf.layers.multihead_attention(x, None, mask, K, H, False)
    return [y, *variables(mesh)]

  y, kernels = run(build)
  wanted = attend(X, X, kernels, causal(4))
  np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_a_memory_that_does_not_fit_is_named():
  def build(mesh):
    x = running.tensor(mesh, [B, L, C])
    memory = running.tensor(mesh, [M, C])
    return mtf.layers.multihead_attention(x, memory, None, K, H, False)

  message = r"memory is \[memory_length:6 channels:8\], the queries are \[batch"
  with pytest.raises(mtf.ShapeError, match=message):
    run(build)


@pytest.mark.parametrize("combine", [True, False])
def test_kernels_are_drawn_with_the_deviation_of_their_part(combine):
  wide, heads, kv = (
    mtf.Dimension(n, m) for n, m in (("io", 64), ("heads", 8), ("kv", 16))
  )

  def build(mesh):
    return mtf.layers.multihead_attention_params(
      mesh, heads, wide, kv, mtf.VariableDType(), combine
    )

  wanted = [64**-0.5 * 16**-0.25] * 2 + [64**-0.5, (8 * 16) ** -0.5]
  one = run(build)
  np.testing.assert_allclose([w.std() for w in one], wanted, rtol=0.03)
  np.testing.assert_allclose([w.mean() for w in one], 0, atol=0.01)
  split = run(build, (VIRTUAL, "a:2;b:4", "heads:a;io:b"))
  for x, y in zip(one, split, strict=True):
    np.testing.assert_array_equal(x, y)


def test_separate_kernels_have_the_names_of_their_parts():
  mesh = running.new_mesh()
  with tf.compat.v1.variable_scope("layer"):
    mtf.layers.multihead_attention_params(mesh, H, C, K, mtf.VariableDType())
  names = list(mesh.graph.name_to_variable)
  assert names == ["layer/q", "layer/k", "layer/v", "layer/o"]


def test_stacked_kernels_have_the_dtypes_that_they_are_given():
  mesh = running.new_mesh()
  kernels = mtf.layers.multihead_attention_vars(
    mesh, H, C, K, tf.float32, tf.bfloat16, tf.bfloat16
  )
  assert [w.dtype for w in kernels] == [tf.bfloat16] * 4
  (variable,) = mesh.graph.all_variables
  assert variable.master_dtype == tf.float32
  assert variable.slice_dtype == tf.bfloat16


def test_an_extra_logit_takes_a_part_of_the_weight():
  def build(mesh):
    q = running.tensor(mesh, [L, K])
    k = mtf.zeros(mesh, [M, K])
    v = mtf.ones(mesh, [M, C])
    return mtf.layers.dot_product_attention(
      q, k, v, None, False, extra_logit=0.0
    )

  np.testing.assert_allclose(run(build)[0], np.full([4, 8], 6 / 7), rtol=1e-6)


def test_dropout_of_weights_is_shared_as_it_is_told():
  def build(mesh, is_training=True):
    q = mtf.zeros(mesh, [B, L, K])
    k = mtf.zeros(mesh, [B, M, K])
    v = mtf.ones(mesh, [B, M, C])
    return mtf.layers.dot_product_attention(
      q, k, v, None, is_training, 0.5, [L]
    )

  (y,) = run(build)
  np.testing.assert_allclose(y, np.broadcast_to(y[:, :1], y.shape))
  assert not np.allclose(y, 1)
  (y,) = run(lambda mesh: build(mesh, is_training=False))
  np.testing.assert_allclose(y, 1, rtol=1e-6)


@pytest.mark.parametrize("where", LAYOUTS)
def test_step_by_step_gives_what_attention_to_the_past_gives(where):
  def build(mesh):
    x = running.tensor(mesh, [B, L, C], X)
    position = mtf.mtf_range(mesh, L, tf.int32)
    mask = mtf.layers.attention_mask_autoregressive(position)
    whole = mtf.layers.multihead_attention(x, None, mask, K, H, False, name="a")
    memory = mtf.Dimension("memory_length", L.size)
    k = v = mtf.zeros(mesh, [B, H, memory, K])
    results = [whole]
    for i in range(L.size):
      y, k, v = mtf.layers.multihead_self_attention_incremental(
        mtf.gather(x, i, L),
        k,
        v,
        mtf.constant(mesh, i, [], tf.int32),
        tf.float32,
        tf.float32,
        name="a",
      )
      results.append(y)
    assert list(mesh.graph.name_to_variable) == ["a/qkvo"]
    return results

  kind, mesh, layout = where
  layout = layout.replace("memory_length", "kv")
  whole, *steps = run(build, (kind, mesh, layout))
  np.testing.assert_allclose(
    np.stack(steps, axis=1), whole, rtol=1e-4, atol=1e-5
  )


@pytest.mark.parametrize("where", LAYOUTS)
def test_a_step_over_an_encoder_gives_what_whole_attention_gives(where):
  def build(mesh):
    x = running.tensor(mesh, [B, L, C], X)
    memory = running.tensor(mesh, [B, M, C], MEMORY)
    ids = running.tensor(
      mesh, [B, mtf.Dimension("length", 6)], [[1] * 6, [1, 1, 1, 0, 0, 0]]
    )
    mask = mtf.layers.attention_mask_ignore_padding(ids)
    whole = mtf.layers.multihead_attention(
      x, memory, mask, K, H, False, name="a"
    )
    with tf.compat.v1.variable_scope("a"):
      wq, wk, wv, wo = mtf.layers.multihead_attention_vars(
        mesh, H, C, K, tf.float32, tf.float32, tf.float32
      )
    shape = mtf.Shape([B, H, M, K])
    k, v = (mtf.einsum([memory, w], shape) for w in (wk, wv))
    y = mtf.layers.multihead_encdec_attention_incremental(
      mtf.gather(x, 2, L), wq, wo, k, v, mask
    )
    return [whole, y]

  kind, mesh, layout = where
  whole, y = run(build, (kind, mesh, layout.replace("memory_length", "kv")))
  np.testing.assert_allclose(y, whole[:, 2], rtol=1e-4, atol=1e-5)


def test_bfloat16_attention_is_normalised_in_float32():
  # A sum of 512 weights of 1/512 is no 1 if it is taken in bfloat16.
  memory = mtf.Dimension("memory", 512)

  def build(mesh):
    q = mtf.zeros(mesh, [L, K], tf.bfloat16)
    k = mtf.zeros(mesh, [memory, K], tf.bfloat16)
    v = mtf.ones(mesh, [memory, C], tf.bfloat16)
    mask = mtf.zeros(mesh, [memory])  # float32, as masks are by default
    y = mtf.layers.dot_product_attention(q, k, v, mask, False)
    assert y.dtype == tf.bfloat16
    return mtf.cast(y, tf.float32)

  np.testing.assert_array_equal(run(build)[0], 1)
