"""What a decoder reads, and what it may see."""

import numpy as np
import pytest

from mesh_tf2.transformer.model import masks

from tests.support import running, tiny_models

IDS = np.array([[5, -6, 1, 7, 1, 0], [8, 1, 9, 1, 4, 3]])
SEGMENTS = np.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 2, 2]])


def run(fn, *ids, layout=""):
  def build(mesh):
    return fn(*(tiny_models.import_ids(mesh, x) for x in ids))

  return running.run(build, "x:3" if layout else "", layout).value()


@pytest.mark.parametrize("layout", ["", "length:x"])
def test_a_decoder_reads_the_id_before_and_nothing_of_another_sequence(layout):
  got = run(masks.autoregressive_inputs, IDS, SEGMENTS, layout=layout)
  np.testing.assert_array_equal(got, [[0, 5, 6, 0, 7, 0], [0, 8, 1, 9, 0, 4]])


def test_without_packing_a_decoder_reads_the_id_before():
  got = run(masks.autoregressive_inputs, IDS)
  np.testing.assert_array_equal(got, [[0, 5, 6, 1, 7, 1], [0, 8, 1, 9, 1, 4]])


def test_inputs_are_what_an_even_number_of_ends_precedes():
  got = run(masks.delimited_lm_inputs_mask, IDS)
  want = [[1, 1, 1, 0, 0, 1], [1, 1, 0, 0, 1, 1]]
  np.testing.assert_array_equal(got, np.array(want, bool))


def test_inputs_and_the_position_after_them_see_each_other():
  got = run(masks.prefix_priority, IDS)
  np.testing.assert_array_equal(got, [[0, 0, 0, 0, 4, 0], [0, 0, 0, 3, 0, 0]])


def test_zero_is_padding_and_negative_ids_are_tokens():
  got = run(masks.real_tokens, IDS)
  np.testing.assert_array_equal(got, (IDS != 0).astype(np.int32))
