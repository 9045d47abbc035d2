"""Rows of the functions that put elements in order, or choose some."""

import numpy as np

import mesh_tf2 as mtf

from tests.conformance.row import row

ABC = "a:4 b:8 c:4"
B = mtf.Dimension("b", 8)
NARROW = ("bfloat16", "float64")


def _order(x, descending):
  """Stable: equal elements keep their order."""
  return np.argsort(-x if descending else x, axis=1, kind="stable")


def _sort(x, descending=False):
  return np.take_along_axis(x, _order(x, descending), 1)


def _sort_rows(descending):
  way = "descending" if descending else "ascending"
  return [
    row(
      f"sort: {way}",
      lambda mesh, x: mtf.sort(x, B, descending),
      [ABC],
      lambda x: _sort(x, descending),
      ABC,
      dtypes=NARROW,
    ),
    row(
      f"sort: {way}, integers",
      lambda mesh, x: mtf.sort(x, B, descending),
      [(ABC, "integers")],
      lambda x: _sort(x, descending),
      ABC,
    ),
    row(
      f"argsort: {way}",
      lambda mesh, x: mtf.argsort(x, B, descending),
      [(ABC, "ties")],
      lambda x: _order(x, descending),
      ABC,
      dtype="int32",
    ),
  ]


ROWS = [
  *_sort_rows(False),
  *_sort_rows(True),
  row(
    "argmin",
    lambda mesh, x: mtf.argmin(x, B),
    [ABC],
    lambda x: x.argmin(1),
    "a:4 c:4",
    dtype="int32",
  ),
  row(
    "argmin: of equal integers",
    lambda mesh, x: mtf.argmin(x, B),
    [(ABC, "ties")],
    lambda x: x.argmin(1),
    "a:4 c:4",
    dtype="int32",
  ),
  row(
    "categorical",
    lambda mesh, x: mtf.categorical(x, B),
    [ABC],
    None,
    "a:4 c:4",
    dtype="int32",
  ),
  row(
    "categorical: several choices",
    lambda mesh, x: mtf.categorical(x, B, "c:4 n:8 a:4"),
    [ABC],
    None,
    "c:4 n:8 a:4",
    dtype="int32",
  ),
  row(
    "categorical: of what leaves no choice",
    lambda mesh, i: mtf.categorical(
      mtf.log(mtf.one_hot(i, B)), B, "n:4 a:4 c:4"
    ),
    [("a:4 c:4", "ties")],
    lambda i: np.repeat(i[None], 4, 0),
    "n:4 a:4 c:4",
    dtype="int32",
  ),
]
