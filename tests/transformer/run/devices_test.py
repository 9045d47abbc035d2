"""What a program runs on, for machines that are made up."""

import json

import pytest

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import devices
from mesh_tf2.transformer.run.devices import Kind, Wanted

CPU = ["/device:CPU:0"]
ONE_GPU = [*CPU, "/device:GPU:0"]
FOUR_GPUS = [*CPU, *(f"/device:GPU:{i}" for i in range(4))]
EIGHT_CPUS = [f"/device:CPU:{i}" for i in range(8)]


def choose(mesh, here, **wishes):
  return devices.choose(Wanted(mtf.convert_to_shape(mesh), here, **wishes))


def tf_config(workers, index=0, job="worker", **more):
  addresses = [f"host{i}:2222" for i in range(workers)]
  return json.dumps(
    {
      "cluster": {"worker": addresses, **more},
      "task": {"type": job, "index": index},
    }
  )


# Without a wish.


def test_a_mesh_of_as_many_processors_as_gpus_uses_them_all():
  runs_on = choose("batch:2;model:2", FOUR_GPUS)
  assert runs_on.kind is Kind.MIRRORED
  assert runs_on.devices == tuple(FOUR_GPUS[1:])
  assert runs_on.line == (
    "runs on GPU:0, GPU:1, GPU:2, GPU:3: one program for all"
  )


@pytest.mark.parametrize("mesh", ["batch:8", "batch:2", ""])
def test_another_mesh_is_virtual_on_one_gpu_and_the_line_says_so(mesh):
  runs_on = choose(mesh, FOUR_GPUS)
  assert (runs_on.kind, runs_on.devices) == (Kind.VIRTUAL, ("/device:GPU:0",))
  assert runs_on.line.startswith("runs on GPU:0")
  assert "has 4 GPUs: a mesh of that size would use them all" in runs_on.line


@pytest.mark.parametrize(
  ("mesh", "here", "line"),
  [
    ("", CPU, "runs on CPU:0"),
    ("", ONE_GPU, "runs on GPU:0"),
    ("batch:2;model:4", CPU, "runs on CPU:0: 8 processors side by side"),
    ("batch:8", EIGHT_CPUS, "runs on CPU:0: 8 processors side by side"),
    ("batch:2", ONE_GPU, "runs on GPU:0: 2 processors side by side"),
  ],
)
def test_a_mesh_on_one_device_is_virtual(mesh, here, line):
  runs_on = choose(mesh, here)
  assert (runs_on.kind, runs_on.line) == (Kind.VIRTUAL, line)


def test_a_tpu_that_nobody_asked_for_is_mentioned():
  runs_on = choose("", [*CPU, "/device:TPU:0", "/device:TPU:1"])
  assert runs_on.kind is Kind.VIRTUAL
  assert "this machine has a TPU: --tpu=local would use it" in runs_on.line


# Devices by name.


@pytest.mark.parametrize("name", ["gpu:3", "GPU:3", "/gpu:3", "/device:GPU:3"])
def test_devices_by_name_in_any_spelling_are_those_used(name):
  runs_on = choose("a:2", FOUR_GPUS, mesh_devices=["gpu:0", name])
  assert runs_on.kind is Kind.PLACEMENT
  assert runs_on.devices == ("/device:GPU:0", "/device:GPU:3")
  assert runs_on.line == "runs on GPU:0, GPU:3: operations placed one by one"


def test_devices_by_name_may_be_mirrored():
  runs_on = choose(
    "a:2", FOUR_GPUS, mesh_devices=["gpu:2", "gpu:1"], strategy="mirrored"
  )
  assert runs_on.kind is Kind.MIRRORED
  assert runs_on.devices == ("/device:GPU:2", "/device:GPU:1")


@pytest.mark.parametrize("strategy", [None, "placement", "mirrored"])
def test_a_device_that_is_missing_is_an_error_and_never_another_one(strategy):
  with pytest.raises(
    mtf.LayoutError, match="no device 'gpu:0'; this process has CPU:0"
  ):
    choose("", CPU, mesh_devices=["gpu:0"], strategy=strategy)


def test_a_wrong_number_of_devices_is_told_with_both_numbers():
  with pytest.raises(
    mtf.LayoutError,
    match=r"run.mesh_shape \[a:4\] has 4 processors, run.mesh_devices has 2",
  ):
    choose("a:4", FOUR_GPUS, mesh_devices=["gpu:0", "gpu:1"])


# A strategy by name.


@pytest.mark.parametrize(
  ("strategy", "here", "expected"),
  [
    ("mirrored", EIGHT_CPUS, EIGHT_CPUS),
    ("placement", EIGHT_CPUS, EIGHT_CPUS),
    ("virtual", EIGHT_CPUS, EIGHT_CPUS[:1]),
    ("mirrored", [*CPU, *(f"/device:GPU:{i}" for i in range(8))], None),
    ("virtual", FOUR_GPUS, FOUR_GPUS[1:2]),
  ],
)
def test_a_strategy_takes_all_devices_of_the_best_kind(
  strategy, here, expected
):
  runs_on = choose("a:8", here, strategy=strategy)
  assert runs_on.kind is Kind(strategy)
  assert runs_on.devices == tuple(here[1:] if expected is None else expected)


@pytest.mark.parametrize("strategy", ["mirrored", "placement"])
@pytest.mark.parametrize("here", [CPU, ONE_GPU, FOUR_GPUS])
def test_a_strategy_on_too_few_or_too_many_devices_is_an_error(strategy, here):
  with pytest.raises(
    mtf.LayoutError,
    match=f"has 3 processors, but run.strategy '{strategy}' would run it on",
  ):
    choose("a:3", here, strategy=strategy)


