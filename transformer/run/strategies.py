"""The strategy of `tf.distribute` that runs a mesh where it was decided to."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable

import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd.topology import device_assignment

from .clusters import cluster_of
from .devices import Kind, RunsOn, check_tpu
from .rendezvous import wait_for_all


def join_cluster(tf_config: str | None, timeout_seconds: float) -> None:
  """Joins the processes that run the program together, if there are several.

  TensorFlow wants this to come before anything else that it is asked to do.

  Args:
    tf_config: the value of the environment variable `TF_CONFIG`.
    timeout_seconds: how long to wait for the others.

  Raises:
    ValueError: it cannot be read.
    TimeoutError: names those that have not come.
  """
  cluster = cluster_of(tf_config)
  if cluster is not None:
    wait_for_all(cluster, timeout_seconds)
    joined()


def devices_here(tf_config: str | None) -> list[str]:
  """The names of this process's devices.

  Where it is one of several, its devices are only counted and not made: the
  strategy has to be there before they are.

  Args:
    tf_config: the value of the environment variable `TF_CONFIG`.
  """
  if cluster_of(tf_config) is None:
    return [device.name for device in tf.config.list_logical_devices()]
  return [
    device.name.replace("/physical_device:", "/device:")
    for device in tf.config.list_physical_devices()
  ]


def strategy_of(
  runs_on: RunsOn, mesh: mtf.Shape
) -> tf.distribute.Strategy | None:
  """Makes the strategy that a program is given.

  Replica i of it is processor i of the mesh.

  Args:
    runs_on: what was decided on.
    mesh: the mesh.

  Returns:
    The strategy; None for a virtual mesh, or for one of placed operations.

  Raises:
    LayoutError: a TPU has more or fewer cores than the mesh has processors, or
      a strategy has fewer replicas.
  """
  if runs_on.kind not in _MAKE:
    return None
  strategy = _MAKE[runs_on.kind](runs_on, mesh)
  if strategy.num_replicas_in_sync != mesh.size:
    raise mtf.LayoutError(
      f"run.mesh_shape [{mesh}] has {mesh.size} processors, but "
      f"{type(strategy).__name__} came up with {strategy.num_replicas_in_sync} "
      f"replicas; it {runs_on.line}"
    )
  return strategy


def _mirrored(runs_on: RunsOn, mesh: mtf.Shape) -> tf.distribute.Strategy:
  del mesh
  return tf.distribute.MirroredStrategy(devices=list(runs_on.devices))


def _multi_worker(runs_on: RunsOn, mesh: mtf.Shape) -> tf.distribute.Strategy:
  del runs_on, mesh
  return joined()


@functools.lru_cache
def joined() -> tf.distribute.Strategy:
  """The strategy of the processes that run together; made only once."""
  return (
    tf.distribute.MultiWorkerMirroredStrategy()
  )  # it reads TF_CONFIG itself


def _tpu(runs_on: RunsOn, mesh: mtf.Shape) -> tf.distribute.Strategy:
  """Connects to the TPU, and lays the mesh over its torus."""
  tpu = runs_on.tpu or "local"
  if importlib.util.find_spec("libtpu") is None:
    raise ValueError(
      f"--tpu={tpu}: what is installed here runs no TPU; install mesh_tf2[tpu] "
      "on the machine that has it, or leave --tpu out"
    )
  try:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu)
    if tpu != "local":
      tf.config.experimental_connect_to_cluster(resolver)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
  except (tf.errors.OpError, RuntimeError, ImportError) as error:
    raise ValueError(
      f"--tpu={tpu}: there is no such TPU, or it does not answer: {error}"
    ) from error
  cores = topology.num_tasks * topology.num_tpus_per_task
  check_tpu(mesh, tpu, int(cores))
  return tf.distribute.TPUStrategy(
    resolver, experimental_device_assignment=device_assignment(topology, mesh)
  )


_MAKE: dict[Kind, Callable[[RunsOn, mtf.Shape], tf.distribute.Strategy]] = {
  Kind.MIRRORED: _mirrored,
  Kind.MULTI_WORKER: _multi_worker,
  Kind.TPU: _tpu,
}
