"""Rows of the functions that work element by element."""

import math

import numpy as np
import tensorflow as tf

import mesh_tf2 as mtf

from tests.conformance.row import row

AB, BC, ABC = "a:4 b:8", "b:8 c:4", "a:4 b:8 c:4"
NARROW = ("bfloat16", "float64")


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def _gelu(x):
  inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
  return 0.5 * x * (1 + np.tanh(inner))


def _elu(x):
  return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def _selu(x):
  return 1.0507009873554805 * np.where(
    x > 0, x, 1.6732632423543772 * (np.exp(np.minimum(x, 0)) - 1)
  )


# fmt: off
_UNARY = [
  # name          kind        reference
  ("identity",    "normal",   lambda x: x),
  ("sin",         "normal",   np.sin),
  ("cos",         "normal",   np.cos),
  ("square",      "normal",   np.square),
  ("sqrt",        "positive", np.sqrt),
  ("rsqrt",       "positive", lambda x: x**-0.5),
  ("log",         "positive", np.log),
  ("exp",         "normal",   np.exp),
  ("sigmoid",     "normal",   _sigmoid),
  ("tanh",        "normal",   np.tanh),
  ("negative",    "normal",   np.negative),
  ("swish",       "normal",   lambda x: x * _sigmoid(x)),
  ("gelu",        "normal",   _gelu),
  ("elu",         "normal",   _elu),
  ("selu",        "normal",   _selu),
  ("softplus",    "normal",   lambda x: np.log1p(np.exp(x))),
  ("reciprocal",  "positive", lambda x: 1 / x),
  ("relu",        "normal",   lambda x: np.maximum(x, 0)),
  ("leaky_relu",  "normal",   lambda x: np.where(x > 0, x, 0.2 * x)),
  ("squared_relu", "normal",  lambda x: np.maximum(x, 0) ** 2),
  ("mtf_abs",     "normal",   np.abs),
  ("sign",        "normal",   np.sign),
  ("to_float",    "normal",   lambda x: x),
  ("mtf_abs: of integers", "integers", np.abs),
  ("negative: of integers", "integers", np.negative),
  ("square: of integers", "integers", np.square),
  ("logical_not", "bool",     np.logical_not),
]
# fmt: on


def _unary(name, kind, reference):
  fn = getattr(mtf, name.split(":")[0])
  return row(
    name,
    lambda mesh, x: fn(x),
    [(AB, kind)],
    reference,
    AB,
    dtypes=NARROW if kind in ("normal", "positive") else (),
    dtype="float32" if name == "to_float" else None,
    covers="abs" if name == "mtf_abs" else "",
  )


# fmt: off
_BINARY = [
  # name           kind        reference
  ("add",           "normal",   np.add),
  ("sub",           "normal",   np.subtract),
  ("multiply",      "normal",   np.multiply),
  ("divide",        "positive", np.divide),
  ("minimum",       "normal",   np.minimum),
  ("maximum",       "normal",   np.maximum),
  ("floordiv",      "positive", np.floor_divide),
  ("mod",           "positive", np.mod),
  ("add: of integers",      "integers", np.add),
  ("multiply: of integers", "integers", np.multiply),
  ("maximum: of integers",  "integers", np.maximum),
  ("less",          "ties",     np.less),
  ("greater",       "ties",     np.greater),
  ("less_equal",    "ties",     np.less_equal),
  ("greater_equal", "ties",     np.greater_equal),
  ("equal",         "ties",     np.equal),
  ("not_equal",     "ties",     np.not_equal),
  ("logical_and",   "bool",     np.logical_and),
  ("logical_or",    "bool",     np.logical_or),
]
# fmt: on


def _binary(name, kind, reference):
  fn = getattr(mtf, name.split(":")[0])
  return row(
    name,
    lambda mesh, x, y: fn(x, y),
    [(AB, kind), (BC, kind)],
    lambda x, y: reference(x[:, :, None], y[None]),
    ABC,
    dtype="bool" if kind in ("ties", "bool") else None,
    dtypes=("bfloat16",) if kind in ("normal", "positive") else (),
    has_gradient=name not in ("floordiv", "mod"),
  )


