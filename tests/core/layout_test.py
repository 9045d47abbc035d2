"""Layout rules, and the numbers of processors."""

import itertools

import pytest

import mesh_tf2 as mtf

from tests.support.running import run, tensor

D, S = mtf.Dimension, mtf.convert_to_shape
MESH = S("rows:2 cols:4")


def rules(text):
  return mtf.convert_to_layout_rules(text)


def test_rules_are_read_from_strings_and_pairs():
  pairs = [("batch", "rows"), ("d_ff", "cols")]
  assert rules("batch:rows;d_ff:cols") == rules(pairs)
  assert rules("batch:rows d_ff:cols") == rules(reversed(pairs))
  assert rules(rules(pairs)) == rules(pairs)
  assert rules("").pairs == ()
  assert len({rules("a:x;b:y"), rules("b:y;a:x")}) == 1


def test_a_malformed_rule_is_shown():
  with pytest.raises(ValueError, match="'batch' in 'batch' is not of the form"):
    rules("batch")


def test_a_layout_says_which_mesh_axis_splits_which_tensor_axis():
  layout = rules("b:cols;c:rows").tensor_layout(S("a:4 b:8 c:2"), MESH)
  assert layout.tensor_axis_to_mesh_axis == (None, 1, 0)
  assert layout.mesh_axis_to_tensor_axis(2) == (2, 1)
  assert layout.mesh_axes == (0, 1)
  assert not layout.is_fully_replicated
  assert layout == mtf.TensorLayout([None, 1, 0])
  assert len({layout, mtf.TensorLayout([None, 1, 0])}) == 1
  assert list(layout) == [None, 1, 0]
  assert layout[1] == 1


def test_rules_about_absent_names_are_without_effect():
  layout = rules("b:model;z:rows").tensor_layout(S("a:4 b:8"), MESH)
  assert layout.is_fully_replicated


def test_rules_about_one_dimension_of_a_mesh_are_found_by_its_name():
  some = rules("batch:rows;d_ff:cols;heads:cols")
  found = some.mesh_dimension_name_to_tensor_dimension_names("cols")
  assert found == ["d_ff", "heads"]


def test_a_dimension_on_two_mesh_dimensions_is_an_error_that_names_the_rules():
  with pytest.raises(
    mtf.LayoutError, match=r"'b' maps to several.*\('b:rows', 'b:cols'\)"
  ):
    rules("b:rows;b:cols").tensor_layout(S("b:8"), MESH)


def test_the_same_name_on_two_mesh_dimensions_is_fine_on_a_mesh_with_one():
  layout = rules("b:rows;b:model").tensor_layout(S("b:8"), MESH)
  assert layout == mtf.TensorLayout([0])


def test_two_dimensions_on_one_mesh_dimension_are_an_error():
  with pytest.raises(
    mtf.LayoutError,
    match=r"tensor \[a:4 b:8\]: dimensions 'a' and 'b' are both split over "
    r"mesh dimension 'rows'; drop the rule 'a:rows' or 'b:rows'",
  ):
    rules("a:rows;b:rows").tensor_layout(S("a:4 b:8"), MESH)


def test_an_indivisible_size_names_both_sizes_and_the_way_out():
  with pytest.raises(
    mtf.LayoutError,
    match=r"split 'heads' \(6\) over mesh dimension 'cols' \(4\): 6 is not "
    r"divisible by 4 .*choose a multiple of 4 or drop the rule 'heads:cols'",
  ):
    run(lambda mesh: tensor(mesh, "heads:6"), "cols:4", "heads:cols")


def test_an_impossible_layout_of_a_variable_names_the_variable():
  def build(mesh):
    return mtf.get_variable(mesh, "encoder/q", "heads:6 d:2")

  with pytest.raises(mtf.LayoutError, match=r"\(variable encoder/q\)"):
    run(build, "cols:4", "heads:cols")


def test_a_layout_is_refused_before_anything_is_made():
  made = []

  def initializer(shape, dtype):
    made.append(shape)
    raise AssertionError("nothing may be made")

  def build(mesh):
    mtf.get_variable(mesh, "w", "a:4", initializer=initializer)
    return tensor(mesh, "heads:6")

  with pytest.raises(mtf.LayoutError):
    run(build, "cols:4", "heads:cols")
  assert not made


def test_two_dimensions_that_meet_in_a_product_only_are_refused():
  def build(mesh):
    return mtf.einsum([tensor(mesh, "a:4 b:4"), tensor(mesh, "b:4 c:4")], "b:4")

  with pytest.raises(
    mtf.LayoutError, match=r"'a' and 'c' are both split .*\(operation einsum"
  ):
    run(build, "x:2", "a:x;c:x")


def test_an_operation_says_which_dimension_it_cannot_split():
  def build(mesh):
    return mtf.slicewise(lambda x: x, [tensor(mesh, "length:4")])

  with pytest.raises(
    mtf.LayoutError,
    match="slicewise along 'length': it is split over mesh dimension 'model'; "
    "rename the dimension first, or drop the rule 'length:model'",
  ):
    run(build, "model:2", "length:model")


def test_sizes_of_parts():
  dim = D("b", 8)
  assert mtf.tensor_dim_to_mesh_dim_size("b:cols", MESH, dim) == 4
  assert mtf.tensor_dim_to_mesh_dim_size("a:cols", MESH, dim) == 1
  assert mtf.tensor_dim_to_size_per_split("b:cols", "cols:4", dim) == 2
  with pytest.raises(ValueError, match="b:6 does not divide into 4"):
    mtf.tensor_dim_to_size_per_split("b:cols", MESH, D("b", 6))


def test_processors_are_numbered_row_by_row():
  for pnum, at in enumerate(itertools.product(range(2), range(4))):
    assert mtf.pnum_to_processor_coordinates(MESH, pnum) == list(at)
    assert mtf.processor_coordinates_to_pnum(MESH, list(at)) == pnum


def test_groups_of_processors():
  assert mtf.processor_groups(MESH, [0]) == [[0, 4], [1, 5], [2, 6], [3, 7]]
  assert mtf.processor_groups(MESH, [1]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
  assert mtf.processor_groups(MESH, [0, 1]) == [list(range(8))]
  assert mtf.processor_groups(MESH, []) == [[p] for p in range(8)]
  assert [mtf.pnum_to_group(MESH, [0], p) for p in range(8)] == [0, 1, 2, 3] * 2
  three = S("a:2 b:3 c:2")
  assert mtf.processor_groups(three, [1]) == [
    [0, 2, 4],
    [1, 3, 5],
    [6, 8, 10],
    [7, 9, 11],
  ]


def test_a_mesh_without_dimensions_is_one_processor():
  none = mtf.Shape([])
  assert mtf.pnum_to_processor_coordinates(none, 0) == []
  assert mtf.processor_groups(none, []) == [[0]]


def test_a_mesh_dimension_without_processors_is_refused():
  with pytest.raises(mtf.LayoutError, match=r"mesh \[b:0\]: .* 'b' has size 0"):
    mtf.Program("b:0", "b:b")
  with pytest.raises(mtf.LayoutError, match="'b' has size 0"):
    mtf.tensor_dim_to_mesh_dim_size("b:b", "b:0", D("b", 4))


def test_a_number_is_neither_a_mesh_nor_a_layout():
  with pytest.raises(ValueError, match="8 is no shape; write for example"):
    mtf.convert_to_shape(8)
  with pytest.raises(ValueError, match="8 is no layout; write for example"):
    mtf.convert_to_layout_rules(8)