@pytest.mark.parametrize(
  ("wishes", "message"),
  [
    ({"strategy": "simd"}, "there is no strategy 'simd'; take one of virtual"),
    (
      {"strategy": "virtual", "mesh_devices": ["gpu:0", "gpu:1"]},
      "run.mesh_devices is set, but run.strategy 'virtual' takes no devices",
    ),
    (
      {"strategy": "mirrored", "mesh_devices": ["gpu:0", "/gpu:0"]},
      "GPU:0 names one twice; take the strategy 'placement'",
    ),
    (
      {"strategy": "mirrored", "mesh_devices": ["gpu:0", "cpu:0"]},
      "needs devices of one kind, but run.mesh_devices are GPU:0, CPU:0",
    ),
    (
      {"tpu": "local", "strategy": "mirrored"},
      "--tpu=local and run.strategy 'mirrored': a TPU runs the strategy 'tpu'",
    ),
    (
      {"tpu": "local", "mesh_devices": ["gpu:0", "gpu:1"]},
      "run.mesh_devices is set, but run.strategy 'tpu' takes no devices",
    ),
    (
      {"strategy": "multi_worker"},
      "'multi_worker' needs the environment variable TF_CONFIG",
    ),
    (
      {"strategy": "mirrored", "tf_config": tf_config(2)},
      "'mirrored' is for one process, but TF_CONFIG names 2; unset TF_CONFIG",
    ),
    (
      {"tpu": "local", "tf_config": tf_config(2)},
      "'tpu' is for one process, but TF_CONFIG names 2",
    ),
    (
      {"mesh_devices": ["gpu:0", "gpu:1"], "tf_config": tf_config(2)},
      "run.mesh_devices is set, but run.strategy 'multi_worker' takes no",
    ),
  ],
)
def test_wishes_that_do_not_go_together_are_an_error(wishes, message):
  with pytest.raises(ValueError, match=message):
    choose("a:2", FOUR_GPUS, **wishes)


# TPUs.


@pytest.mark.parametrize("wishes", [{"tpu": "local"}, {"strategy": "tpu"}])
def test_a_tpu_is_used_as_asked(wishes):
  runs_on = choose("batch:8", CPU, **wishes)
  assert (runs_on.kind, runs_on.tpu) == (Kind.TPU, "local")
  assert runs_on.line == "runs on TPU 'local': 8 cores"


def test_a_tpu_by_name_or_address_keeps_it():
  assert choose("a:8", CPU, tpu="my-tpu").tpu == "my-tpu"
  address = "grpc://10.0.0.2:8470"
  assert address in choose("a:8", CPU, tpu=address, strategy="tpu").line


def test_a_tpu_of_another_size_is_an_error():
  mesh = mtf.convert_to_shape("batch:4")
  devices.check_tpu(mesh, "local", 4)
  with pytest.raises(
    mtf.LayoutError, match="has 4 processors, but --tpu=local has 8 cores"
  ):
    devices.check_tpu(mesh, "local", 8)


# Several processes.


def test_all_processes_of_tf_config_are_used():
  runs_on = choose("batch:2;model:2", EIGHT_CPUS, tf_config=tf_config(4, 3))
  assert runs_on.kind is Kind.MULTI_WORKER
  assert runs_on.devices == ("/device:CPU:0",)
  assert runs_on.cluster.number == 3
  assert runs_on.cluster.addresses[3] == "host3:2222"
  assert runs_on.line == (
    "runs on 4 processes with 1 CPU each; this is worker 3: CPU:0"
  )


def test_every_gpu_of_every_process_is_a_processor():
  runs_on = choose("batch:8", FOUR_GPUS, tf_config=tf_config(2, 1))
  assert runs_on.devices == tuple(FOUR_GPUS[1:])
  assert runs_on.line.startswith("runs on 2 processes with 4 GPUs each")


def test_a_chief_is_the_first_process():
  config = tf_config(1, 0, "chief", chief=["first:2222"])
  cluster = choose("a:2", CPU, tf_config=config).cluster
  assert cluster.tasks == ("chief 0", "worker 0")
  assert (cluster.number, cluster.this) == (0, "chief 0")


def test_a_number_in_quotes_is_a_number_as_for_tensorflow():
  runs_on = choose("a:2", CPU, tf_config=tf_config(2, "1"))
  assert runs_on.cluster.number == 1


@pytest.mark.parametrize(
  "config", [None, "", "{}", tf_config(1), '{"cluster": {"chief": ["a:1"]}}']
)
def test_one_process_is_no_cluster(config):
  assert choose("a:2", CPU, tf_config=config).kind is Kind.VIRTUAL


@pytest.mark.parametrize(
  ("config", "message"),
  [
    ("not json", "TF_CONFIG is no JSON .* it looks like this: {"),
    ("[]", r"TF_CONFIG is \[\]; it looks like this"),
    ('{"cluster": {"worker": "a:1,b:1"}}', "it looks like this"),
    ('{"cluster": {"worker": ["a:1", "b:1"]}}', "its task is None; it is one"),
    (tf_config(2, 2), "its task is .* of its cluster: worker 0, worker 1"),
    (tf_config(2, 0, "evaluator"), "'evaluator'.* worker 0, worker 1"),
    (tf_config(2, ps=["c:1"]), r"names parameter servers \(ps\)"),
  ],
)
def test_a_tf_config_that_makes_no_sense_is_named(config, message):
  with pytest.raises(ValueError, match=message):
    choose("a:2", CPU, tf_config=config)


def test_a_mesh_of_another_size_than_the_cluster_is_an_error():
  with pytest.raises(
    mtf.LayoutError,
    match="has 8 processors, but TF_CONFIG names 4 processes of 1 CPU each, "
    "which are 4; give it that size",
  ):
    choose("batch:8", CPU, tf_config=tf_config(4))
