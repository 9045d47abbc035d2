"""Names, sizes and shapes."""

import numpy as np
import pytest

import mesh_tf2 as mtf

D, S = mtf.Dimension, mtf.convert_to_shape


def test_a_dimension_is_its_name_and_its_size():
  assert D("a", 4) == D("a", 4)
  assert D("a", 4) != D("a", 8)
  assert len({D("a", 4), D("a", 4), D("b", 4)}) == 2


@pytest.mark.parametrize("size", [4, np.int32(4), np.int64(4)])
def test_a_size_may_be_any_whole_number(size):
  dim = mtf.convert_to_dimension(("a", size))
  assert dim == D("a", 4)
  assert type(dim.size) is int


@pytest.mark.parametrize(
  ("pair", "message"),
  [
    (("a", 1.5), "the size of dimension a is an integer, got 1.5"),
    ((4, "a"), "the name of a dimension is a string, got 4"),
    (("a",), "a dimension is a pair"),
    ("a:4", "a dimension is a pair"),
  ],
)
def test_what_is_no_dimension_is_named(pair, message):
  with pytest.raises(ValueError, match=message):
    mtf.convert_to_dimension(pair)


def test_no_dimension_stays_none():
  assert mtf.convert_to_dimension(None) is None
  assert mtf.convert_to_shape(None) is None


@pytest.mark.parametrize("text", ["a:4 b:8", "a:4,b:8", "a:4;b:8", "a:4.b:8"])
def test_a_shape_is_read_from_a_string(text):
  assert S(text) == mtf.Shape([D("a", 4), D("b", 8)])


@pytest.mark.parametrize("text", ["a", "a:", ":4", "a:4:5", "a:b", "a:-1"])
def test_a_malformed_string_is_an_error_that_shows_it(text):
  with pytest.raises(ValueError, match=text.partition(":")[0] or ":4"):
    S(text)


def test_a_shape_can_be_hashed_and_compared_with_anything():
  assert {S("a:4 b:8"): 1}[S("a:4 b:8")] == 1
  assert S("a:4 b:8") != S("b:8 a:4")
  assert S("a:4") != None  # noqa: E711
  assert S("a:4") != [D("a", 4)]


def test_a_name_that_occurs_twice_is_an_error_whatever_the_sizes():
  for text in ("a:4 a:4", "a:4 b:2 a:8"):
    with pytest.raises(ValueError, match="dimension name 'a' occurs twice"):
      S(text)


def test_a_negative_size_is_an_error():
  with pytest.raises(ValueError, match="dimension a:-1 has a negative size"):
    mtf.Shape([("a", -1)])


def test_properties_of_a_shape():
  shape = S("a:4 b:8 c:2")
  assert shape.dims == [D("a", 4), D("b", 8), D("c", 2)]
  assert (shape.ndims, shape.size, len(shape)) == (3, 64, 3)
  assert shape.to_integer_list == [4, 8, 2]
  assert shape.dimension_names == ["a", "b", "c"]
  assert shape.to_string == "Shape[a=4, b=8, c=2]"
  assert shape.cumprod == [1, 4, 32]
  assert S("").size == 1


def test_cumprod_to_tensor_axis_takes_the_last_one():
  shape = S("a:4 b:1 c:2")
  assert shape.cumprod_to_tensor_axis(4) == 2
  assert shape.cumprod_to_tensor_axis(1) == 0
  assert shape.cumprod_to_tensor_axis(3) is None


def test_dims_is_a_list_of_its_own():
  shape = S("a:4")
  shape.dims.append(D("b", 2))
  assert shape == S("a:4")


def test_renaming_and_resizing():
  shape = S("a:4 b:8")
  assert shape.rename_dimension("a", "c") == S("c:4 b:8")
  assert shape.resize_dimension("b", 2) == S("a:4 b:2")
  assert shape.get_dim_by_name("b") == D("b", 8)


def test_a_name_that_is_absent_is_named_with_the_nearest_one():
  message = r"has no dimension called 'lenght' \(did you mean \"length\"\?\)"
  for method in ("get_dim_by_name", "rename_dimension", "resize_dimension"):
    args = ["lenght"] if method == "get_dim_by_name" else ["lenght", "x"]
    with pytest.raises(ValueError, match=message):
      getattr(S("batch:2 length:4"), method)(*args)


def test_adding_to_a_shape():
  a = S("a:4")
  for other in (S("b:8"), D("b", 8), ("b", 8), [D("b", 8)], [("b", 8)]):
    assert a + other == S("a:4 b:8")
  assert [("b", 8)] + a == S("b:8 a:4")
  with pytest.raises(ValueError, match="occurs twice"):
    a + D("a", 2)


def test_taking_away_from_a_shape():
  shape = S("a:4 b:8 c:2")
  assert shape - None == shape
  assert shape - D("b", 8) == S("a:4 c:2")
  assert shape - S("b:8 z:1") == S("a:4 c:2")
  assert shape - [D("a", 4), D("c", 2)] == S("b:8")
  with pytest.raises(ValueError, match="has no dimension b:4 to remove"):
    shape - D("b", 4)


def test_indexing_gives_dimensions_and_lists():
  shape = S("a:4 b:8 c:2")
  assert shape[1] == D("b", 8)
  assert shape[1:] == [D("b", 8), D("c", 2)]
  assert D("b", 8) in shape
  assert D("b", 4) not in shape


def test_replace_dimensions_of_a_shape():
  shape = S("a:4 b:8 c:2")
  replace = mtf.replace_dimensions
  assert replace(shape, D("b", 8), D("d", 8)) == S("a:4 d:8 c:2")
  assert replace(shape, shape[:2], D("d", 32)) == S("d:32 c:2")
  assert replace(shape, D("b", 8), [("d", 2), ("e", 4)]) == S("a:4 d:2 e:4 c:2")
  with pytest.raises(ValueError, match="do not follow each other"):
    replace(shape, [D("a", 4), D("c", 2)], D("d", 8))
  with pytest.raises(ValueError, match="needs old and new dimensions"):
    replace(shape, [], D("d", 8))


def test_combined_dimension():
  dims = [D("a", 4), D("b", 8)]
  assert mtf.combined_dimension(dims) == D("a", 32)
  assert mtf.combined_dimension(dims, "c") == D("c", 32)
  with pytest.raises(ValueError, match="at least one dimension"):
    mtf.combined_dimension([])


def test_small_helpers():
  assert mtf.is_subsequence([1, 3], [1, 2, 3])
  assert not mtf.is_subsequence([3, 1], [1, 2, 3])
  assert mtf.list_product([2, 3, 4]) == 24
  assert mtf.list_product([]) == 1
  assert mtf.anonymous_shape(S("a:4 b:8")) == S("_anonymous_0:4 _anonymous_1:8")
  mtf.verify_no_new_dims([S("a:4"), S("b:8")], S("b:8 a:4"))
  with pytest.raises(ValueError, match=r"output dimension \[c:2\]"):
    mtf.verify_no_new_dims([S("a:4")], S("a:4 c:2"))
