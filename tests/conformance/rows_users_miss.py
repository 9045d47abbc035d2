"""Rows of what the original lacks: functions of numbers, bits, and bounds."""

import math

import numpy as np

import mesh_tf2 as mtf

from tests.conformance.row import row

AB, BC, ABC = "a:4 b:8", "b:8 c:4", "a:4 b:8 c:4"
A, B, C = (mtf.Dimension(n, s) for n, s in [("a", 4), ("b", 8), ("c", 4)])
NARROW = ("bfloat16", "float64")

_erf = np.vectorize(math.erf)


# fmt: off
_UNARY = [
  # name              kind        reference
  ("tan",             "small",    np.tan),
  ("asin",            "small",    np.arcsin),
  ("acos",            "small",    np.arccos),
  ("atan",            "normal",   np.arctan),
  ("sinh",            "normal",   np.sinh),
  ("cosh",            "normal",   np.cosh),
  ("asinh",           "normal",   np.arcsinh),
  ("acosh",           "above 1",  np.arccosh),
  ("atanh",           "small",    np.arctanh),
  ("erf",             "normal",   _erf),
  ("log1p",           "positive", np.log1p),
  ("expm1",           "normal",   np.expm1),
  ("floor",           "normal",   np.floor),
  ("ceil",            "normal",   np.ceil),
  ("round",           "normal",   np.round),
  ("isfinite",        "normal",   np.isfinite),
  ("round: of integers", "integers", np.round),
  ("bitwise_not",     "integers", np.invert),
]
# fmt: on


def _unary(name, kind, reference):
  fn = getattr(mtf, name.split(":")[0])
  scale, offset = {"small": (0.25, 0), "above 1": (1, 1)}.get(kind, (1, 0))
  kind = {"small": "normal", "above 1": "positive"}.get(kind, kind)
  moved = (scale, offset) != (1, 0)
  return row(
    name,
    lambda mesh, x: fn(x * scale + offset) if moved else fn(x),
    [(AB, kind)],
    lambda x: reference(x * scale + offset) if moved else reference(x),
    AB,
    dtype="bool" if name == "isfinite" else None,
    dtypes=NARROW if kind != "integers" and name != "isfinite" else (),
  )


# fmt: off
_BINARY = [
  # name                 kind        reference
  ("squared_difference", "normal",   lambda x, y: (x - y) ** 2),
  ("squared_difference: of integers", "integers", lambda x, y: (x - y) ** 2),
  ("atan2",              "normal",   np.arctan2),
  ("logical_xor",        "bool",     np.logical_xor),
  ("bitwise_and",        "integers", np.bitwise_and),
  ("bitwise_or",         "integers", np.bitwise_or),
  ("bitwise_xor",        "integers", np.bitwise_xor),
  ("left_shift",         "ties",     np.left_shift),
  ("right_shift",        "ties",     np.right_shift),
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
    dtypes=("float64",) if kind == "normal" else (),
  )


