"""Masks against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running

B = mtf.Dimension("batch", 2)
L = mtf.Dimension("length", 4)
IDS = np.array([[3, 0, 5, 0], [0, 0, 0, 2]], np.int32)
LAYOUTS = [("", ""), ("a:2;b:2", "batch:a;length:b")]


def run(build, mesh="", layout=""):
  return running.run(build, mesh, layout).value()


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_padding_is_hidden(mesh, layout):
  def build(mesh):
    ids = running.tensor(mesh, [B, L], IDS, np.int32)
    mask = mtf.layers.attention_mask_ignore_padding(ids)
    assert mask.shape == mtf.convert_to_shape("batch:2 memory_length:4")
    return mask

  np.testing.assert_array_equal(
    run(build, mesh, layout), np.where(IDS == 0, np.float32(-1e9), 0)
  )


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_the_future_is_hidden(mesh, layout):
  def build(mesh):
    position = mtf.mtf_range(mesh, L, tf.int32)
    mask = mtf.layers.attention_mask_autoregressive(position)
    assert mask.shape == mtf.convert_to_shape("length:4 memory_length:4")
    return mask

  wanted = np.triu(np.full([4, 4], -1e9, np.float32), 1)
  np.testing.assert_array_equal(run(build, mesh, layout), wanted)


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_other_segments_are_hidden(mesh, layout):
  def build(mesh):
    segment = running.tensor(mesh, [B, L], IDS, np.int32)
    mask = mtf.layers.attention_mask_same_segment(segment)
    assert mask.shape == mtf.convert_to_shape(
      "batch:2 length:4 memory_length:4"
    )
    return mask

  same = IDS[:, :, None] == IDS[:, None]
  wanted = np.where(same, np.float32(0), np.float32(-1e9))
  np.testing.assert_array_equal(run(build, mesh, layout), wanted)


def test_segments_of_a_memory_may_be_given():
  memory = mtf.Dimension("length", 3)

  def build(mesh):
    query = running.tensor(mesh, [L], [1, 1, 2, 3], np.int32)
    keys = running.tensor(mesh, [memory], [1, 2, 2], np.int32)
    return mtf.layers.attention_mask_same_segment(query, keys, tf.bfloat16)

  got = running.run(build)
  mask = np.array(got.value()).astype(np.float32) < -9e8
  wanted = [[0, 1, 1], [0, 1, 1], [1, 0, 0], [1, 1, 1]]
  np.testing.assert_array_equal(mask, wanted)


def test_a_mask_in_float16_is_no_infinity_and_no_nan():
  def build(mesh):
    ids = running.tensor(mesh, [B, L], IDS, np.int32)
    return mtf.layers.attention_mask_ignore_padding(ids, tf.float16)

  np.testing.assert_array_equal(
    run(build), np.where(IDS == 0, np.float16(-65504), 0)
  )


@pytest.mark.parametrize("dtype", [tf.int32, tf.float32])
def test_the_block_before_is_visible_and_the_future_within_is_not(dtype):
  def build(mesh):
    memory = mtf.Dimension("memory", 4)
    mask = mtf.layers.attention_bias_local_block(mesh, L, memory, dtype)
    assert mask.shape == mtf.convert_to_shape("length:4 memory:8")
    assert mask.dtype == tf.float32
    return mask

  own = np.triu(np.full([4, 4], -1e9, np.float32), 1)
  wanted = np.concatenate([np.zeros([4, 4]), own], axis=1)
  np.testing.assert_array_equal(run(build), wanted)


def test_in_two_dimensions_the_blocks_before_are_visible():
  h, w = mtf.Dimension("h", 2), mtf.Dimension("w", 3)

  def build(mesh):
    rows, columns = mtf.Dimension("mh", 2), mtf.Dimension("mw", 3)
    mask = mtf.layers.attention_bias_local_2d_block(mesh, h, w, rows, columns)
    assert mask.shape == mtf.convert_to_shape("h:2 w:3 mh:4 mw:6")
    return mask

  got = run(build)
  for i, j, k, m in np.ndindex(2, 3, 4, 6):
    own = k >= 2 and m >= 3
    hidden = own and 3 * (k - 2) + (m - 3) > 3 * i + j
    assert got[i, j, k, m] == (np.float32(-1e9) if hidden else 0)
