"""What lookups, segments and shifts send and compute: rows, never matrices."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import run, tensor

TOKENS, VOCAB, D = 16, 64, 4
Batch, Vocab, Model = ("batch", TOKENS), ("vocab", VOCAB), ("d", D)


def _embed(mesh, ids, dy):
  w = mtf.get_variable(mesh, "w", [Vocab, Model])
  ids = mtf.import_tf_tensor(mesh, ids, [Batch])
  y = mtf.gather(w, ids, mtf.Dimension(*Vocab))
  dy = mtf.import_tf_tensor(mesh, dy, [Batch, Model])
  return y, mtf.gradients([y], [w], [dy])


INPUTS = [tf.TensorSpec([TOKENS], tf.int32), tf.TensorSpec([TOKENS, D])]

# layout, and the elements that a processor sends of the values found and of
# the gradient of the table.
LAYOUTS = [
  ("", 0, 0),
  ("vocab:x", TOKENS * D, 0),
  ("d:x", 0, 0),
  ("batch:x", 0, VOCAB * D),
  ("vocab:x;batch:y", TOKENS // 2 * D, VOCAB // 4 * D),
  ("vocab:x;d:y", TOKENS * D // 2, 0),
  ("batch:x;d:y", 0, VOCAB * D // 2),
]


@pytest.mark.parametrize(("layout", "found", "gradient"), LAYOUTS)
def test_an_embedding_sends_what_is_found_and_its_gradient_is_local(
  layout, found, gradient
):
  program = mtf.Program("x:4;y:2", layout)
  cost = program.cost(_embed, *INPUTS)
  wanted = [n for n in (found, gradient) if n]
  assert {c.kind for c in cost.collectives} <= {"allreduce"}
  assert sorted(c.elements for c in cost.collectives) == sorted(wanted)


def test_an_embedding_multiplies_nothing_and_its_gradient_adds_rows():
  for layout in ("", "vocab:x", "batch:y"):
    program = mtf.Program("x:4;y:2", layout)

    def embed(mesh, ids):
      w = mtf.get_variable(mesh, "w", [Vocab, Model])
      ids = mtf.import_tf_tensor(mesh, ids, [Batch])
      return mtf.gather(w, ids, mtf.Dimension(*Vocab))

    assert program.cost(embed, INPUTS[0]).flops == 0
    assert program.cost(_embed, *INPUTS).flops == TOKENS * D


@pytest.mark.parametrize("kind", KINDS)
def test_a_lookup_in_a_split_table_is_reduced_when_it_is_needed(kind):
  def build(mesh):
    w = tensor(mesh, "vocab:8 d:4")
    ids = tensor(mesh, "batch:4", [1, 7, 7, -1], np.int32)
    y = mtf.gather(w, ids, mtf.Dimension("vocab", 8))
    z = mtf.gather(w, ids + 1, mtf.Dimension("vocab", 8))
    return y + z

  split = run(build, "x:2", "vocab:x", kind)
  np.testing.assert_array_equal(split.value(), run(build).value())
  sent = [(c.kind, c.elements) for _, c in split.lowering.collectives]
  assert sent == [("allreduce", 4 * 4)]


# layout, and what is sent: of the sum, and of the largest.
SEGMENTS = [
  ("b:x", [4]),
  ("s:x", []),
  ("a:x", []),
  ("a:x;b:y", [2 * 4]),
  ("s:x;b:y", [2]),
]


@pytest.mark.parametrize(("layout", "sent"), SEGMENTS)
@pytest.mark.parametrize("name", ["segment_sum", "segment_max", "segment_min"])
@pytest.mark.parametrize("kind", KINDS)
def test_segments_send_their_results_only(layout, sent, name, kind):
  dims = mtf.Dimension("b", 8), mtf.Dimension("s", 4)

  def build(mesh):
    shape = "a:4 b:8" if "a" in layout else "b:8"
    ids = tensor(mesh, "b:8", [0, 3, 1, 1, 3, 0, 2, 3], np.int32)
    return getattr(mtf, name)(tensor(mesh, shape), ids, *dims)

  split = run(build, "x:2;y:2", layout, kind)
  np.testing.assert_array_equal(split.value(), run(build).value())
  ops = [c for _, c in split.lowering.collectives]
  assert {c.kind for c in ops} <= {"allreduce"}
  assert [c.elements for c in ops] == sent


@pytest.mark.parametrize("kind", KINDS)
def test_a_computed_shift_gathers_its_dimension_only(kind):
  dim = mtf.Dimension("b", 8)

  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    y = mtf.dynamic_shift(x, tensor(mesh, "", 3, np.int32), dim, False)
    return [y, *mtf.gradients([y], [x])]

  for layout, sent in (("a:x", []), ("a:x;b:y", [("allconcat", 2 * 8)] * 2)):
    split = run(build, "x:2;y:2", layout, kind)
    for got, want in zip(split.values, run(build).values, strict=True):
      np.testing.assert_array_equal(got, want)
    ops = [(c.kind, c.elements) for _, c in split.lowering.collectives]
    assert ops == sent
