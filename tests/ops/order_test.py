"""Order: exact in every dtype and layout, ties, NaN, and what is sent."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

B = mtf.Dimension("b", 8)
NAN, INF = float("nan"), float("inf")
PLACES = (("", ""), ("x:2", "b:x"), ("x:8", "b:x"), ("x:2;y:4", "r:x;b:y"))

INTEGERS = ["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def _everything(mesh, x):
  """All functions that look at the order of the elements."""
  top, at = mtf.top_k(x, B, mtf.Dimension("k", 3))
  return [
    mtf.sort(x, B),
    mtf.argsort(x, B),
    mtf.sort(x, B, descending=True),
    mtf.argsort(x, B, descending=True),
    top,
    at,
    mtf.argmax(x, B),
    mtf.argmin(x, B),
    mtf.nth_largest_element(x, 7, B),
    mtf.nth_smallest_element(x, 0, B),
  ]


def _expected(x):
  """The same by Python's own sort, which is stable and knows all integers."""
  rows = []
  for values in x.reshape(-1, 8):
    numbers = [v.item() for v in values]
    up = _up(numbers)
    down = _down(numbers, up)
    first_nan = next((i for i in range(8) if _is_nan(numbers[i])), None)
    least = up[0] if first_nan is None else first_nan
    rows.append(
      [
        values[up], up, values[down], down, values[down[:3]], down[:3],
        down[0], least, values[up[0]], values[up[0]],
      ]
    )  # fmt: skip
  return [np.array(column) for column in zip(*rows, strict=True)]


def _is_nan(number):
  return number != number


def _up(numbers):
  """Ascending, NaN last."""
  places = sorted(range(8), key=lambda i: (_is_nan(numbers[i]), i))
  count = sum(not _is_nan(v) for v in numbers)
  return sorted(places[:count], key=lambda i: numbers[i]) + places[count:]


def _down(numbers, up):
  """Descending, equal elements still in their order."""
  groups = {}
  for i in up:
    key = "NaN" if _is_nan(numbers[i]) else numbers[i]
    groups.setdefault(key, []).append(i)
  return [i for group in reversed(groups.values()) for i in group]


