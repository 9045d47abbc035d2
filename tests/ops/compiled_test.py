"""XLA computes the same as TensorFlow's own kernels, on any dtype."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

B, S, K = (mtf.Dimension(n, s) for n, s in (("b", 8), ("s", 4), ("k", 5)))
IDS = [0, 1, 3, 3, 0, 9, -1, 3]


def _order(x):
  return (
    mtf.sort(x, B),
    mtf.argsort(x, B, descending=True),
    *mtf.top_k(x, B, K),
    mtf.argmax(x, B),
    mtf.argmin(x, B),
  )


def _rows(x):
  ids = mtf.import_tf_tensor(x.mesh, tf.constant(IDS), [B])
  by = mtf.segment_sum(ids, ids, B, S) + 1
  return (
    mtf.segment_sum(x, ids, B, S),
    mtf.segment_max(x, ids, B, S),
    mtf.segment_min(x, ids, B, S),
    mtf.dynamic_shift(x, mtf.gather(by, 0, S), B, wrap=False),
    mtf.dynamic_shift(x, mtf.gather(by, 0, S), B, wrap=True),
    mtf.cumsum(x, B, exclusive=True),
    mtf.cumprod(x, B, reverse=True),
  )


def _gradients(x):
  losses = [mtf.sort(x, B), *_rows(x)]
  weight = mtf.cast(mtf.range(x.mesh, B, tf.int32), x.dtype)
  weighted = [y * weight for y in losses if B in y.shape]
  return mtf.gradients(weighted, [x])


def _run(fn, x, compiled):
  program = mtf.Program("x:2", "b:x")

  @program.function(jit_compile=compiled)
  def run(mesh, x):
    return fn(mtf.import_tf_tensor(mesh, x, "r:3 b:8"))

  return [y.numpy() for y in run(x)]


CASES = [
  (_order, ["float32", "float64", "bfloat16", "int32", "uint64"]),
  (_rows, ["float32", "bfloat16", "int32"]),
  (_gradients, ["float32"]),
]


@pytest.mark.parametrize(
  ("fn", "dtype"), [(fn, dtype) for fn, dtypes in CASES for dtype in dtypes]
)
def test_compiled_operations_give_the_same(fn, dtype):
  numbers = np.random.default_rng(0).integers(0, 9, [3, 8])
  x = tf.cast(numbers, dtype)
  plain, compiled = (_run(fn, x, c) for c in (False, True))
  for a, b in zip(plain, compiled, strict=True):
    assert a.dtype == b.dtype
    np.testing.assert_allclose(
      a.astype(np.float64), b.astype(np.float64), 1e-5, 1e-5
    )
