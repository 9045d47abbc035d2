"""Collectives on lists of tensors, against NumPy."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

placement = mtf.placement_mesh_impl
NUMPY = {"SUM": np.add, "MAX": np.maximum, "MIN": np.minimum}


def arrays(n, shape, dtype=np.float32):
  rng = np.random.RandomState(n)
  return [rng.randint(-50, 50, shape).astype(dtype) for _ in range(n)]


def on(n):
  return [""] * n


@pytest.mark.parametrize("reduction", NUMPY)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize(
  "allreduce",
  [placement.allreduce_ring, placement.allreduce_ring_single_shard],
)
@pytest.mark.parametrize("shape", [[3, 2], [], [120, 16]])
def test_every_device_gets_the_reduction(allreduce, n, reduction, shape):
  xs = arrays(n, shape)
  want = functools.reduce(NUMPY[reduction], xs)
  got = allreduce([tf.constant(x) for x in xs], on(n), reduction)
  assert len(got) == n
  for y in got:
    np.testing.assert_array_equal(y, want)


def test_large_tensors_go_around_in_shards():
  def adds(size):
    n = 4

    @tf.function
    def reduce(*xs):
      return placement.allreduce_ring(xs, on(n))

    graph = reduce.get_concrete_function(*[tf.zeros([size])] * n).graph
    return [
      op.outputs[0].shape.num_elements()
      for op in graph.get_operations()
      if op.type == "AddV2"
    ]

  assert adds(2048) == [2048 // 4] * 3 * 4
  assert adds(512) == [512] * 3
  assert adds(2049) == [2049] * 3


def test_tensors_of_unknown_size_are_reduced_whole():
  @tf.function(input_signature=[tf.TensorSpec([None])] * 3)
  def reduce(*xs):
    return placement.allreduce_ring(xs, on(3))

  for y in reduce(*(tf.range(2000.0) for _ in range(3))):
    np.testing.assert_array_equal(y, 3 * np.arange(2000))


def test_integers_and_narrow_numbers_are_reduced_too():
  for dtype in (tf.int32, tf.bfloat16):
    xs = [tf.cast(tf.ones([2, 3]), dtype)] * 4
    got = placement.allreduce_ring(xs, on(4))
    assert {y.dtype for y in got} == {dtype}
    np.testing.assert_array_equal(tf.cast(got[3], tf.float32), 4.0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_every_device_gets_all_joined(n, axis):
  xs = arrays(n, [2, 3])
  for y in placement.allconcat_ring([tf.constant(x) for x in xs], on(n), axis):
    np.testing.assert_array_equal(y, np.concatenate(xs, axis))


@pytest.mark.parametrize(("split", "concat"), [(0, 1), (1, 0), (0, 0), (2, 1)])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize(
  "alltoall", [placement.alltoall_ring, placement.alltoall_pointtwise]
)
def test_device_i_gets_part_i_of_all(alltoall, n, split, concat):
  xs = arrays(n, [12, 12, 12])
  got = alltoall([tf.constant(x) for x in xs], on(n), split, concat)
  parts = [np.split(x, n, split) for x in xs]
  for i, y in enumerate(got):
    want = np.concatenate([own[i] for own in parts], concat)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize(
  "alltoall", [placement.alltoall_ring, placement.alltoall_pointtwise]
)
def test_an_axis_without_elements_is_exchanged_like_any_other(alltoall):
  got = alltoall([tf.zeros([0, 2])] * 4, on(4), 0, 1)
  assert [y.shape.as_list() for y in got] == [[0, 8]] * 4


def test_what_goes_around_is_made_on_its_devices():
  devices = [f"CPU:{i}" for i in range(4)]

  @tf.function
  def exchange(*xs):
    return placement.alltoall_ring(xs, devices, 0, 0)

  graph = exchange.get_concrete_function(*[tf.zeros([4])] * 4).graph
  where = {
    op.device[-5:] for op in graph.get_operations() if op.type == "ConcatV2"
  }
  assert where == set(devices)


def test_misuse_is_told():
  xs = [tf.zeros([4])] * 3
  with pytest.raises(ValueError, match="3 tensors on 2 devices"):
    placement.allreduce_ring(xs, on(2))
  with pytest.raises(ValueError, match="0 tensors on 0 devices"):
    placement.allconcat_ring([], [], 0)
  with pytest.raises(ValueError, match="does not divide into 3 equal parts"):
    placement.alltoall_ring(xs, on(3), 0, 0)
  with pytest.raises(ValueError, match="unknown reduction 'MEAN'; take one of"):
    placement.allreduce_ring(xs, on(3), "MEAN")