def _check(x, dtype, mesh, layout, kind):
  wide = np.asarray(x)

  def build(m):
    return _everything(m, tensor(m, "r:2 b:8", tf.cast(wide, dtype), dtype))

  values = tf.cast(wide, dtype).numpy()
  results = run(build, mesh, layout, kind).values
  for got, want in zip(results, _expected(values), strict=True):
    got = got.reshape(want.shape)
    if dtype in FLOATS:
      got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_from_the_least_to_the_largest_are_in_order(dtype):
  least, most = tf.as_dtype(dtype).limits
  row = [0, most, least, 1, most - 1, least + 1, most, least]
  x = np.array([row, row[::-1]], dtype)
  for mesh, layout in PLACES[1:]:
    _check(x, dtype, mesh, layout, KINDS[0])
  _check(x, dtype, "x:2", "b:x", KINDS[1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_nan_and_the_smallest_floats_are_in_order(dtype):
  tiny = {"float64": 5e-324, "float16": 6e-8}.get(dtype, 1e-45)
  tiny = 1e-40 if dtype == "bfloat16" else tiny
  x = np.array(
    [
      [INF, -tiny, NAN, 0.0, tiny, -INF, -1e4, 1e4],
      [-0.0, NAN, 0.0, -tiny, NAN, tiny, -INF, -INF],
    ],
    np.float64 if dtype == "float64" else np.float32,
  )
  for mesh, layout in PLACES:
    _check(x, dtype, mesh, layout, KINDS[0])
  _check(x, dtype, "x:2", "b:x", KINDS[1])


numbers = st.one_of(
  st.integers(-2, 2), st.floats(width=32), st.floats(-1e10, -1e9, width=32)
)


@hypothesis.settings(
  max_examples=40,
  deadline=None,
  derandomize=True,
  database=None,
  suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(
  x=st.lists(numbers, min_size=16, max_size=16),
  dtype=st.sampled_from(["float32", "bfloat16", "float64"]),
  place=st.sampled_from(PLACES),
  kind=st.sampled_from(KINDS),
)
def test_any_floats_are_in_order_in_any_layout(x, dtype, place, kind):
  if place[0] == "x:2;y:4":
    kind = KINDS[0]
  _check(np.reshape(np.array(x, np.float32), (2, 8)), dtype, *place, kind)


@hypothesis.settings(
  max_examples=20,
  deadline=None,
  derandomize=True,
  database=None,
  suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(
  x=st.lists(
    st.integers(-(2**31), 2**31 - 1) | st.integers(0, 2),
    min_size=16,
    max_size=16,
  ),
  place=st.sampled_from(PLACES),
)
def test_any_integers_are_in_order_in_any_layout(x, place):
  x = np.reshape(np.array(x, np.int32), (2, 8))
  _check(x, "int32", *place, KINDS[0])


def test_the_gradient_of_sort_goes_back_to_where_an_element_came_from():
  values = [3, 1, 2, 1, 7, 0, 5, 1]

  def build(mesh):
    x = tensor(mesh, "b:8", values)
    y = mtf.sort(x, B)
    return mtf.gradients([y], [x], [tensor(mesh, "b:8")])

  for layout in ("", "b:x"):
    for kind in KINDS:
      got = run(build, "x:4", layout, kind).value()
      assert got.tolist() == [5, 1, 4, 2, 7, 0, 6, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_dimension_that_is_sorted_is_gathered(kind):
  def build(mesh):
    return mtf.sort(tensor(mesh, "r:4 b:8"), B)

  for layout, sent in (("r:x", []), ("r:x;b:y", [("allconcat", (1,), 2 * 8)])):
    split = run(build, "x:2;y:2", layout, kind)
    assert split.value().shape == (4, 8)
    ops = [c for _, c in split.lowering.collectives]
    assert [(c.kind, c.mesh_axes, c.elements) for c in ops] == sent


@pytest.mark.parametrize("kind", KINDS)
def test_argmin_sends_one_value_and_one_position_for_each_row(kind):
  split = run(
    lambda mesh: mtf.argmin(tensor(mesh, "r:4 b:8"), B), "x:2", "b:x", kind
  )
  assert split.value().tolist() == [0] * 4
  sent = [(c.kind, c.elements) for _, c in split.lowering.collectives]
  assert sent == [("allreduce", 4)] * 2


def test_every_largest_element_gets_the_gradient_of_top_1():
  def build(mesh):
    x = tensor(mesh, "b:8", [1, 5, 2, 5, 0, 0, 5, 3])
    return mtf.gradients([mtf.top_1(x, B)[0]], [x])

  for layout in ("", "b:x"):
    got = run(build, "x:2", layout).value()
    assert got.tolist() == [0, 1, 0, 1, 0, 0, 1, 0]


def test_mistakes_of_an_order_are_named():
  x = tensor(new_mesh(), "a:4")
  for fn in (mtf.sort, mtf.argsort, mtf.argmin, mtf.argmax):
    with pytest.raises(ValueError, match=r"\[a:4\] has no dimension b:8"):
      fn(x, B)
  none = mtf.Dimension("z", 0)
  empty = mtf.zeros(new_mesh(), "r:2 z:0")
  with pytest.raises(ValueError, match="z:0 has no elements to choose from"):
    mtf.argmin(empty, none)


def test_complex_numbers_have_no_order():
  x = mtf.zeros(new_mesh(), "b:8", tf.complex64)
  some = mtf.Dimension("k", 2)
  ids = mtf.zeros(x.mesh, "b:8", tf.int32)
  for fn in (
    lambda: mtf.sort(x, B),
    lambda: mtf.argmax(x, B),
    lambda: mtf.top_k(x, B, some),
    lambda: mtf.reduce_max(x),
    lambda: mtf.segment_max(x, ids, B, some),
  ):
    with pytest.raises(ValueError, match="takes real numbers, got complex64"):
      fn()
