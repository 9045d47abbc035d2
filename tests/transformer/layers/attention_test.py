"""Attention, and its projections, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.layers.attention import (
  attention,
  visibility_mask_to_attention_bias,
)
from mesh_tf2.transformer.layers.attention_params import AttentionParams
from mesh_tf2.transformer.layers.self_attention import SelfAttention

from tests.support import running, tiny_models
from tests.support.numpy_transformer import softmax

B = mtf.Dimension("batch", 2)
L = mtf.Dimension("length", 3)
M = mtf.Dimension("memory_length", 5)
H = mtf.Dimension("heads", 4)
K = mtf.Dimension("d_k", 2)
V = mtf.Dimension("d_v", 3)
RNG = np.random.default_rng(0)
Q = RNG.normal(size=[2, 3, 4, 2])
KEYS = RNG.normal(size=[2, 5, 4, 2])
VALUES = RNG.normal(size=[2, 5, 4, 3])
BIAS = RNG.normal(size=[3, 5])


def attend(mesh, dtype=np.float64, **kwargs):
  q = running.tensor(mesh, [B, L, H, K], Q, dtype)
  k = running.tensor(mesh, [B, M, H, K], KEYS, dtype)
  v = running.tensor(mesh, [B, M, H, V], VALUES, dtype)
  return attention(q, k, v, M, K, V, **kwargs)


@pytest.mark.parametrize(
  ("mesh", "layout"),
  [
    ("", ""),
    ("x:2;y:2", "batch:x;heads:y"),
    ("x:3;y:5", "length:x;memory_length:y"),
    ("x:2;y:3", "d_k:x;d_v:y"),
  ],
)
def test_attention_is_a_mean_of_values_weighted_by_keys(mesh, layout):
  def build(mesh):
    bias = running.tensor(mesh, [L, M], BIAS, np.float64)
    y = attend(mesh, bias=bias)
    assert y.shape == mtf.Shape([B, L, H, V])
    return y

  weights = softmax(np.einsum("blhk,bmhk->bhlm", Q, KEYS) + BIAS)
  want = np.einsum("bhlm,bmhv->blhv", weights, VALUES)
  np.testing.assert_allclose(
    running.run(build, mesh, layout).value(), want, rtol=1e-9
  )


def test_an_extra_logit_takes_part_of_the_weight():
  got = running.run(lambda mesh: attend(mesh, extra_logit=0.0)).value()
  e = np.exp(np.einsum("blhk,bmhk->bhlm", Q, KEYS))
  weights = e / (1 + e.sum(axis=-1, keepdims=True))
  want = np.einsum("bhlm,bmhv->blhv", weights, VALUES)
  np.testing.assert_allclose(got, want, rtol=1e-9)


def test_logits_of_bfloat16_are_float32_unless_told_otherwise():
  def build(mesh):
    wide = attend(mesh, dtype=tf.bfloat16)
    narrow = attend(mesh, dtype=tf.bfloat16, float32_logits=False)
    assert wide.dtype == narrow.dtype == tf.bfloat16
    return [mtf.cast(x, tf.float32) for x in (wide, narrow)]

  wide, narrow = running.run(build).values
  exact = running.run(attend).value()
  assert np.abs(wide - exact).max() < 0.05
  assert np.abs(wide - narrow).max() > 0


def test_dropout_of_weights_is_shared_along_some_dimensions():
  def build(mesh):
    q = mtf.zeros(mesh, [B, L, H, K])
    k = mtf.zeros(mesh, [B, M, H, K])
    v = mtf.one_hot(mtf.range(mesh, M, tf.int32), mtf.Dimension("d_v", 5))
    return attention(
      q,
      k,
      v,
      M,
      K,
      v.shape[-1],
      dropout_rate=0.5,
      dropout_broadcast_dims=[L],
    )

  weights = running.run(build).value()  # batch, length, heads, memory
  np.testing.assert_allclose(weights, np.where(weights > 0.1, 0.4, 0.0))
  assert 0.2 < np.mean(weights > 0.1) < 0.8
  np.testing.assert_array_equal(weights, weights[:, :1].repeat(3, axis=1))
  assert not np.array_equal(weights[:, :, 0], weights[:, :, 1])


def test_what_is_invisible_gets_no_weight():
  def build(mesh):
    visible = mtf.less(mtf.range(mesh, M, tf.int32), 2)
    return attend(
      mesh, bias=visibility_mask_to_attention_bias(visible, tf.float32)
    )

  got = running.run(build).value()
  weights = softmax(np.einsum("blhk,bmhk->bhlm", Q, KEYS[:, :2]))
  want = np.einsum("bhlm,bmhv->blhv", weights, VALUES[:, :2])
  np.testing.assert_allclose(got, want, rtol=1e-6)


VARIANTS = {
  "multi-head": {},
  "multi-query": {"num_memory_heads": 1},
  "grouped": {"num_memory_heads": 2},
  "one head": {"num_heads": 1},
  "shared keys and values": {"shared_kv": True},
  "separate dimensions": {"combine_dims": False},
  "grouped, separate": {"combine_dims": False, "num_memory_heads": 2},
  "separate queries": {"keep_query_heads_dims": True},
  "scaled queries": {"fold_scaling_into_initializer": False},
}
DTYPE = mtf.VariableDType(tf.float64)
IDS = np.array([[3, 4, 1, 7, 1, 2], [5, 9, 10, 2, 3, 1]])


class Recorder(SelfAttention):
  """Self-attention that remembers what goes in and comes out."""

  def call(self, context, x, losses=None):
    y = super().call(context, x, losses)
    self.seen = [x, y]
    return y


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
  ("mesh", "layout"), [("", ""), ("x:2;y:2", "batch:x;heads:y")]
)
def test_self_attention_computes_each_variant(variant, mesh, layout):
  kwargs = {"num_heads": 4, "key_value_size": 2, **VARIANTS[variant]}
  layer = Recorder(**kwargs)
  layer.set_name("layer")
  stack = tiny_models.LayerStack(
    [layer], sublayers_per_layer=[tiny_models.sublayers.sublayer_call_layer]
  )
  model = tiny_models.Unitransformer(
    stack,
    d_model=8,
    input_vocab_size=11,
    output_vocab_size=11,
    autoregressive=True,
    max_length=6,
  )

  def build(mesh):
    ids = tiny_models.import_ids(mesh, IDS)
    model.call_simple(None, ids, True, variable_dtype=DTYPE)
    variables = {
      name.rsplit("/", 1)[-1]: v.value
      for name, v in mesh.graph.name_to_variable.items()
      if "Recorder" in name
    }
    names.extend(variables)
    return [*layer.seen, *variables.values()]

  names = []
  x, y, *values = running.run(build, mesh, layout).values
  w = dict(zip(names, values, strict=True))
  heads, memory_heads = kwargs["num_heads"], kwargs.get("num_memory_heads", 0)
  memory_heads = memory_heads or heads
  if "kv" in w:
    w["k"] = w["v"] = w["kv"]
  q = np.einsum("bld,dhk->blhk", x, w["q"].reshape(8, heads, 2))
  k, v = (
    np.einsum("bmd,dhk->bmhk", x, w[n].reshape(8, memory_heads, 2))
    for n in "kv"
  )
  if variant == "scaled queries":
    q = q / np.sqrt(2)
  k, v = (np.repeat(t, heads // memory_heads, axis=2) for t in (k, v))
  logits = np.einsum("blhk,bmhk->bhlm", q, k)
  weights = softmax(np.where(np.tri(6, dtype=bool), logits, -1e9))
  o = np.einsum("bhlm,bmhk->blhk", weights, v)
  want = np.einsum("blhk,hkd->bld", o, w["o"].reshape(heads, 2, 8))
  np.testing.assert_allclose(y, want, rtol=1e-9, atol=1e-12)


def test_a_function_may_take_the_place_of_attention():
  def mean_of_values(q, k, v, memory_length_dim, *_, scale, **__):
    mean = mtf.reduce_mean(v, reduced_dim=memory_length_dim)
    return mtf.multiply(mtf.broadcast(mean, q.shape), scale)

  attention_kwargs = {
    "attention_func": mean_of_values,
    "attention_kwargs": {"scale": 0.0},
  }
  model = tiny_models.language_model({"attention": attention_kwargs})

  def build(mesh):
    ids = tiny_models.import_ids(mesh, IDS)
    return model.call_simple(None, ids, True)[1]

  assert np.isfinite(running.run(build).value())


def test_heads_that_cannot_be_shared_out_are_named():
  model = tiny_models.language_model({"attention": {"num_memory_heads": 3}})

  def build(mesh):
    ids = tiny_models.import_ids(mesh, IDS)
    return model.call_simple(None, ids, True)[1]

  with pytest.raises(ValueError, match=r"num_memory_heads is 3.*num_heads, 4"):
    running.run(build)


def test_shared_keys_and_values_have_one_size():
  with pytest.raises(ValueError, match="keys have d_k:2, values d_v:3"):
    AttentionParams(
      running.new_mesh(), V, V, V, K, V, [H], [H], DTYPE, shared_kv=True
    )


def test_a_decoder_without_an_encoder_is_named():
  model = tiny_models.language_model({"layers": ("self", "encdec")})

  def build(mesh):
    ids = tiny_models.import_ids(mesh, IDS)
    return model.call_simple(None, ids, True)[1]

  with pytest.raises(
    ValueError, match="EncDecAttention needs the output of an"
  ):
    running.run(build)


def test_an_encoder_of_another_width_is_named():
  model = tiny_models.Bitransformer(
    tiny_models.language_model(
      name="encoder", d_model=4, autoregressive=False, output_vocab_size=None
    ),
    tiny_models.language_model({"layers": ("encdec",)}, name="decoder"),
    shared_embedding=False,
  )

  def build(mesh):
    ids = tiny_models.import_ids(mesh, IDS)
    return model.call_simple(ids, ids, True)[1]

  with pytest.raises(ValueError, match=r"decoder has d_model:8.*d_model:4"):
    running.run(build)