def _select(mesh, condition, x, y):
  """Selects from a branch that is not a number elsewhere."""
  bad = mtf.divide(x, mtf.zeros_like(x))
  nothing = mtf.where(condition, x, bad)
  return mtf.where(condition, nothing, y)


ROWS = [
  *(_unary(*entry) for entry in _UNARY),
  *(_binary(*entry) for entry in _BINARY),
  row(
    "mtf_pow",
    lambda mesh, x: mtf.pow(x, 2.5),
    [(AB, "positive")],
    lambda x: x**2.5,
    AB,
    covers="pow",
    dtypes=NARROW,
  ),
  row(
    "mtf_pow: of negative numbers",
    lambda mesh, x: mtf.pow(x, 3),
    [AB],
    lambda x: x**3,
    AB,
  ),
  row(
    "to_bfloat16",
    lambda mesh, x: mtf.to_bfloat16(mtf.to_int32(x)),
    [AB],
    np.trunc,
    AB,
    dtype="bfloat16",
    has_gradient=False,
  ),
  row(
    "to_int32",
    lambda mesh, x: mtf.to_int32(x),
    [AB],
    np.trunc,
    AB,
    dtype="int32",
  ),
  row(
    "cast",
    lambda mesh, x: mtf.cast(x, tf.float64),
    [AB],
    lambda x: x,
    AB,
    dtype="float64",
  ),
  row(
    "cast: to bool",
    lambda mesh, x: mtf.cast(x, tf.bool),
    [(AB, "ties")],
    lambda x: x != 0,
    AB,
    dtype="bool",
  ),
  row(
    "add: a number",
    lambda mesh, x: 2 + (x + 1),
    [AB],
    lambda x: x + 3,
    AB,
    dtypes=NARROW,
  ),
  row(
    "add: a number, into another order with one dimension more",
    lambda mesh, x: mtf.add(x, 1, output_shape="b:8 c:4 a:4"),
    [AB],
    lambda x: np.repeat((x + 1).T[:, None], 4, 1),
    "b:8 c:4 a:4",
  ),
  row(
    "add: into another order",
    lambda mesh, x, y: mtf.add(x, y, output_shape="c:4 a:4 b:8"),
    [AB, BC],
    lambda x, y: (x[:, :, None] + y[None]).transpose(2, 0, 1),
    "c:4 a:4 b:8",
  ),
  row(
    "add: with a dimension that neither has",
    lambda mesh, x, y: mtf.add(x, y, output_shape="a:4 c:4 b:8"),
    [AB, "b:8"],
    lambda x, y: np.repeat((x + y)[:, None], 4, 1),
    "a:4 c:4 b:8",
  ),
  row(
    "add: in two orders",
    lambda mesh, x, y: x + y,
    [AB, "b:8 a:4"],
    lambda x, y: x + y.T,
    AB,
  ),
  row(
    "add: a tensor to itself",
    lambda mesh, x: x + x * x,
    [AB],
    lambda x: x + x * x,
    AB,
  ),
  row(
    "multiply: a number",
    lambda mesh, x: 2 * (x * 3),
    [AB],
    lambda x: 6 * x,
    AB,
    dtypes=NARROW,
  ),
  row(
    "sub: from a number",
    lambda mesh, x: 1.5 - x,
    [AB],
    lambda x: 1.5 - x,
    AB,
    dtypes=NARROW,
  ),
  row(
    "sub: a number",
    lambda mesh, x: x - 1.5,
    [AB],
    lambda x: x - 1.5,
    AB,
  ),
  row(
    "divide: a number by it",
    lambda mesh, x: 2 / x,
    [(AB, "positive")],
    lambda x: 2 / x,
    AB,
  ),
  row(
    "divide: it by a number",
    lambda mesh, x: x / 4,
    [AB],
    lambda x: x / 4,
    AB,
    dtypes=NARROW,
  ),
  row(
    "divide: integers",
    lambda mesh, x: x / 4,
    [(AB, "integers")],
    lambda x: x / 4,
    AB,
    dtype="float32",
  ),
  row(
    "floordiv: integers",
    lambda mesh, x: x // 3,
    [(AB, "integers")],
    lambda x: x // 3,
    AB,
  ),
  row(
    "mod: integers",
    lambda mesh, x: x % 3,
    [(AB, "integers")],
    lambda x: x % 3,
    AB,
  ),
  row(
    "maximum: ties share the gradient",
    lambda mesh, x, y: mtf.maximum(mtf.to_float(x), mtf.to_float(y)),
    [(AB, "ties"), ("b:8", "ties")],
    np.maximum,
    AB,
    dtype="float32",
  ),
  row(
    "minimum: with a number",
    lambda mesh, x: mtf.minimum(x, 0.25),
    [AB],
    lambda x: np.minimum(x, 0.25),
    AB,
  ),
  row(
    "add_n",
    lambda mesh, x, y, z: mtf.add_n([x, y, z]),
    [AB, AB, "b:8"],
    lambda x, y, z: x + y + z,
    AB,
  ),
  row(
    "binary_op_with_broadcasting",
    lambda mesh, x, y: mtf.binary_op_with_broadcasting(
      tf.math.squared_difference, x, y
    ),
    [AB, BC],
    lambda x, y: (x[:, :, None] - y[None]) ** 2,
    ABC,
    has_gradient=False,
  ),
  row(
    "where",
    lambda mesh, condition, x, y: mtf.where(condition, x, y),
    [("a:4", "bool"), AB, BC],
    lambda condition, x, y: np.where(
      condition[:, None, None], x[:, :, None], y[None]
    ),
    ABC,
    dtype="float32",
  ),
  row(
    "where: with a number",
    lambda mesh, x: mtf.where(mtf.less(x, 0), 2.0, x),
    [AB],
    lambda x: np.where(x < 0, 2.0, x),
    AB,
  ),
  row(
    "where: of bools",
    lambda mesh, x, y: mtf.where(x, y, mtf.logical_not(y)),
    [(AB, "bool"), ("b:8", "bool")],
    lambda x, y: x == y,
    AB,
  ),
  row(
    "where: what is not selected leaves no trace",
    _select,
    [("a:4", "bool"), AB, AB],
    lambda condition, x, y: np.where(condition[:, None], x, y),
    AB,
    dtype="float32",
    has_gradient=False,
  ),
  row(
    "cwise",
    lambda mesh, x, y: mtf.cwise(lambda x, y: tf.exp(x) * y, [x, y]),
    [AB, AB],
    lambda x, y: np.exp(x) * y,
    AB,
  ),
  row(
    "slicewise",
    lambda mesh, x: mtf.slicewise(
      lambda x: tf.reduce_logsumexp(x, -1),
      [x],
      "a:4",
      splittable_dims=[mtf.Dimension("a", 4)],
    ),
    [AB],
    lambda x: np.log(np.exp(x).sum(1)),
    "a:4",
    unsplit="b",
  ),
  row(
    "slicewise: of several results",
    lambda mesh, x, y: mtf.slicewise(
      lambda x, y: [x * y, x + y],
      [x, y],
      [AB, AB],
      [tf.float32, tf.float32],
      splittable_dims=x.shape.dims,
    ),
    [AB, AB],
    lambda x, y: [x * y, x + y],
    [AB, AB],
  ),
  row(
    "stop_gradient",
    lambda mesh, x: x * mtf.stop_gradient(x),
    [AB],
    lambda x: x * x,
    AB,
    gradient=lambda x, w: x * w,
  ),
  row(
    "barrier",
    lambda mesh, x, y: mtf.barrier([x], [y])[0],
    [AB, BC],
    lambda x, y: x,
    AB,
  ),
  row(
    "depend",
    lambda mesh, x, y: mtf.depend(x, [y]),
    [AB, BC],
    lambda x, y: x,
    AB,
  ),
  row(
    "scalar_summary",
    lambda mesh, x: mtf.scalar_summary("loss", mtf.reduce_sum(x)),
    [AB],
    lambda x: np.sum(x),
    "",
  ),
]
