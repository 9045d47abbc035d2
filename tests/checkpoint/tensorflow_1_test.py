"""Checkpoints that TensorFlow 1's Saver has written are read by name."""

import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2.checkpoint import CheckpointDirectory, Reader, step_of

from tests.checkpoint import slicing

v1 = tf.compat.v1
KERNEL = "encoder/block_000/layer_001/DenseReluDense/wi/kernel"
TABLE = "shared/embedding"


def write_by_saver(folder, sharded):
  rng = np.random.default_rng(0)
  values = {
    KERNEL: rng.normal(size=(4, 6)).astype(np.float32),
    f"{KERNEL}_slot_vr": rng.normal(size=4).astype(np.float32),
    TABLE: rng.normal(size=(7, 4)).astype(np.float32),
    "global_step": np.int64(12),
  }
  with tf.Graph().as_default(), v1.Session() as session:
    for name, value in values.items():
      v1.get_variable(
        name,
        initializer=tf.constant(value),
        partitioner=v1.fixed_size_partitioner(3) if name == TABLE else None,
      )
    half = v1.get_variable("half", [2, 2], tf.bfloat16, v1.ones_initializer())
    session.run(v1.global_variables_initializer())
    saver = v1.train.Saver(sharded=sharded)
    saver.save(session, f"{folder}/model.ckpt", global_step=12)
    del half
  return values


@pytest.mark.parametrize("sharded", [False, True])
def test_a_checkpoint_of_tensorflow_1_is_read_by_name(tmp_path, sharded):
  values = write_by_saver(tmp_path, sharded)
  prefix = CheckpointDirectory(tmp_path).latest()
  assert prefix == f"{tmp_path}/model.ckpt-12"
  assert step_of(prefix) == 12
  reader = Reader(prefix)
  reader.verify()
  inventory = reader.inventory()
  assert inventory.pop("half") == ((2, 2), tf.bfloat16)
  assert inventory == {
    n: (v.shape, tf.dtypes.as_dtype(v.dtype)) for n, v in values.items()
  }
  for name, parts in [(KERNEL, (2, 3)), (TABLE, (7, 2)), (TABLE, (2, 1))]:
    got = slicing.read_in_slices(reader, name, parts)
    np.testing.assert_array_equal(got, values[name])
  half = reader.read("half", (2, 2), (0, 1), (2, 1), tf.bfloat16)
  np.testing.assert_array_equal(half, np.ones((2, 1)))
