"""A model in a bucket; a file system in memory stands for one."""

import gin
import pytest
import tensorflow as tf

from mesh_tf2.transformer.run import (
  checkpoints,
  evaluate,
  infer,
  train,
)

from tests.support import small_runs

BUCKET = "ram://bucket/model"


@pytest.fixture(autouse=True)
def tiny_model():
  small_runs.bind()
  yield
  gin.clear_config()
  if tf.io.gfile.exists(BUCKET):
    tf.io.gfile.rmtree(BUCKET)


def test_a_model_in_a_bucket_is_trained_resumed_evaluated_and_applied():
  run = small_runs.make_settings(BUCKET, "bitransformer", steps=2)
  train.train(run)
  resumed = small_runs.make_settings(BUCKET, "bitransformer", steps=3)
  train.train(resumed)
  assert checkpoints.Checkpoints(BUCKET).steps() == [2, 3]

  evaluate.evaluate_checkpoints(resumed)
  results = tf.io.gfile.glob(f"{BUCKET}/validation_eval/*")
  assert any(".tfevents." in path for path in results)

  with tf.io.gfile.GFile(f"{BUCKET}/lines", "w") as file:
    file.write("one two\nthree\n")
  small_runs.bind(
    f"decode_from_file.input_filename = '{BUCKET}/lines'",
    f"decode_from_file.output_filename = '{BUCKET}/out'",
    "Bitransformer.decode.max_decode_length = 3",
  )
  infer.infer_checkpoints(resumed)
  with tf.io.gfile.GFile(f"{BUCKET}/out-3") as file:
    assert len(file.read().splitlines()) == 2
