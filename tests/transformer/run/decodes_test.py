"""Cleaning up what a decoder made."""

import numpy as np

from mesh_tf2.transformer.run import decodes


def test_what_follows_the_first_end_becomes_padding():
  ids = [[5, 1, 7, 1], [1, 2, 3, 4], [6, 7, 8, 9]]
  got = decodes.clean_decodes(np.array(ids))
  np.testing.assert_array_equal(got, [[5, 1, 0, 0], [1, 0, 0, 0], [6, 7, 8, 9]])


def test_ids_and_axis_can_be_chosen():
  ids = np.array([[4, 2], [9, 3], [5, 9]])
  got = decodes.clean_decodes(ids, eos_id=9, pad_id=-1, length_axis=0)
  np.testing.assert_array_equal(got, [[4, 2], [9, 3], [-1, 9]])
