"""Lookups, top-k, sampling: the edges, and what they say."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

A, B, K = (mtf.Dimension(n, s) for n, s in (("a", 4), ("b", 8), ("k", 4)))


def test_an_index_outside_of_the_table_finds_zeros():
  indices = [-1, 0, 7, 8, 2**31 - 1, -(2**31)]
  for layout in ("", "b:x"):
    for kind in KINDS:

      def build(mesh):
        table = tensor(mesh, "b:8", np.arange(1, 9))
        return mtf.gather(table, tensor(mesh, "n:6", indices, np.int32), B)

      got = run(build, "x:2", layout, kind).value()
      assert got.tolist() == [0, 1, 8, 0, 0, 0]


def test_an_index_may_be_of_any_integer_dtype():
  for dtype in (np.int64, np.int32, np.uint8, np.int16):

    def build(mesh, dtype=dtype):
      table = tensor(mesh, "b:8")
      return mtf.gather(table, tensor(mesh, "n:2", [3, 9], dtype), B)

    assert run(build, "x:2", "b:x").value().tolist() == [3, 0], dtype


def test_a_large_index_does_not_wrap_around():
  def build(mesh):
    big = tensor(mesh, "n:1", [2**32 + 3], np.int64)
    return mtf.gather(tensor(mesh, "b:8"), big, B)

  assert run(build, "x:2", "b:x").value().tolist() == [0]


def test_what_is_not_a_number_elsewhere_in_the_table_leaves_no_trace():
  table = np.full([8, 2], np.nan, np.float32)
  table[3] = 1

  def build(mesh):
    w = tensor(mesh, "b:8 c:2", table)
    y = mtf.gather(w, tensor(mesh, "n:2", [3, -1], np.int32), B)
    return [y, *mtf.gradients([y], [w])]

  for layout in ("", "b:x", "n:x"):
    for kind in KINDS:
      y, dw = run(build, "x:2", layout, kind).values
      assert y.tolist() == [[1, 1], [0, 0]]
      assert dw.sum() == 2
      assert dw[3].tolist() == [1, 1]


def test_the_gradient_of_a_narrow_table_adds_up_in_float32():
  def build(mesh):
    w = mtf.zeros(mesh, "b:8", "bfloat16")
    y = mtf.gather(w, mtf.zeros(mesh, "n:512", np.int32), B)
    return mtf.gradients([y], [w])

  assert run(build).value()[0] == 512  # adding ones in bfloat16 ends at 256


def test_mistakes_of_a_lookup_are_named():
  mesh = new_mesh()
  table, ids = tensor(mesh, "b:8 c:2"), tensor(mesh, "n:2", dtype=np.int32)
  with pytest.raises(ValueError, match="gather takes integer indices"):
    mtf.gather(table, tensor(mesh, "n:2"), B)
  with pytest.raises(ValueError, match=r"\[b:8 c:2\] has no dimension a:4"):
    mtf.gather(table, ids, A)
  with pytest.raises(
    ValueError, match=r"the indices .* have a dimension of that name"
  ):
    mtf.gather(table, tensor(mesh, "b:8", dtype=np.int32), B)
  with pytest.raises(ValueError, match="'c' occurs twice"):
    mtf.gather(table, tensor(mesh, "c:3", dtype=np.int32), B)
  with pytest.raises(ValueError, match=r"output_shape=\[n:2\] lacks \[c:2\]"):
    mtf.gather(table, ids, B, "n:2")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_indices_may_share_processors(kind):
  indices = [3, 0, 7, -1, 4, 4, 8, 1]

  def build(mesh):
    table = tensor(mesh, "b:8 c:2")
    ids = tensor(mesh, "n:8", indices, np.int32)
    x = tensor(mesh, "n:8 c:2")
    y = mtf.gather(table, ids, B)
    small = mtf.segment_min(x, ids, mtf.Dimension("n", 8), B)
    return [y, mtf.scatter_add(x, ids, B, "b:8 c:2"), small]

  want = run(build).values
  for layout in ("b:x;n:x", "b:y;n:y;c:x"):
    split = run(build, "x:2;y:4", layout, kind)
    for got, wanted in zip(split.values, want, strict=True):
      np.testing.assert_array_equal(got, wanted)
    split.check_variation()

  split = run(build, "x:4", "b:x;n:x", kind)
  assert len(split.values) == 3
  sent = [(c.kind, c.elements) for _, c in split.lowering.collectives]
  indices_and_rows = [("allconcat", 8 * 2), ("allconcat", 8)]
  found = [("allconcat", 8), ("reduce_scatter", 2 * 2)]
  assert sent == [*found, *indices_and_rows, *indices_and_rows]


def test_equal_elements_come_in_order_across_processors():
  values = [[5, 1, 7, 3, 9, 2, 9, 0], [4, 4, 4, 4, 4, 4, 4, 4]]

  def build(mesh):
    x = tensor(mesh, "r:2 b:8", values)
    return [*mtf.top_k(x, B, K), *mtf.top_1(x, B), mtf.argmax(x, B)]

  for mesh, layout in (("", ""), ("x:2", "b:x"), ("x:8", "b:x")):
    for kind in KINDS:
      top, where, best, first, again = run(build, mesh, layout, kind).values
      assert top.tolist() == [[9, 9, 7, 5], [4, 4, 4, 4]]
      assert where.tolist() == [[4, 6, 2, 0], [0, 1, 2, 3]]
      assert best.tolist() == [9, 4]
      assert first.tolist() == again.tolist() == [4, 0]


def test_top_k_is_exact_for_very_small_numbers_and_for_integers():
  for values, dtype in (
    ([-3e9, -1e9, -2e9, -4e9], np.float32),
    ([-(2**31), -(2**31) + 1, 2**31 - 1, 0], np.int32),
  ):

    def build(mesh, values=values, dtype=dtype):
      x = tensor(mesh, "a:4", values, dtype)
      return mtf.top_k(x, A, mtf.Dimension("k", 3))

    top, where = run(build, "x:2", "a:x").values
    order = np.argsort(-np.array(values, np.float64))[:3]
    assert where.tolist() == order.tolist()
    assert top.tolist() == np.array(values, dtype)[order].tolist()


def test_the_golden_top_k_of_the_original():
  def build(mesh):
    x = tensor(mesh, "b:8", [5, 1, 7, 3, 9, 2, 8, 0])
    return mtf.top_k(x, B, mtf.Dimension("k", 5))

  top, where = run(build, "x:2", "b:x").values
  assert top.tolist() == [9, 8, 7, 5, 3]
  assert where.tolist() == [4, 6, 2, 0, 3]


def test_k_may_be_split_too():
  def build(mesh):
    return mtf.top_k(tensor(mesh, "b:8"), B, K)

  for layout in ("k:x", "b:x;k:x", "b:x;k:y"):
    for kind in KINDS:
      top, where = run(build, "x:2;y:2", layout, kind).values
      assert top.tolist() == where.tolist() == [7, 6, 5, 4]


def test_k_larger_than_the_dimension_names_both():
  x = tensor(new_mesh(), "a:4")
  with pytest.raises(ValueError, match=r"k is 5 \(k:5\), .* the size of a:4"):
    mtf.top_k(x, A, mtf.Dimension("k", 5))


def test_an_element_beyond_the_last_one_is_named():
  x = tensor(new_mesh(), "a:4")
  for n in (4, -1):
    with pytest.raises(ValueError, match=f"n is {n}, .* a has 4 elements"):
      mtf.nth_largest_element(x, n, A)
    with pytest.raises(ValueError, match=rf"_smallest_.* n is {n}, .* 0 and 3"):
      mtf.nth_smallest_element(x, n, A)


def test_the_gradient_of_top_k_goes_to_the_chosen_elements():
  def build(mesh):
    x = tensor(mesh, "b:8", [5, 1, 7, 3, 9, 2, 8, 0])
    top, _ = mtf.top_k(x, B, mtf.Dimension("k", 2))
    return mtf.gradients([top], [x], [tensor(mesh, "k:2", [10, 20])])

  for layout in ("", "b:x"):
    got = run(build, "x:2", layout).value()
    assert got.tolist() == [0, 0, 0, 0, 10, 0, 20, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_follow_the_softmax_of_the_logits(temperature):
  logits = np.log([0.5, 0.25, 0.15, 0.1]).astype(np.float32)
  count = 1 << 15

  def build(mesh):
    x = mtf.broadcast(tensor(mesh, "a:4", logits), [("n", count), A])
    return mtf.sample_with_temperature(x, A, temperature)

  chosen = run(build).value()
  got = np.bincount(chosen, minlength=4) / count
  want = np.exp(logits / temperature)
  np.testing.assert_allclose(got, want / want.sum(), atol=5 / np.sqrt(count))
  pairs = np.corrcoef(chosen[:-1], chosen[1:])[0, 1]
  assert abs(pairs) < 5 / np.sqrt(count)


def test_an_impossible_token_is_never_sampled():
  def build(mesh):
    x = mtf.broadcast(tensor(mesh, "a:4", [0, -1e9, 0, -1e9]), "n:512 a:4")
    return mtf.sample_with_temperature(x, A, 1.0)

  assert set(run(build, "x:2", "a:x").value()) == {0, 2}
