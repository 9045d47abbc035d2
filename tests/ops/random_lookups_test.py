"""Lookups and segments of random shapes in random layouts, against loops."""

import hypothesis
import numpy as np
from hypothesis import strategies as st

import mesh_tf2 as mtf

from tests.support.meshes import PLACEMENT, VIRTUAL, Setting
from tests.support.running import Run, tensor

# The table has dimensions a to c, of which c is looked up; the indices d, e.
SIZES = {"a": 2, "b": 4, "c": 8, "d": 4, "e": 2}
MESH = (("x", 2), ("y", 2))

tables = st.permutations(["a", "b", "c"])
indices = st.lists(st.sampled_from("abde"), max_size=3, unique=True)
layouts = st.lists(st.sampled_from(["", "x", "y"]), min_size=5, max_size=5)


def _shape(names):
  return mtf.Shape([mtf.Dimension(n, SIZES[n]) for n in names])


def _points(names):
  """All positions, as dictionaries."""
  for at in np.ndindex(*(SIZES[n] for n in names)):
    yield dict(zip(names, at, strict=True))


def _at(x, names, point):
  return x[tuple(point[n] for n in names)]


def _look_up(table, table_names, ids, id_names, names, weights):
  """What is found, and the gradient of the table, one by one."""
  found, gradient = np.zeros_like(weights), np.zeros_like(table)
  for point in _points(names):
    row = int(_at(ids, id_names, point))
    if 0 <= row < SIZES["c"]:
      at = tuple({**point, "c": row}[n] for n in table_names)
      here = tuple(point[n] for n in names)
      found[here] = table[at]
      gradient[at] += weights[here]
  return found, gradient


@hypothesis.settings(
  max_examples=60,
  deadline=None,
  derandomize=True,
  database=None,
  suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(
  table_names=tables,
  id_names=indices,
  layout=layouts,
  kind=st.sampled_from([VIRTUAL, VIRTUAL, PLACEMENT]),
  data=st.data(),
)
def test_a_lookup_of_any_shape_in_any_layout_finds_the_same(
  table_names, id_names, layout, kind, data
):
  kept = [n for n in table_names if n != "c"]
  names = data.draw(st.permutations(sorted({*kept, *id_names})))
  rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
  table = rng.integers(-9, 9, _shape(table_names).to_integer_list)
  ids = rng.integers(-2, 10, _shape(id_names).to_integer_list)
  weights = rng.integers(-9, 9, _shape(names).to_integer_list)
  wanted = _look_up(table, table_names, ids, id_names, names, weights)
  pairs = tuple((n, a) for n, a in zip(SIZES, layout, strict=True) if a)

  def build(mesh):
    w = tensor(mesh, _shape(table_names), table)
    i = tensor(mesh, _shape(id_names), ids, np.int32)
    y = mtf.gather(w, i, _shape("c")[0], _shape(names))
    dy = tensor(mesh, _shape(names), weights)
    return [y, *mtf.gradients([y], [w], [dy])]

  try:
    values = Run(build, Setting(kind, MESH, pairs)).values
  except mtf.LayoutError:  # two dimensions of one tensor on one mesh axis
    hypothesis.assume(False)
  for got, want in zip(values, wanted, strict=True):
    np.testing.assert_array_equal(got, want)


@hypothesis.settings(
  max_examples=40,
  deadline=None,
  derandomize=True,
  database=None,
  suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(
  names=st.permutations(["a", "b", "d"]),
  others=st.lists(st.sampled_from("ab"), unique=True),
  layout=layouts,
  name=st.sampled_from(["segment_sum", "segment_max", "segment_min"]),
  kind=st.sampled_from([VIRTUAL, VIRTUAL, PLACEMENT]),
  seed=st.integers(0, 1000),
)
def test_segments_of_any_shape_in_any_layout_are_the_same(
  names, others, layout, name, kind, seed
):
  """Segments of the dimension d, numbered by c."""
  rng = np.random.default_rng(seed)
  x = rng.integers(-9, 9, _shape(names).to_integer_list)
  ids = rng.integers(-1, 9, _shape(["d", *others]).to_integer_list)
  ufunc, want = {
    "segment_sum": (np.add, 0),
    "segment_max": (np.maximum, -(2**31)),
    "segment_min": (np.minimum, 2**31 - 1),
  }[name]
  after = ["c" if n == "d" else n for n in names]
  want = np.full(_shape(after).to_integer_list, want, np.int64)
  for point in _points(names):
    row = int(_at(ids, ["d", *others], point))
    if 0 <= row < SIZES["c"]:
      at = tuple({**point, "c": row}[n] for n in after)
      want[at] = ufunc(want[at], _at(x, names, point))
  pairs = tuple((n, a) for n, a in zip(SIZES, layout, strict=True) if a)

  def build(mesh):
    d, c = _shape("dc")
    i = tensor(mesh, _shape(["d", *others]), ids, np.int32)
    return getattr(mtf, name)(tensor(mesh, _shape(names), x, np.int32), i, d, c)

  try:
    got = Run(build, Setting(kind, MESH, pairs)).value()
  except mtf.LayoutError:
    hypothesis.assume(False)
  np.testing.assert_array_equal(got, want)
