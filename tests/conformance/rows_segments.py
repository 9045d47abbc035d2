"""Rows of segments, and of shifts by what is computed."""

import numpy as np

import mesh_tf2 as mtf

from tests.conformance.row import row

ABC = "a:4 b:8 c:4"
B, S = mtf.Dimension("b", 8), mtf.Dimension("s", 4)
NARROW = ("bfloat16", "float64")


def _members(ids, size):
  """[..., b, s]: whether element b belongs to segment s."""
  return ids[..., None] == np.arange(size)


def _sum(x, ids):
  members = np.broadcast_to(_members(ids, 4), (4, 8, 4))
  return np.einsum("abc,abs->asc", x, members.astype(x.dtype))


def _best(x, ids, ufunc, nothing):
  members = np.broadcast_to(_members(ids, 4), (4, 8, 4))
  chosen = np.where(members[..., None], x[:, :, None], nothing)
  return ufunc.reduce(chosen, 1, dtype=x.dtype)


def _to_ties(x, ids, w, ufunc, nothing):
  """The gradient of `_best` with the weights `w`."""
  best = _best(x, ids, ufunc, nothing)
  out = np.zeros_like(x)
  for a, b in np.ndindex(4, 8):
    if 0 <= ids[a, b] < 4:
      hit = x[a, b] == best[a, ids[a, b]]
      out[a, b] = np.where(hit, w[a, ids[a, b]], 0)
  return out


def _extreme(name, ufunc, nothing):
  fn = getattr(mtf, name)
  return [
    row(
      name,
      # An empty segment is infinite: no number that a gradient can be held to.
      lambda mesh, x, i: mtf.minimum(mtf.maximum(fn(x, i, B, S), -9), 9),
      [ABC, ("a:4 b:8", "integers")],
      lambda x, i: np.clip(_best(x, i, ufunc, nothing), -9, 9),
      "a:4 s:4 c:4",
      dtypes=NARROW,
      gradient=lambda x, i, w: _to_ties(x, i, w, ufunc, nothing),
    ),
    row(
      f"{name}: of integers, the same ids for all",
      lambda mesh, x, i: fn(x, i, B, S),
      [(ABC, "integers"), ("b:8", "ties")],
      lambda x, i: _best(x, i, ufunc, np.int32(_no_integer(ufunc))),
      "a:4 s:4 c:4",
    ),
  ]


def _no_integer(ufunc):
  limits = np.iinfo(np.int32)
  return limits.min if ufunc is np.maximum else limits.max


def _moved(x, offset, wrap):
  """Element by element; `offset` has the dimensions a and c."""
  out = np.zeros_like(x)
  for a, b, c in np.ndindex(x.shape):
    place = b + int(offset[a, c])
    if wrap or 0 <= place < 8:
      out[a, place % 8, c] = x[a, b, c]
  return out


def _dynamic_shift(
  label, wrap, shape, spread, kind="integers", x_kind="normal"
):
  return row(
    f"dynamic_shift: {label}, {'wrapped' if wrap else 'zeros come in'}",
    lambda mesh, x, i: mtf.dynamic_shift(x, i, B, wrap),
    [(ABC, x_kind), (shape, kind)],
    lambda x, i: _moved(x, spread(i), wrap),
    ABC,
    dtypes=NARROW if x_kind == "normal" else (),
  )


def _each(i):
  return i.T


def _row(i):
  return np.repeat(i[:, None], 4, 1)


def _all(i):
  return np.full((4, 4), i)


def _fixed_shift(label, wrap, kind):
  return row(
    f"shift: {label}",
    lambda mesh, x: mtf.shift(x, -3, B, wrap),
    [(ABC, kind)],
    lambda x: _moved(x, _all(-3), wrap),
    ABC,
    dtypes=NARROW if kind == "normal" else (),
  )


ROWS = [
  _fixed_shift("narrow floats", False, "normal"),
  _fixed_shift("narrow floats, wrapped", True, "normal"),
  _fixed_shift("integers", False, "integers"),
  _fixed_shift("bools, wrapped", True, "bool"),
  row(
    "segment_sum",
    lambda mesh, x, i: mtf.segment_sum(x, i, B, S),
    [ABC, ("a:4 b:8", "integers")],
    _sum,
    "a:4 s:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "segment_sum: the same ids for all",
    lambda mesh, x, i: mtf.segment_sum(x, i, B, S),
    [ABC, ("b:8", "ties")],
    _sum,
    "a:4 s:4 c:4",
  ),
  row(
    "segment_sum: of integers, ids the other way round",
    lambda mesh, x, i: mtf.segment_sum(x, i, B, S),
    [(ABC, "integers"), ("b:8 a:4", "ties")],
    lambda x, i: _sum(x, i.T),
    "a:4 s:4 c:4",
  ),
  *_extreme("segment_max", np.maximum, -np.inf),
  *_extreme("segment_min", np.minimum, np.inf),
  *(
    _dynamic_shift(*case)
    for wrap in (False, True)
    for case in (
      ("an offset for each row", wrap, "c:4 a:4", _each),
      ("an offset for some rows", wrap, "a:4", _row),
      ("one offset", wrap, "", _all),
      ("integers", wrap, "a:4", _row, "integers", "integers"),
      ("bools", wrap, "a:4", _row, "integers", "bool"),
    )
  ),
]
