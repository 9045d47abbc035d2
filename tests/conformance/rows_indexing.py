"""Rows of the functions that find elements, or reduce to some."""

import numpy as np
import tensorflow as tf

import mesh_tf2 as mtf

from tests.conformance.row import row

AB, BC, ABC = "a:4 b:8", "b:8 c:4", "a:4 b:8 c:4"
A, B, C = mtf.Dimension("a", 4), mtf.Dimension("b", 8), mtf.Dimension("c", 4)
NARROW = ("bfloat16", "float64")


def _one_hot(indices, size):
  return (indices[..., None] == np.arange(size)).astype(np.float64)


def _look_up(weights, indices):
  return np.tensordot(_one_hot(indices, len(weights)), weights, 1)


def _top(x, k):
  """Values and positions; the first of equal ones comes first."""
  order = np.argsort(-x, axis=1, kind="stable")[:, :k]
  values = np.take_along_axis(x, order, 1)
  return [np.moveaxis(y, 1, -1) for y in (values, order)]


def _top_k(name, k, kind="normal"):
  k_dim = mtf.Dimension("k", k)
  out = f"a:4 c:4 k:{k}"
  return row(
    name,
    lambda mesh, x: mtf.top_k(x, B, k_dim),
    [(ABC, kind)],
    lambda x: _top(x, k),
    [out, out],
    dtypes=NARROW if kind == "normal" else (),
  )


def _softmax(x, extra=None):
  e = np.exp(x)
  total = e.sum(1, keepdims=True)
  return e / (total if extra is None else total + np.exp(extra))


def _to_ties(x, y, w):
  return np.where(x == y[:, None], w[:, None], 0)


def _extra(x, e):
  return e[:, None, None] if e.ndim else e