# fmt: off
_OPERATORS = [
  # function         kind        result   on tensors as on arrays
  ("less",           "ties",     "bool",  lambda x, y: x < y),
  ("less_equal",     "ties",     "bool",  lambda x, y: x <= y),
  ("greater",        "ties",     "bool",  lambda x, y: x > y),
  ("greater_equal",  "ties",     "bool",  lambda x, y: x >= y),
  ("less",           "normal",   "bool",  lambda x, y: (x < 0.5) | (y >= 1)),
  ("logical_and",    "bool",     None,    lambda x, y: x & ~y),
  ("logical_or",     "bool",     None,    lambda x, y: False | x & y),
  ("logical_xor",    "bool",     None,    lambda x, y: True ^ x ^ y),
  ("bitwise_and",    "integers", None,    lambda x, y: 7 & x & y),
  ("bitwise_or",     "integers", None,    lambda x, y: 1 | x | ~y),
  ("bitwise_xor",    "integers", None,    lambda x, y: 5 ^ x ^ y),
  ("left_shift",     "ties",     None,    lambda x, y: 3 << x << y << 1),
  ("right_shift",    "ties",     None,    lambda x, y: 64 >> x >> y >> 1),
  ("mtf_pow",        "positive", None,    lambda x, y: x**y * 2.5**x),
  ("mtf_pow",        "integers", None,    lambda x, y: x**2 + y**3),
  ("mtf_abs",        "normal",   None,    lambda x, y: abs(x) * +y),
  ("divide",         "positive", None,    lambda x, y: 3 / (x + 1) / y),
  ("floordiv",       "integers", None,    lambda x, y: 9 // (x * x + 1) + y),
  ("mod",            "integers", None,    lambda x, y: 9 % (x * x + 1) + y),
]
# fmt: on


def _operator(name, kind, dtype, fn):
  return row(
    f"{name}: as operator, {kind}",
    lambda mesh, x, y: fn(x, y),
    [(AB, kind), ("b:8", kind)],
    fn,
    AB,
    dtype=dtype,
  )


def _log(mesh, x):
  """Numbers, infinities and what is no number."""
  bad = mtf.log(x)
  return mtf.where(x > 2, mtf.divide(x, mtf.zeros_like(x)), bad)


def _log_reference(x):
  with np.errstate(all="ignore"):
    return np.where(x > 2, np.inf, np.log(x))


def _fresh(x):
  """0 where an integer is 0 or 1, so that there are groups of each sort."""
  return mtf.to_float(x) * mtf.to_float(x > 1)


ROWS = [
  *(_unary(*entry) for entry in _UNARY),
  *(_binary(*entry) for entry in _BINARY),
  *(_operator(*entry) for entry in _OPERATORS),
  row(
    "isnan",
    lambda mesh, x: mtf.isnan(_log(mesh, x)),
    [AB],
    lambda x: np.isnan(_log_reference(x)),
    AB,
    dtype="bool",
  ),
  row(
    "isinf",
    lambda mesh, x: mtf.isinf(_log(mesh, x)),
    [AB],
    lambda x: np.isinf(_log_reference(x)),
    AB,
    dtype="bool",
  ),
  row(
    "gelu: exact",
    lambda mesh, x: mtf.gelu(x, approximate=False),
    [AB],
    lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    AB,
    dtypes=NARROW,
  ),
  row(
    "mtf_pow: of two tensors",
    lambda mesh, x, y: mtf.pow(x, y),
    [(AB, "positive"), BC],
    lambda x, y: x[:, :, None] ** y[None],
    ABC,
    dtypes=NARROW,
  ),
  row(
    "mtf_pow: negative numbers to the power of whole ones",
    lambda mesh, x, y: x ** mtf.to_float(y),
    [AB, ("b:8", "ties")],
    lambda x, y: x**y,
    AB,
  ),
  row(
    "clip",
    lambda mesh, x: mtf.clip(x, -1, 0.5),
    [AB],
    lambda x: np.clip(x, -1, 0.5),
    AB,
    dtypes=NARROW,
    covers="clip_by_value",
  ),
  row(
    "clip: from one side",
    lambda mesh, x: mtf.clip(x, high=3) + mtf.clip(x, 2),
    [(AB, "integers")],
    lambda x: np.minimum(x, 3) + np.maximum(x, 2),
    AB,
  ),
  row(
    "clip: between tensors",
    lambda mesh, x, low, high: mtf.clip_by_value(x, low - 3, high),
    [AB, ("b:8", "positive"), ("a:4", "positive")],
    lambda x, low, high: np.clip(x, low - 3, high[:, None]),
    AB,
  ),
  row(
    "reduce_prod",
    lambda mesh, x: mtf.reduce_prod(x, reduced_dim=B),
    [(ABC, "positive")],
    lambda x: x.prod(1),
    "a:4 c:4",
    dtypes=NARROW,
    covers="prod",
  ),
  row(
    "reduce_prod: of integers, in another order",
    lambda mesh, x: mtf.prod(x, output_shape="c:4 a:4"),
    [(ABC, "ties")],
    lambda x: x.prod(1).T,
    "c:4 a:4",
  ),
  row(
    "reduce_prod: to a number",
    lambda mesh, x: mtf.reduce_prod(x),
    [("a:4 b:2", "positive")],
    np.prod,
    "",
  ),
  row(
    "reduce_prod: with zeros",
    lambda mesh, x, z: mtf.reduce_prod(x * _fresh(z), reduced_dim=A),
    [(AB, "positive"), (AB, "ties")],
    lambda x, z: (x * z * (z > 1)).prod(0),
    "b:8",
    dtype="float32",
  ),
  row(
    "reduce_variance",
    lambda mesh, x: mtf.reduce_variance(x, reduced_dim=B),
    [ABC],
    lambda x: x.var(1),
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "reduce_variance: of integers",
    lambda mesh, x: mtf.reduce_variance(x, output_shape="a:4"),
    [(ABC, "integers")],
    lambda x: x.var((1, 2)),
    "a:4",
    dtype="float32",
  ),
  row(
    "reduce_std",
    lambda mesh, x: mtf.reduce_std(x, reduced_dim=B),
    [ABC],
    lambda x: x.std(1),
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "norm",
    lambda mesh, x: mtf.norm(x, reduced_dim=B),
    [ABC],
    lambda x: np.linalg.norm(x, axis=1),
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "norm: the sum of absolute values, in another order",
    lambda mesh, x: mtf.norm(x, output_shape="c:4 a:4", ord=1),
    [ABC],
    lambda x: np.abs(x).sum(1).T,
    "c:4 a:4",
  ),
  row(
    "norm: the largest absolute value of integers",
    lambda mesh, x: mtf.norm(x, ord=math.inf),
    [(AB, "integers")],
    lambda x: np.abs(x).max(),
    "",
    dtype="float32",
  ),
  row(
    "einsum: as text",
    lambda mesh, x, y: mtf.einsum("c b, b a -> c a", y, x),
    [AB, BC],
    lambda x, y: (x @ y).T,
    "c:4 a:4",
    dtypes=NARROW,
  ),
  row(
    "einsum: as text behind the tensors",
    lambda mesh, x, y, z: mtf.einsum([x, y, z], "a b, , b c -> c"),
    [AB, "", BC],
    lambda x, y, z: y * (x.sum(0) @ z),
    "c:4",
  ),
  row(
    "matmul: as operator",
    lambda mesh, x, y: x @ y,
    [AB, BC],
    lambda x, y: x @ y,
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "diagonal",
    lambda mesh, x: mtf.diagonal(x, A, C),
    [ABC],
    lambda x: np.einsum("aba->ab", x),
    AB,
    dtypes=NARROW,
  ),
  row(
    "diagonal: of bools, in the other direction",
    lambda mesh, x: mtf.diagonal(x, C, A),
    [(ABC, "bool")],
    lambda x: np.einsum("aba->ba", x),
    BC,
  ),
  row(
    "mtf_slice: by index",
    lambda mesh, x: x[{"b": slice(-6, -2), C: slice(None)}],
    [ABC],
    lambda x: x[:, 2:6],
    "a:4 b:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "gather: by index, every other position",
    lambda mesh, x: x[{"b": slice(1, None, 2)}],
    [ABC],
    lambda x: x[:, 1::2],
    "a:4 b:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "gather: by index, from the end to the beginning",
    lambda mesh, x: x[{"b": slice(None, None, -1), "a": slice(None, None, -1)}],
    [(ABC, "integers")],
    lambda x: x[::-1, ::-1],
    ABC,
  ),
  row(
    "gather: by index, one position",
    lambda mesh, x: x[{B: -1, "c": np.int64(2)}],
    [ABC],
    lambda x: x[:, -1, 2],
    "a:4",
    dtypes=NARROW,
  ),
  row(
    "gather: by index, a list of positions",
    lambda mesh, x: x[{"b": [0, 3, 3, -1]}],
    [(ABC, "bool")],
    lambda x: x[:, [0, 3, 3, -1]],
    "a:4 b:4 c:4",
  ),
  row(
    "gather: by index, positions in a tensor",
    lambda mesh, x, i: x[{"b": i}],
    [ABC, ("d:2 e:4", "ties")],
    lambda x, i: x[:, i],
    "a:4 d:2 e:4 c:4",
  ),
  row(
    "gather: by index, another order for each row",
    lambda mesh, x, i: x[{"b": i}],
    [ABC, ("a:4 b:4", "ties")],
    lambda x, i: np.take_along_axis(x, i[..., None], 1),
    "a:4 b:4 c:4",
  ),
]
