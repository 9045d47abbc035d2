"""Sequences with the best scores."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import run, tensor

BEAM = mtf.Dimension("beam", 2)


@pytest.mark.parametrize("rules", ["", "batch:x", "many:x", "length:x"])
def test_the_best_sequences_come_with_their_scores_and_flags(rules):
  rng = np.random.default_rng(0)
  ids = rng.integers(0, 9, [2, 4, 6])
  scores = np.array([[0.1, 0.4, 0.3, 0.2], [4.0, 1.0, 2.0, 3.0]])
  flags = rng.integers(0, 2, [2, 4]) > 0

  def build(mesh):
    return mtf.beam_search.compute_topk_scores_and_seq(
      tensor(mesh, "batch:2 many:4 length:6", ids, np.int32),
      tensor(mesh, "batch:2 many:4", scores),
      tensor(mesh, "batch:2 many:4", -scores),
      tensor(mesh, "batch:2 many:4", flags, np.bool_),
      BEAM,
    )

  best = np.array([[1, 2], [0, 3]])
  rows = np.arange(2)[:, None]
  got = run(build, "x:2", rules).values
  np.testing.assert_array_equal(got[0], ids[rows, best])
  np.testing.assert_allclose(got[1], -scores[rows, best])
  np.testing.assert_array_equal(got[2], flags[rows, best])
  np.testing.assert_array_equal(got[3], np.eye(4)[best])


def test_sequences_have_three_dimensions():
  def build(mesh):
    x = mtf.zeros(mesh, "batch:2 many:4")
    ids = mtf.zeros(mesh, "batch:2 many:4", tf.int32)
    return mtf.beam_search.compute_topk_scores_and_seq(ids, x, x, x, BEAM)

  with pytest.raises(mtf.ShapeError, match=r"wants sequences \[batch, beam, l"):
    run(build)
