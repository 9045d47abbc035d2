"""Segments and computed shifts: the edges, the dtypes, and what they say."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

B, S = mtf.Dimension("b", 8), mtf.Dimension("s", 4)
IDS = [0, 2, 2, -1, 0, 4, 2, 9]  # segments 1 and 3 are empty
PLACES = (("", ""), ("x:2", "b:x"), ("x:2", "s:x"), ("x:2;y:2", "b:y;s:x"))


def _segments(fn, values, dtype=np.float32):
  def build(mesh):
    x = tensor(mesh, "b:8", values, dtype)
    return fn(x, tensor(mesh, "b:8", IDS, np.int32), B, S)

  results = [run(build, *place, kind) for place in PLACES for kind in KINDS]
  first, *others = [r.value() for r in results]
  for other in others:
    np.testing.assert_array_equal(other, first)
  return first.tolist()


def test_ids_outside_of_the_segments_are_left_out():
  ones = [1] * 8
  assert _segments(mtf.segment_sum, ones) == [2, 0, 3, 0]
  assert _segments(mtf.segment_sum, ones, np.int32) == [2, 0, 3, 0]


def test_an_empty_segment_has_the_extreme_that_changes_nothing():
  inf, limits = float("inf"), np.iinfo(np.int32)
  values = [5, -3, 7, 100, 4, 100, 1, -100]
  assert _segments(mtf.segment_max, values) == [5, -inf, 7, -inf]
  assert _segments(mtf.segment_min, values) == [4, inf, -3, inf]
  least, most = limits.min, limits.max
  assert _segments(mtf.segment_max, values, np.int32) == [5, least, 7, least]
  assert _segments(mtf.segment_min, values, np.int32) == [4, most, -3, most]
  assert _segments(mtf.segment_max, np.abs(values), np.uint8) == [5, 0, 7, 0]


def test_what_is_not_a_number_stays_in_its_segment():
  nan = float("nan")
  values = [5, nan, 7, nan, 4, nan, 1, nan]
  for fn in (mtf.segment_max, mtf.segment_min, mtf.segment_sum):
    first, _, third, _ = _segments(fn, values)
    assert first == first
    assert third != third


def test_many_narrow_numbers_of_a_segment_are_added_exactly():
  dim = mtf.Dimension("n", 512)

  def build(mesh):
    x = mtf.ones(mesh, "n:512", "bfloat16")
    return mtf.segment_sum(x, mtf.zeros(mesh, "n:512", "int32"), dim, S)

  assert run(build).value()[0] == 512


def test_every_largest_element_of_a_segment_gets_the_gradient():
  def build(mesh):
    x = tensor(mesh, "b:8", [5, 7, 1, 9, 5, 9, 7, 9])
    y = mtf.segment_max(x, tensor(mesh, "b:8", IDS, np.int32), B, S)
    return mtf.gradients([y], [x], [tensor(mesh, "s:4", [1, 2, 3, 4])])

  for place in PLACES:
    got = run(build, *place).value()
    assert got.tolist() == [1, 3, 0, 0, 1, 0, 3, 0]


def test_rows_are_added_to_the_right_place_of_any_dtype():
  for dtype in (np.int8, np.int32, np.int64, np.float32, "bfloat16"):

    def build(mesh, dtype=dtype):
      x = mtf.cast(tensor(mesh, "n:3", [1, 2, 4], np.int32), dtype)
      return mtf.scatter_add(
        x, tensor(mesh, "n:3", [5, 0, 5], np.int32), B, [B]
      )

    got = run(build, "x:2", "b:x").value().tolist()
    assert got == [2, 0, 0, 0, 0, 5, 0, 0], dtype


def test_mistakes_of_segments_are_named():
  mesh = new_mesh()
  x, ids = tensor(mesh, "b:8 c:2"), tensor(mesh, "b:8", dtype=np.int32)
  with pytest.raises(
    ValueError, match="segment_max takes real numbers, got bool"
  ):
    mtf.segment_max(mtf.cast(x, "bool"), ids, B, S)
  with pytest.raises(ValueError, match="scatter_add takes numbers, got bool"):
    mtf.segment_sum(mtf.cast(x, "bool"), ids, B, S)
  with pytest.raises(ValueError, match=r"segment_min along s:4: both x \[b:8"):
    mtf.segment_min(x, ids, S, mtf.Dimension("t", 2))
  with pytest.raises(ValueError, match=r"must not have \[d:3\], which x lacks"):
    more = tensor(mesh, "b:8 d:3", dtype=np.int32)
    mtf.segment_sum(x, more, B, S)
  with pytest.raises(ValueError, match="c:2, needs a name that x does not"):
    mtf.segment_sum(x, ids, B, mtf.Dimension("c", 2))
  with pytest.raises(ValueError, match="takes integer indices, got float32"):
    mtf.segment_sum(x, tensor(mesh, "b:8"), B, S)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8])
def test_an_offset_may_be_of_any_size_and_integer_dtype(dtype):
  limits = np.iinfo(dtype)
  for offset in (limits.min, -9, -8, -1, 0, 5, 8, 9, limits.max):
    for wrap in (True, False):

      def build(mesh, offset=offset, wrap=wrap):
        x = tensor(mesh, "b:8", np.arange(1, 9))
        by = tensor(mesh, "", offset, dtype)
        y = mtf.dynamic_shift(x, by, B, wrap)
        return [y, *mtf.gradients([y], [x], [x])]

      offsets = (int(offset), -int(offset))
      values = run(build, "x:2", "b:x").values
      for got, by in zip(values, offsets, strict=True):
        want = np.roll(np.arange(1, 9), by % 8)
        if not wrap:
          places = np.array([float(i - by) for i in range(8)])
          inside = (places >= 0) & (places < 8)
          want = np.where(inside, places + 1, 0)
        assert got.tolist() == want.tolist(), (offset, wrap)


def test_the_golden_shift_of_the_original():
  def build(mesh):
    x = tensor(mesh, "b:4")
    one = tensor(mesh, "", 1, np.int32)
    return mtf.dynamic_shift(x, one, mtf.Dimension("b", 4), wrap=False)

  for layout in ("", "b:x"):
    assert run(build, "x:2", layout).value().tolist() == [0, 0, 1, 2]


def test_a_number_as_offset_sends_no_more_than_a_shift():
  def build(mesh):
    return mtf.dynamic_shift(tensor(mesh, "b:8"), 1, B, wrap=True)

  split = run(build, "x:2", "b:x")
  assert split.value().tolist() == [7, 0, 1, 2, 3, 4, 5, 6]
  assert split.counters("shift") == [("shift[0]", 6), ("shift[1]", 2)]
  assert [c.elements for _, c in split.lowering.collectives] == [1]


def test_mistakes_of_a_computed_shift_are_named():
  mesh = new_mesh()
  x = tensor(mesh, "a:2 b:8")
  with pytest.raises(ValueError, match="takes an integer offset, got float32"):
    mtf.dynamic_shift(x, tensor(mesh, ""), B, True)
  for shape in ("b:8", "c:3"):
    by = tensor(mesh, shape, dtype=np.int32)
    with pytest.raises(ValueError, match=rf"must not have \[{shape}\]"):
      mtf.dynamic_shift(x, by, B, True)
  with pytest.raises(ValueError, match="has no dimension s:4"):
    mtf.dynamic_shift(x, tensor(mesh, "", 1, np.int32), S, True)
