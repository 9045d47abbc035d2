"""What is said of a mistake, and which errors keep their stack trace."""

import gin
import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.data.text_pair import split_at_tab
from mesh_tf2.transformer.run import batch_sizes, mesh_shapes, mistakes


@pytest.fixture(autouse=True)
def clean_gin():
  gin.clear_config()
  yield
  gin.clear_config()


def told(call):
  with pytest.raises(Exception) as error:
    call()
  return mistakes.mistake(error.value)


def test_what_our_checks_say_is_shown_without_the_names_of_gin():
  text = told(lambda: mesh_shapes.tpu_mesh_shape("big", 1))
  assert text.startswith("tpu_mesh_shape.tpu_topology: 'big' is neither")
  assert "In call to" not in text


def test_a_layout_that_does_not_fit_is_a_mistake():
  text = told(
    lambda: batch_sizes.compute_batch_size({}, "batch:4", "batch:batch", 3)
  )
  assert "choose a multiple of 4" in text


def test_a_missing_file_is_named(tmp_path):
  text = told(lambda: (tmp_path / "absent.txt").read_text())
  assert text == f"{tmp_path / 'absent.txt'}: No such file or directory"


def test_a_parameter_that_nothing_sets_is_named_with_a_way_out():
  assert told(mesh_shapes.tpu_mesh_shape) == (
    "no gin file or --gin_param sets tpu_mesh_shape.tpu_topology, "
    "tpu_mesh_shape.model_parallelism; to choose a mesh, name one of the files "
    "in layouts/, for example --gin_file=layouts/single.gin"
  )


@pytest.mark.parametrize(
  "call",
  [
    lambda: np.zeros(3).reshape(2, 2),
    lambda: tf.concat([tf.zeros([2]), tf.zeros([2, 2])], 0),
    lambda: {}["key"],
    lambda: mtf.no_such_name,
  ],
)
def test_a_fault_of_the_program_keeps_its_stack_trace(call):
  assert told(call) is None


def test_a_line_that_reading_refuses_is_shown_without_a_stack_trace():
  lines = tf.data.Dataset.from_tensors("no tab here").map(split_at_tab)
  text = told(lambda: next(iter(lines)))
  assert text == (
    "a line must be `inputs TAB targets`, with one tab; got no tab here"
  )


ABORTED = """Graph execution error:

Detected at node CollectiveReduceV2_19 defined at (most recent call last):
Collective ops is aborted by: Socket closed
Additional GRPC error information from remote target /job:worker/replica:0/task:1 while calling /tensorflow.WorkerService/RecvBuf:
:UNKNOWN:Error received from peer  {grpc_status:14, grpc_message:"Socket closed"}
The error could be from a previous operation. Restart your program to reset.
"""  # noqa: E501  as TensorFlow says it


def test_a_process_that_is_gone_is_named_and_so_is_what_to_do():
  error = tf.errors.UnavailableError(None, None, ABORTED)
  assert mistakes.mistake(error) == (
    "worker 1 does not answer any more (Socket closed), so this process stops, "
    "too; start the same command again for all of them: it goes on from the "
    "last checkpoint"
  )


def test_an_error_of_tensorflow_about_no_process_keeps_its_stack_trace():
  error = tf.errors.InternalError(None, None, "an assertion of a kernel failed")
  assert mistakes.mistake(error) is None
