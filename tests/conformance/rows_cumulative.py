"""Rows of what goes along a dimension and takes everything with it."""

import itertools

import numpy as np

import mesh_tf2 as mtf

from tests.conformance.row import row

ABC = "a:4 b:8 c:4"
B = mtf.Dimension("b", 8)
NARROW = ("bfloat16", "float64")


def _along(ufunc, x, exclusive, reverse):
  """NumPy's own, along axis 1."""
  x = x[:, ::-1] if reverse else x
  y = ufunc.accumulate(x, 1, dtype=x.dtype)
  if exclusive:
    first = np.full_like(y[:, :1], ufunc.identity)
    y = np.concatenate([first, y[:, :-1]], 1)
  return y[:, ::-1] if reverse else y


def _cumulative(name, ufunc, exclusive, reverse, kind="normal"):
  fn = getattr(mtf, name)
  words = ["exclusive"] * exclusive + ["from the end"] * reverse
  words += [] if kind == "normal" else [kind]
  return row(
    f"{name}: {', '.join(words) or 'from the beginning'}",
    lambda mesh, x: fn(x, B, exclusive, reverse),
    [(ABC, kind)],
    lambda x: _along(ufunc, x, exclusive, reverse),
    ABC,
    dtypes=NARROW if kind == "normal" else (),
  )


WAYS = list(itertools.product((False, True), repeat=2))
UFUNCS = [("cumsum", np.add), ("cumprod", np.multiply)]

ROWS = [
  _cumulative(name, ufunc, *way, kind)
  for name, ufunc in UFUNCS
  for way in WAYS
  for kind in ("normal", "ties")
]
