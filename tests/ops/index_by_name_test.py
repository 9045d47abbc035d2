"""Indexing by name: what an index may be, and what it must not be."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor

A, B = mtf.Dimension("a", 4), mtf.Dimension("b", 8)
SLICES = [
  slice(None),
  slice(2, 6),
  slice(-3, None),
  slice(5, 2),
  slice(None, 100),
  slice(1, None, 3),
  slice(None, None, -1),
  slice(6, 1, -2),
  slice(4, 5, -1),
]


@pytest.mark.parametrize("where", SLICES, ids=str)
def test_a_slice_is_that_of_numpy(where):
  ran = run(lambda mesh: tensor(mesh, "a:4 b:8")[{"b": where}])
  want = np.arange(32).reshape(4, 8)[:, where]
  np.testing.assert_array_equal(ran.value(), want)


def test_the_whole_of_a_dimension_is_the_tensor_itself():
  x = tensor(new_mesh(), "a:4 b:8")
  assert x[{"b": slice(None)}] is x
  assert x[{}] is x


def test_the_gradient_of_a_position_is_at_that_position():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    y = x[{"b": [1, 1, 5, -1], A: -1}]
    return mtf.gradients([y], [x])

  (dx,) = run(build, "x:2", "b:x").values
  want = np.zeros((4, 8))
  want[3, 1], want[3, 5], want[3, 7] = 2, 1, 1
  np.testing.assert_array_equal(dx, want)


def test_a_split_dimension_is_indexed_like_a_whole_one():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    return [x[{"b": 5}], x[{"b": slice(2, 6)}], x[{"b": slice(None, None, -1)}]]

  whole = np.arange(32).reshape(4, 8)
  ran = run(build, "x:2;y:2", "a:x;b:y")
  for got, want in zip(
    ran.values, [whole[:, 5], whole[:, 2:6], whole[:, ::-1]], strict=True
  ):
    np.testing.assert_array_equal(got, want)


def test_one_position_of_a_split_dimension_moves_no_more_than_it_holds():
  ran = run(lambda mesh: tensor(mesh, "a:4 b:8")[{"b": 5}], "x:2", "b:x")
  ran.values  # noqa: B018
  assert ran.kinds == ["allreduce"]
  assert [c.elements for _, c in ran.lowering.collectives] == [4]


def test_an_order_may_have_the_name_of_what_it_orders():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    order = tensor(mesh, "b:8", [7, 6, 5, 4, 3, 2, 1, 0], np.int32)
    return x[{"b": order}]

  np.testing.assert_array_equal(
    run(build, "x:2", "b:x").value(), np.arange(32).reshape(4, 8)[:, ::-1]
  )


def test_two_tensors_of_positions_are_looked_up_pair_by_pair():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    i = tensor(mesh, "n:3", [0, 1, 3], np.int32)
    j = tensor(mesh, "n:3", [7, 2, 0], np.int32)
    return x[{"a": i, "b": j}]

  whole = np.arange(32).reshape(4, 8)
  np.testing.assert_array_equal(run(build).value(), whole[[0, 1, 3], [7, 2, 0]])


WHERE = "positions along b:8 are a slice, a whole number, "
MISTAKES = [
  (3, TypeError, "indexed by the names of its dimensions .*, got 3; write"),
  ((0, 1), TypeError, r"got \(0, 1\); write for example x\[\{'a': 0\}\]"),
  ({"c": 0}, ValueError, "no dimension called 'c'"),
  ({"bb": 0}, ValueError, r'did you mean "b"\?'),
  ({("b", 4): 0}, ValueError, "no dimension"),
  ({"b": 8}, ValueError, "no position 8 along b:8; take one from -8 to 7"),
  ({"b": -9}, ValueError, "no position -9 along b:8"),
  ({"b": [0, 8]}, ValueError, "no position 8 along b:8"),
  ({"b": 1.0}, TypeError, WHERE + ".* got 1.0"),
  ({"b": True}, TypeError, WHERE + ".* got True"),
  ({"b": None}, TypeError, WHERE + ".* got None"),
  ({"b": slice(0, 4, 0)}, ValueError, "step cannot be zero"),
]


@pytest.mark.parametrize(
  ("index", "kind", "message"), MISTAKES, ids=[str(m[0]) for m in MISTAKES]
)
def test_an_index_that_is_none_is_told(index, kind, message):
  with pytest.raises(kind, match=message):
    tensor(new_mesh(), "a:4 b:8")[index]


def test_truth_values_are_no_positions():
  x = tensor(new_mesh(), "a:4 b:8")
  with pytest.raises(TypeError, match="choose elements with mtf"):
    x[{"b": x > 3}]


def test_a_diagonal_needs_two_dimensions_of_one_size():
  x = tensor(new_mesh(), "a:4 b:8")
  with pytest.raises(ValueError, match="diagonal of a:4 and b:8: two dim"):
    mtf.diagonal(x, A, B)
  with pytest.raises(ValueError, match="has no dimension c:8"):
    mtf.diagonal(x, B, mtf.Dimension("c", 8))
