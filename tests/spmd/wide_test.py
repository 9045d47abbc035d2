"""Sums of 16-bit floats do not stop growing."""

from unittest import mock

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd import wide
from mesh_tf2.spmd.communicators.base import Communicator
from mesh_tf2.spmd.own_slice import OwnSliceMeshImpl

from tests.support.meshes import KINDS, PLACEMENT, VIRTUAL, setting
from tests.support.running import run

NARROW = [tf.bfloat16, tf.float16]


def _ones(mesh, shape, dtype):
  return mtf.ones(mesh, shape, dtype)


def _sum(mesh, dtype):
  return mtf.reduce_sum(_ones(mesh, "a:4096 b:2", dtype), output_shape="b:2")


def _outer_sum(mesh, dtype):
  return mtf.reduce_sum(_ones(mesh, "b:2 a:4096", dtype), output_shape="b:2")


def _product(mesh, dtype):
  x, w = _ones(mesh, "b:2 a:4096", dtype), _ones(mesh, "a:4096 c:2", dtype)
  return mtf.einsum([x, w], "b:2 c:2")


def _dot(mesh, dtype):
  x, w = (_ones(mesh, "a:4096", dtype) for _ in range(2))
  return mtf.einsum([x, w], [])


def _gradient_of_broadcast(mesh, dtype):
  x = _ones(mesh, "b:2", dtype)
  y = mtf.broadcast(x, "a:4096 b:2")
  return mtf.gradients([y], [x])[0]


def _gradient_of_filter(mesh, dtype):
  x = _ones(mesh, "a:4096 s:1 c:1", dtype)
  w = _ones(mesh, "f:1 c:1 o:2", dtype)
  return mtf.gradients([mtf.conv(x, w)], [w])[0]


def _sum_of_sums(mesh, dtype):
  half = mtf.Dimension("a", 4096)
  x, y = (
    mtf.reduce_sum(_ones(mesh, "a:4096 b:2", dtype), reduced_dim=half) * 0.5
    for _ in range(2)
  )
  return x + y


SUMS = [
  _sum,
  _outer_sum,
  _product,
  _dot,
  _gradient_of_broadcast,
  _gradient_of_filter,
  _sum_of_sums,
]
WHERE = [
  (VIRTUAL, "", ""),
  (VIRTUAL, "x:512", "a:x"),
  (VIRTUAL, "x:4", "a:x"),
  (PLACEMENT, "x:4", "a:x"),
]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("build", SUMS)
def test_a_sum_of_4096_ones_is_4096_wherever_they_are(build, dtype):
  for kind, mesh, layout in WHERE:
    result = run(lambda m: build(m, dtype), mesh, layout, kind)
    value = result.value()
    assert result.tensors[0].dtype == dtype == value.dtype
    np.testing.assert_array_equal(value.astype(np.float32), 4096)


@pytest.mark.parametrize("dtype", NARROW)
def test_the_mean_of_many_ones_is_one(dtype):
  for mesh in ("", "x:512"):
    result = run(
      lambda m: mtf.reduce_mean(_ones(m, "a:131072", dtype)), mesh, "a:x"
    )
    assert float(result.value()) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", NARROW)
def test_an_allreduce_of_512_ones_is_512(kind, dtype):
  # bfloat16 cannot tell 257 from 256, so that one after another gives 256.
  narrow = np.ones([], dtype.as_numpy_dtype)
  if dtype == tf.bfloat16:
    total = narrow * 0
    for _ in range(512):
      total = total + narrow
    assert float(total) == 256
  size = 512 if kind == VIRTUAL else 300
  result = run(
    lambda m: mtf.reduce_sum(_ones(m, f"a:{size}", dtype)), f"x:{size}", "a:x",
    kind,
  )  # fmt: skip
  assert float(result.value()) == size
  assert result.kinds == ["allreduce"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_instruction_that_sums_over_the_mesh_is_wide_too(kind):
  size = 512 if kind == VIRTUAL else 300
  impl = setting(f"x:{size}", "a:x", kind).impl
  ones = tf.ones([size, size], tf.bfloat16)
  shape = mtf.convert_to_shape(f"a:{size} b:{size}")
  x = impl.import_tensor(ones, shape)
  total = impl.allreduce(x, [0])
  assert float(tf.reduce_min(impl.flatten(total)[0])) == size
  part = impl.reduce_scatter(x, 0, 1)
  assert float(tf.reduce_min(impl.flatten(part)[0])) == size


def test_a_product_is_wide_where_tensorflow_is_not(monkeypatch):
  """As without oneDNN: float32 takes part then, and only then."""
  monkeypatch.setattr(wide, "_kernel_is_wide", lambda dtype: False)
  seen = []
  einsum = tf.einsum

  def spy(equation, *xs):
    seen.append(xs[0].dtype)
    return einsum(equation, *xs)

  monkeypatch.setattr(tf, "einsum", spy)
  x, few = tf.ones([2, 4096], tf.bfloat16), tf.ones([2, 64], tf.bfloat16)
  y = wide.einsum("ab,cb->ac", x, x)
  assert y.dtype == tf.bfloat16
  assert y.numpy().tolist() == [[4096, 4096]] * 2
  wide.einsum("ab,cb->ac", few, few)
  wide.einsum("ab,cb->ac", tf.cast(x, tf.float64), tf.cast(x, tf.float64))
  assert seen == [tf.float32, tf.bfloat16, tf.float64]


def test_a_sum_is_as_near_as_its_dtype_can_be():
  rng = np.random.default_rng(0)
  x = rng.uniform(0, 1, [1000, 3]).astype(ml_dtypes.bfloat16)
  exact = x.astype(np.float64).sum(0)
  got = wide.reduce_sum(tf.constant(x), [0]).numpy().astype(np.float64)
  np.testing.assert_allclose(got, exact, rtol=2**-8)


@pytest.mark.parametrize(
  ("processors", "dtype", "sent"),
  [
    (512, tf.bfloat16, tf.float32),
    (512, tf.float16, tf.float32),
    (64, tf.bfloat16, tf.bfloat16),
    (512, tf.float64, tf.float64),
  ],
)
def test_processors_that_each_run_for_themselves_send_wide_terms(
  processors, dtype, sent
):
  communicator = mock.create_autospec(Communicator, instance=True)
  communicator.allreduce.side_effect = lambda x, groups, reduction: x
  with mock.patch.object(OwnSliceMeshImpl, "__abstractmethods__", frozenset()):
    impl = OwnSliceMeshImpl(f"x:{processors}", "a:x", communicator)
  for reduction in ("SUM", "MAX"):
    y = impl.allreduce(tf.ones([2], dtype), [0], reduction)
    assert y.dtype == dtype
  asked = [call.args[0].dtype for call in communicator.allreduce.mock_calls]
  assert asked == [sent, dtype]
