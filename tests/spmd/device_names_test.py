"""Names of devices in the spellings that people and TensorFlow use."""

import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd import device_names

LOCAL = "/job:localhost/replica:0/task:0"
HERE = ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]


@pytest.mark.parametrize(
  "name",
  [
    "gpu:1",
    "GPU:1",
    "/gpu:1",
    "/GPU:1",
    " GPU:01 ",
    "device:GPU:1",
    "/device:GPU:1",
    "/device:gpu:1",
    f"{LOCAL}/device:GPU:1",
    f"{LOCAL}/gpu:1",
    "/job:localhost/device:GPU:1",
  ],
)
def test_all_usual_spellings_are_one_device(name):
  assert device_names.existing(name, HERE) == "/device:GPU:1"
  assert device_names.short(name) == "GPU:1"


@pytest.mark.parametrize("name", ["gpu", "GPU", "/device:GPU", "/gpu"])
def test_a_kind_without_a_number_is_its_first_device(name):
  assert device_names.existing(name, HERE) == "/device:GPU:0"


def test_a_device_of_another_process_keeps_its_whole_name():
  name = "/job:worker/task:1/device:gpu:0"
  whole = "/job:worker/replica:0/task:1/device:GPU:0"
  assert device_names.existing(name, HERE) == whole
  assert device_names.short(name) == whole


def test_no_name_leaves_the_choice_to_tensorflow():
  assert device_names.existing("", HERE) == ""


@pytest.mark.parametrize(
  "name", ["gpu:2", "tpu:0", "first", "gpu0", "0", "gpu:", "gpu:-1", "/job:a"]
)
def test_a_device_that_is_not_there_is_named_with_those_that_are(name):
  with pytest.raises(
    mtf.LayoutError,
    match=f"there is no device '{name}'; this process has CPU:0, GPU:0, GPU:1",
  ):
    device_names.existing(name, HERE)


def test_tensorflow_reads_a_normalized_name_as_it_was_meant():
  for name in ("/job:worker/task:1/gpu:3", "cpu:2"):
    ours = tf.DeviceSpec.from_string(device_names.normalized(name))
    given = tf.DeviceSpec.from_string(name)
    assert (ours.device_type, ours.device_index) == (
      given.device_type,
      given.device_index,
    )
    assert (ours.job, ours.task) == (given.job, given.task)


@pytest.mark.parametrize(
  "name", ["cpu:1", "CPU:1", "/cpu:1", "/device:CPU:1", f"{LOCAL}/device:CPU:1"]
)
def test_a_program_takes_devices_in_any_spelling(name):
  program = mtf.Program("x:2", "a:x", devices=["cpu:0", name])
  assert program.mesh_impl.devices == ["/device:CPU:0", "/device:CPU:1"]

  @program.function
  def ones(mesh):
    w = mtf.get_variable(mesh, "w", "a:4", initializer=1)
    return mtf.reduce_sum(w)

  assert ones().numpy() == 4
  (held,) = program.store.values()
  places = [v.device.rpartition("/")[2] for v in held.tf_variables]
  assert places == ["device:CPU:0", "device:CPU:1"]
