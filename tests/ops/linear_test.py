"""Parts of tensors, put together and taken apart."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor

A, B = mtf.Dimension("a", 4), mtf.Dimension("b", 8)
LAYOUTS = [("", ""), ("x:2", "b:x"), ("x:2;y:2", "a:x;b:y")]


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_parts_that_nobody_uses_leave_zeros_in_the_gradient(mesh, layout):
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    third = mtf.unstack(x, "b")[2]
    half = mtf.split(x, "b", 2)[1]
    return mtf.gradients([third], [x]) + mtf.gradients([half], [x])

  of_third, of_half = run(build, mesh, layout).values
  columns = np.arange(8)
  np.testing.assert_array_equal(of_third, np.tile(columns == 2, (4, 1)))
  np.testing.assert_array_equal(of_half, np.tile(columns >= 4, (4, 1)))


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_a_split_dimension_is_cut_and_joined_like_a_whole_one(mesh, layout):
  whole = np.arange(32).reshape(4, 8)

  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    first, second = mtf.split(x, B, 2)
    return [
      mtf.concat([second, x, first], "b"),
      mtf.slice(x, 3, 4, "b"),
      mtf.pad(x, [5, 3], "b"),
      *mtf.unstack(x, B)[5:7],
      mtf.stack(mtf.unstack(x, B), "b", 1),
    ]

  joined, cut, padded, five, six, again = run(build, mesh, layout).values
  parts = [whole[:, 4:], whole, whole[:, :4]]
  np.testing.assert_array_equal(joined, np.concatenate(parts, 1))
  np.testing.assert_array_equal(cut, whole[:, 3:7])
  np.testing.assert_array_equal(padded, np.pad(whole, [[0, 0], [5, 3]]))
  np.testing.assert_array_equal([five, six], whole.T[5:7])
  np.testing.assert_array_equal(again, whole)


def test_only_a_dimension_that_is_split_is_gathered():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    return [mtf.concat([x, x], "b"), mtf.stack([x, x], "n")]

  whole = run(build, "x:2", "a:x")
  whole.values  # noqa: B018
  assert whole.kinds == []
  split = run(build, "x:2", "b:x")
  split.values  # noqa: B018
  assert split.kinds == ["allconcat", "allconcat"]
  new = run(build, "x:2", "n:x")
  new.values  # noqa: B018
  assert new.kinds == []


def test_whole_numbers_of_numpy_are_whole_numbers():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    return [
      mtf.slice(x, np.int64(2), np.int32(3), "b"),
      mtf.split(x, B, np.int64(2))[0],
      mtf.split(x, B, [np.int32(5), 3])[1],
      mtf.pad(x, np.array([1, 0]), "b"),
      mtf.stack([x], "n", np.int64(-1)),
    ]

  shapes = [t.shape.to_integer_list for t in run(build).tensors]
  assert shapes == [[4, 3], [4, 4], [4, 3], [4, 9], [4, 8, 1]]


@pytest.mark.parametrize("layout", ["", "a:x"])
def test_a_shift_of_nothing_is_nothing(layout):
  nothing = mtf.Dimension("a", 0)

  def build(mesh):
    x = mtf.zeros(mesh, [nothing])
    offset = mtf.ones(mesh, [], tf.int32)
    return [
      mtf.shift(x, 1, nothing, wrap=True),
      mtf.dynamic_shift(x, offset, nothing, wrap=True),
    ]

  for got in run(build, "x:2", layout).values:
    assert got.shape == (0,)


def test_an_offset_is_a_whole_number():
  x = mtf.zeros(new_mesh(), "a:4")
  for fn in (mtf.shift, mtf.dynamic_shift):
    with pytest.raises(TypeError, match=r"offset is a whole number, got 1\.5"):
      fn(x, 1.5, mtf.Dimension("a", 4), wrap=True)