ROWS = [
  row(
    "one_hot",
    lambda mesh, i: mtf.one_hot(i, C),
    [(AB, "integers")],
    lambda i: _one_hot(i, 4),
    "a:4 b:8 c:4",
    dtype="float32",
  ),
  row(
    "one_hot: other values",
    lambda mesh, i: mtf.one_hot(i, C, 5, 2, tf.int32),
    [(AB, "integers")],
    lambda i: 3 * _one_hot(i, 4) + 2,
    "a:4 b:8 c:4",
    dtype="int32",
  ),
  row(
    "gather",
    lambda mesh, w, i: mtf.gather(w, i, B),
    [BC, ("a:4 d:2", "integers")],
    _look_up,
    "a:4 d:2 c:4",
    dtypes=NARROW,
  ),
  row(
    "gather: in the middle of a table",
    lambda mesh, w, i: mtf.gather(w, i, B),
    [ABC, ("d:2", "integers")],
    lambda w, i: np.einsum("db,abc->dac", _one_hot(i, 8), w),
    "d:2 a:4 c:4",
  ),
  row(
    "gather: an index for each row",
    lambda mesh, w, i: mtf.gather(w, i, B),
    [ABC, ("a:4 d:2", "integers")],
    lambda w, i: np.einsum("adb,abc->adc", _one_hot(i, 8), w),
    "a:4 d:2 c:4",
  ),
  row(
    "gather: shared dimensions on both sides",
    lambda mesh, w, i: mtf.gather(w, i, B, "d:2 c:4 a:4 e:2"),
    ["e:2 a:4 b:8 c:4", ("c:4 d:2 a:4", "integers")],
    lambda w, i: np.einsum("cdab,eabc->dcae", _one_hot(i, 8), w),
    "d:2 c:4 a:4 e:2",
  ),
  row(
    "gather: at one index",
    lambda mesh, w, i: mtf.gather(w, i, B),
    [ABC, ("", "ties")],
    lambda w, i: w[:, int(i)],
    "a:4 c:4",
  ),
  row(
    "gather: at a number",
    lambda mesh, w: mtf.gather(w, 5, B),
    [ABC],
    lambda w: w[:, 5],
    "a:4 c:4",
  ),
  row(
    "gather: at no index",
    lambda mesh, w: mtf.gather(w, -1, B),
    [ABC],
    lambda w: 0 * w[:, 0],
    "a:4 c:4",
  ),
  row(
    "gather: with a dimension that nobody has",
    lambda mesh, w, i: mtf.gather(w, i, B, "c:4 e:2 a:4"),
    [BC, ("a:4", "integers")],
    lambda w, i: np.repeat(_look_up(w, i).T[:, None], 2, 1),
    "c:4 e:2 a:4",
  ),
  row(
    "gather: of integers",
    lambda mesh, w, i: mtf.gather(w, i, B),
    [(BC, "integers"), ("a:4", "integers")],
    _look_up,
    "a:4 c:4",
  ),
  row(
    "gather: of bools",
    lambda mesh, w, i: mtf.gather(w, i, B),
    [(BC, "bool"), ("a:4", "integers")],
    lambda w, i: _look_up(w, i) > 0,
    "a:4 c:4",
  ),
  row(
    "gather: of scalars",
    lambda mesh, w, i: mtf.gather(w, i, B),
    ["b:8", ("a:4 c:4", "integers")],
    _look_up,
    "a:4 c:4",
  ),
  row(
    "gather: the table has the index's dimension only",
    lambda mesh, w, i: mtf.gather(w, i, B),
    [AB, ("a:4", "integers")],
    lambda w, i: np.einsum("ab,ab->a", _one_hot(i, 8), w),
    "a:4",
  ),
  row(
    "scatter_add",
    lambda mesh, x, i: mtf.scatter_add(x, i, B, BC),
    ["a:4 d:2 c:4", ("a:4 d:2", "integers")],
    lambda x, i: np.einsum("adb,adc->bc", _one_hot(i, 8), x),
    BC,
    dtypes=NARROW,
  ),
  row(
    "scatter_add: an index for each row",
    lambda mesh, x, i: mtf.scatter_add(x, i, B, "b:8 a:4 c:4"),
    ["c:4 a:4 d:2", ("a:4 d:2", "integers")],
    lambda x, i: np.einsum("adb,cad->bac", _one_hot(i, 8), x),
    "b:8 a:4 c:4",
  ),
  *(_top_k(f"top_k: {k} of 8", k) for k in (1, 2, 3, 8)),
  _top_k("top_k: of equal integers", 6, "ties"),
  _top_k("top_k: 4 of 8", 4),
  row(
    "top_1",
    lambda mesh, x: mtf.top_1(x, B),
    [ABC],
    lambda x: [x.max(1), x.argmax(1)],
    ["a:4 c:4", "a:4 c:4"],
    dtypes=NARROW,
  ),
  row(
    "argmax",
    lambda mesh, x: mtf.argmax(x, B),
    [(ABC, "ties")],
    lambda x: x.argmax(1),
    "a:4 c:4",
    dtype="int32",
  ),
  row(
    "nth_largest_element: the smallest",
    lambda mesh, x: mtf.nth_largest_element(x, 7, B),
    [ABC],
    lambda x: x.min(1),
    "a:4 c:4",
  ),
  row(
    "nth_largest_element",
    lambda mesh, x: mtf.nth_largest_element(x, 2, B),
    [ABC],
    lambda x: np.sort(x, 1)[:, 5],
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "nth_smallest_element",
    lambda mesh, x: mtf.nth_smallest_element(x, 2, B),
    [ABC],
    lambda x: np.sort(x, 1)[:, 2],
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "reduce_max",
    lambda mesh, x: mtf.reduce_max(x, reduced_dim=B),
    [ABC],
    lambda x: x.max(1),
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "reduce_max: every tie gets the gradient",
    lambda mesh, x: mtf.reduce_max(mtf.relu(x), reduced_dim=B),
    [ABC],
    lambda x: np.maximum(x, 0).max(1),
    "a:4 c:4",
    gradient=lambda x, w: _to_ties(x, x.max(1), w) * (x > 0),
  ),
  row(
    "reduce_min",
    lambda mesh, x: mtf.reduce_min(x, output_shape="c:4 a:4"),
    [ABC],
    lambda x: x.min(1).T,
    "c:4 a:4",
    dtypes=NARROW,
  ),
  row(
    "reduce_min: of integers, to a number",
    lambda mesh, x: mtf.reduce_min(x),
    [(ABC, "integers")],
    np.min,
    "",
  ),
  row(
    "reduce_all",
    lambda mesh, x: mtf.reduce_all(mtf.greater(x, -4), reduced_dim=B),
    [(ABC, "integers")],
    lambda x: (x > -4).all(1),
    "a:4 c:4",
    dtype="bool",
  ),
  row(
    "reduce_any",
    lambda mesh, x: mtf.reduce_any(mtf.greater(x, 7), output_shape="c:4"),
    [(ABC, "integers")],
    lambda x: (x > 7).any((0, 1)),
    "c:4",
    dtype="bool",
  ),
  row(
    "reduce_mean",
    lambda mesh, x: mtf.reduce_mean(x, output_shape="c:4"),
    [ABC],
    lambda x: x.mean((0, 1)),
    "c:4",
    dtypes=NARROW,
  ),
  row(
    "reduce_mean: of integers",
    lambda mesh, x: mtf.reduce_mean(x),
    [(ABC, "integers")],
    np.mean,
    "",
    dtype="float32",
  ),
  row(
    "reduce_first",
    lambda mesh, x: mtf.reduce_first(x, B),
    [ABC],
    lambda x: x[:, 0],
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "pool_tensor_1d",
    lambda mesh, x: mtf.pool_tensor_1d(x, B, pool_size=4),
    [ABC],
    lambda x: x.reshape(4, 2, 4, 4).mean(2),
    "a:4 b:2 c:4",
  ),
  row(
    "pool_tensor_1d: the largest",
    lambda mesh, x: mtf.pool_tensor_1d(x, B, mtf.reduce_max),
    [ABC],
    lambda x: x.reshape(4, 4, 2, 4).max(2),
    "a:4 b:4 c:4",
  ),
  row(
    "stride_tensor_1d",
    lambda mesh, x: mtf.stride_tensor_1d(x, B),
    [ABC],
    lambda x: x[:, ::2],
    "a:4 b:4 c:4",
  ),
  row(
    "softmax",
    lambda mesh, x: mtf.softmax(x, B),
    [ABC],
    _softmax,
    ABC,
    dtypes=NARROW,
  ),
  row(
    "softmax: of six dimensions",
    lambda mesh, x: mtf.softmax(x, B),
    ["d:2 e:2 b:8 f:2 a:4 c:2"],
    lambda x: np.exp(x) / np.exp(x).sum(2, keepdims=True),
    "d:2 e:2 b:8 f:2 a:4 c:2",
    has_gradient=False,
  ),
  row(
    "softmax: of large numbers",
    lambda mesh, x: mtf.softmax(x * 1000, B),
    [ABC],
    lambda x: (
      np.exp(1000 * (x - x.max(1, keepdims=True)))
      / np.exp(1000 * (x - x.max(1, keepdims=True))).sum(1, keepdims=True)
    ),
    ABC,
    has_gradient=False,
  ),
  row(
    "softmax: an extra logit",
    lambda mesh, x: mtf.softmax(x, B, extra_logit=0.5),
    [ABC],
    lambda x: _softmax(x, 0.5),
    ABC,
    dtypes=NARROW,
  ),
  row(
    "softmax: an extra logit for each row",
    lambda mesh, x, e: mtf.softmax(x, B, extra_logit=e),
    [ABC, "a:4"],
    lambda x, e: _softmax(x, _extra(x, e)),
    ABC,
  ),
  row(
    "log_softmax",
    lambda mesh, x: mtf.log_softmax(x, B),
    [ABC],
    lambda x: np.log(_softmax(x)),
    ABC,
    dtypes=NARROW,
  ),
  row(
    "log_softmax: an extra logit",
    lambda mesh, x: mtf.log_softmax(x, B, extra_logit=0.5),
    [ABC],
    lambda x: np.log(_softmax(x, 0.5)),
    ABC,
  ),
  row(
    "reduce_logsumexp",
    lambda mesh, x: mtf.reduce_logsumexp(x, B),
    [ABC],
    lambda x: np.log(np.exp(x).sum(1)),
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "reduce_logsumexp: an extra logit",
    lambda mesh, x, e: mtf.reduce_logsumexp(x, B, extra_logit=e),
    [ABC, "a:4"],
    lambda x, e: np.log(np.exp(x).sum(1) + np.exp(e)[:, None]),
    "a:4 c:4",
  ),
]
