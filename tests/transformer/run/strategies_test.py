"""Strategies from decisions; a TPU is made up."""

import importlib.util
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd.topology import auto_logical_to_physical_tpu
from mesh_tf2.transformer.run import devices, strategies

EIGHT = mtf.convert_to_shape("batch:2;model:4")


def decide(**wishes):
  here = strategies.devices_here(wishes.get("tf_config"))
  return devices.choose(devices.Wanted(EIGHT, here, **wishes))


def test_a_mirrored_strategy_has_the_devices_in_the_order_of_the_mesh():
  names = [f"cpu:{i}" for i in (7, 0, 1, 2, 3, 4, 5, 6)]
  runs_on = decide(strategy="mirrored", mesh_devices=names)
  strategy = strategies.strategy_of(runs_on, EIGHT)
  places = [x.rpartition(":")[2] for x in strategy.extended.worker_devices]
  assert places == list("70123456")


@pytest.mark.parametrize("strategy", [None, "virtual", "placement"])
def test_a_mesh_without_a_strategy_has_none(strategy):
  assert strategies.strategy_of(decide(strategy=strategy), EIGHT) is None


class MadeUpTpu:
  """Stands for a TPU, and notes what is asked of it."""

  def __init__(self, monkeypatch, shape=(2, 2, 1, 2)):
    places = np.array(list(itertools.product(*map(range, shape))), np.int32)
    self.topology = tf.tpu.experimental.Topology(
      mesh_shape=np.array(shape, np.int32), device_coordinates=places[None]
    )
    self.calls = []
    self.num_replicas_in_sync = len(places)
    monkeypatch.setattr(
      strategies.importlib.util, "find_spec", lambda name: name == "libtpu"
    )
    resolvers = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolvers, "TPUClusterResolver", self.resolver)
    monkeypatch.setattr(
      tf.config, "experimental_connect_to_cluster", self.connect
    )
    monkeypatch.setattr(
      tf.tpu.experimental, "initialize_tpu_system", lambda r: self.topology
    )
    monkeypatch.setattr(tf.distribute, "TPUStrategy", self.strategy)

  def resolver(self, tpu):
    self.calls.append(("resolver", tpu))
    return "resolver"

  def connect(self, resolver):
    self.calls.append(("connect", resolver))

  def strategy(self, resolver, experimental_device_assignment):
    self.assignment = experimental_device_assignment
    return self


def test_a_tpu_gets_the_mesh_laid_over_its_torus(monkeypatch):
  tpu = MadeUpTpu(monkeypatch)
  strategies.strategy_of(decide(tpu="local"), EIGHT)
  assert tpu.calls == [("resolver", "local")]
  expected = auto_logical_to_physical_tpu(
    EIGHT, [2, 2, 1, 2], return_coordinates=True
  )
  found = [tuple(map(int, tpu.assignment.coordinates(i, 0))) for i in range(8)]
  assert found == expected


def test_a_tpu_elsewhere_is_connected_to(monkeypatch):
  tpu = MadeUpTpu(monkeypatch)
  strategies.strategy_of(decide(tpu="grpc://10.0.0.2:8470"), EIGHT)
  assert tpu.calls == [
    ("resolver", "grpc://10.0.0.2:8470"),
    ("connect", "resolver"),
  ]


def test_a_tpu_of_another_size_is_an_error(monkeypatch):
  MadeUpTpu(monkeypatch, shape=(2, 2, 1, 1))
  with pytest.raises(
    mtf.LayoutError, match="8 processors, but --tpu=local has 4 cores"
  ):
    strategies.strategy_of(decide(tpu="local"), EIGHT)


def test_a_tpu_that_does_not_answer_is_an_error_and_never_a_cpu(monkeypatch):
  MadeUpTpu(monkeypatch)

  def nobody(resolver):
    raise tf.errors.NotFoundError(None, None, "no TPU devices")

  monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", nobody)
  with pytest.raises(
    ValueError, match=r"--tpu=local: there is no such TPU.*: no TPU devices"
  ):
    strategies.strategy_of(decide(tpu="local"), EIGHT)


def test_where_nothing_can_run_a_tpu_the_error_says_what_to_install():
  if importlib.util.find_spec("libtpu"):
    pytest.skip("what runs a TPU is installed here")
  with pytest.raises(ValueError, match=r"runs no TPU; install mesh_tf2\[tpu\]"):
    strategies.strategy_of(decide(tpu="local"), EIGHT)


def test_two_processes_make_one_strategy_from_tf_config(tmp_path):
  script = tmp_path / "worker.py"
  script.write_text(
    """
import os
import mesh_tf2 as mtf
from mesh_tf2.transformer.run import devices, strategies
config, mesh = os.environ["TF_CONFIG"], mtf.convert_to_shape("batch:2")
here = strategies.devices_here(config)
runs_on = devices.choose(devices.Wanted(mesh, here, tf_config=config))
strategy = strategies.strategy_of(runs_on, mesh)
print(runs_on.line, "/", strategy.num_replicas_in_sync, "replicas")
"""
  )
  addresses = free_addresses(2)
  workers = [start(script, addresses, i) for i in range(2)]
  try:
    said = [worker.communicate(timeout=120)[0] for worker in workers]
  finally:
    for worker in workers:
      worker.kill()
  for i in range(2):
    line = f"runs on 2 processes with 1 CPU each; this is worker {i}: CPU:0"
    assert f"{line} / 2 replicas" in said[i]


def free_addresses(count):
  sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
  addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
  for each in sockets:
    each.close()
  return addresses


def start(script: pathlib.Path, addresses, index):
  config = {
    "cluster": {"worker": addresses},
    "task": {"type": "worker", "index": index},
  }
  return subprocess.Popen(
    [sys.executable, str(script)],
    env={
      **os.environ,
      "TF_CONFIG": json.dumps(config),
      "CUDA_VISIBLE_DEVICES": "",
    },
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
