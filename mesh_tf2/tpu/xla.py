"""XLA without TensorFlow: programs compiled for cores that are not here.

jaxlib has the compilers of CPUs and, through libtpu, of TPUs, and takes the
program as TensorFlow makes it. It is an extra, and imported only where it is
asked for.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

_VARIABLE = "TPU_SKIP_MDS_QUERY"


class MissingCompilerError(ImportError):
  """What compiles for TPUs is not installed, or would wait for a network."""


def require_compiler() -> None:
  """Makes sure that jaxlib and libtpu are there and find out nothing online.

  Raises:
    MissingCompilerError: they are not installed; or the environment lets libtpu
      ask a metadata server, for which it would wait for minutes.
  """
  for name in ("jax", "libtpu"):
    if importlib.util.find_spec(name) is None:
      raise MissingCompilerError(
        f"mtf.tpu compiles with {name}, which is not installed; make an "
        "environment of its own with pip install 'mesh_tf2[tpu-aot]', or run "
        "make test-tpu, which makes .venv-tpu"
      )
  if os.environ.get(_VARIABLE) != "1":
    raise MissingCompilerError(
      f"mtf.tpu: set {_VARIABLE}=1 in the environment before Python starts: "
      "without it, libtpu waits minutes for a metadata server"
    )
  os.environ.setdefault("JAX_PLATFORMS", "cpu")
  # Several processes may compile: none of them uses a TPU.
  os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")


@functools.cache
def topology(name: str) -> Any:
  """The devices of a TPU: "v2:16x16x1", "v4:4x4x4", "v5e:8x8".

  Raises:
    ValueError: there is no such TPU.
  """
  require_compiler()
  topologies = importlib.import_module("jax.experimental.topologies")
  try:
    return topologies.get_topology_desc(topology_name=name, platform="tpu")
  except Exception as error:
    raise ValueError(
      f"topology {name!r}: {error}; write it as generation and chips along "
      "each axis, for example 'v2:16x16x1'"
    ) from error


def compile_ahead(devices: Sequence[Any], hlo: bytes) -> Any:
  """Compiles a program that each device of a topology runs as a replica.

  Args:
    devices: in the order of the replicas.
    hlo: a serialized `HloModuleProto`.

  Returns:
    jaxlib's executable, which can be looked at, and not run.
  """
  return devices[0].client.compile(*_arguments(devices, hlo))


def compile_and_load(devices: Sequence[Any], hlo: bytes) -> Any:
  """Compiles a program that each device runs as a replica, to be run here.

  Args:
    devices: in the order of the replicas.
    hlo: a serialized `HloModuleProto`.

  Returns:
    jaxlib's executable.
  """
  return devices[0].client.compile_and_load(*_arguments(devices, hlo))


def _arguments(devices: Sequence[Any], hlo: bytes) -> tuple[bytes, Any, Any]:
  client = importlib.import_module("jaxlib.xla_client")
  computation = client.XlaComputation(hlo)
  module = client._xla.mlir.xla_computation_to_mlir_module(computation)
  options = client.CompileOptions()
  options.num_replicas, options.num_partitions = len(devices), 1
  numbers = np.array([d.id for d in devices]).reshape(-1, 1)
  options.device_assignment = client.DeviceAssignment.create(numbers)
  return module.encode(), client.DeviceList(tuple(devices)), options


def cpus(count: int) -> list[Any]:
  """So many devices of the CPU.

  Raises:
    ValueError: there are fewer.
  """
  require_compiler()
  devices = importlib.import_module("jax").devices("cpu")
  if len(devices) < count:
    raise ValueError(
      f"{count} CPU devices are wanted and {len(devices)} are there; set "
      f"XLA_FLAGS=--xla_force_host_platform_device_count={count} in the "
      "environment"
    )
  found: list[Any] = devices[:count]
  return found
