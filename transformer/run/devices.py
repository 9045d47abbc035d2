"""What a program runs on: a choice that is made once, and told in one line.

    utils.run.strategy = "mirrored"

A device that was asked for is used, or there is an error. Nothing here touches
a device: all is known from names.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence

import mesh_tf2 as mtf
from mesh_tf2.spmd import device_names

from .clusters import Cluster, cluster_of


class Kind(enum.Enum):
  """How a mesh is run; the values are what gin files call it."""

  VIRTUAL = "virtual"
  PLACEMENT = "placement"
  MIRRORED = "mirrored"
  MULTI_WORKER = "multi_worker"
  TPU = "tpu"

  @classmethod
  def from_name(cls, name: str) -> Kind:
    """The kind of this name.

    Raises:
      ValueError: there is none.
    """
    try:
      return cls(name)
    except ValueError:
      known = ", ".join(kind.value for kind in cls)
      raise ValueError(
        f"run.strategy: there is no strategy {name!r}; take one of {known}, or "
        "None to let the program choose"
      ) from None


@dataclasses.dataclass(frozen=True)
class RunsOn:
  """What a program runs on.

  Attributes:
    kind: how the mesh is run.
    devices: the devices of this process: one for each processor that it has,
      row-major over the mesh; a single one for a virtual mesh. None are known
      of a TPU before it is there.
    line: what is told at start-up.
    cluster: the processes that run one program together; None for this one.
    tpu: the name or address of the TPU, or "local".
  """

  kind: Kind
  devices: tuple[str, ...]
  line: str
  cluster: Cluster | None = None
  tpu: str | None = None


@dataclasses.dataclass(frozen=True)
class Wanted:
  """What was asked for, and what is there.

  Attributes:
    mesh: the mesh.
    here: the names of this process's devices.
    mesh_devices: `run.mesh_devices`: one for each processor; None for no wish.
    strategy: `run.strategy`: the value of a `Kind`; None for no wish.
    tpu: the flag `--tpu`: "local", a name or an address; None for no TPU.
    tf_config: the value of the environment variable `TF_CONFIG`.
  """

  mesh: mtf.Shape
  here: Sequence[str]
  mesh_devices: Sequence[str] | None = None
  strategy: str | None = None
  tpu: str | None = None
  tf_config: str | None = None

  @property
  def best(self) -> tuple[str, ...]:
    """All GPUs; all CPUs if there are none."""
    known = [device_names.normalized(x) for x in self.here]
    gpus = tuple(x for x in known if "/device:GPU:" in x)
    return gpus or tuple(x for x in known if "/device:CPU:" in x)

  @property
  def processors(self) -> str:
    """The mesh in words."""
    count = _count(self.mesh.size, "processor")
    return f"run.mesh_shape [{self.mesh}] has {count}"


def choose(wanted: Wanted) -> RunsOn:
  """Decides what a program runs on.

  Without a wish: a TPU if `--tpu` names one; all processes of `TF_CONFIG`; the
  devices of `run.mesh_devices`; all GPUs if there are several, one for each
  processor of the mesh; else a virtual mesh on one device.

  Args:
    wanted: what was asked for, and what is there.

  Raises:
    ValueError: what was asked for does not go together.
    LayoutError: a device is missing, or their number is not that of the mesh.
  """
  cluster = cluster_of(wanted.tf_config)
  kind = _kind(wanted, cluster)
  _check_wishes(wanted, kind, cluster)
  if kind is Kind.TPU:
    return _tpu(wanted)
  if kind is Kind.MULTI_WORKER:
    return _multi_worker(wanted, cluster)
  return _HERE[kind](wanted)


def check_tpu(mesh: mtf.Shape, tpu: str, cores: int) -> None:
  """Checks a TPU that is there by now.

  Raises:
    LayoutError: it has more or fewer cores than the mesh has processors.
  """
  if mesh.size != cores:
    raise mtf.LayoutError(
      f"run.mesh_shape [{mesh}] has {_count(mesh.size, 'processor')}, but "
      f"--tpu={tpu} has {_count(cores, 'core')}; a mesh has one processor for "
      "each core"
    )


def _kind(wanted: Wanted, cluster: Cluster | None) -> Kind:
  """The kind that was asked for, or the one that suits what is there."""
  if wanted.strategy is not None:
    return Kind.from_name(wanted.strategy)
  if wanted.tpu:
    return Kind.TPU
  if cluster is not None:
    return Kind.MULTI_WORKER
  if wanted.mesh_devices is not None:
    return Kind.PLACEMENT
  several = len(wanted.best) > 1 and "/device:GPU:" in wanted.best[0]
  if several and len(wanted.best) == wanted.mesh.size:
    return Kind.MIRRORED
  return Kind.VIRTUAL


def _check_wishes(wanted: Wanted, kind: Kind, cluster: Cluster | None) -> None:
  """Checks that nothing was asked for that this kind would leave unused."""
  name = f"run.strategy {kind.value!r}"
  if wanted.tpu and kind is not Kind.TPU:
    raise ValueError(
      f"--tpu={wanted.tpu} and {name}: a TPU runs the strategy 'tpu'; leave "
      "one of them out"
    )
  if cluster is not None and kind is not Kind.MULTI_WORKER:
    raise ValueError(
      f"{name} is for one process, but TF_CONFIG names "
      f"{len(cluster.tasks)}; unset TF_CONFIG, or take the strategy "
      "'multi_worker'"
    )
  if wanted.mesh_devices is not None and kind not in (
    Kind.PLACEMENT,
    Kind.MIRRORED,
  ):
    raise ValueError(
      f"run.mesh_devices is set, but {name} takes no devices by name; leave "
      "one of them out"
    )


def _tpu(wanted: Wanted) -> RunsOn:
  tpu = wanted.tpu or "local"
  size = _count(wanted.mesh.size, "core")
  return RunsOn(Kind.TPU, (), f"runs on TPU {tpu!r}: {size}", tpu=tpu)


def _multi_worker(wanted: Wanted, cluster: Cluster | None) -> RunsOn:
  if cluster is None:
    raise ValueError(
      "run.strategy 'multi_worker' needs the environment variable TF_CONFIG, "
      "which names several processes"
    )
  devices, processes = wanted.best, len(cluster.tasks)
  if "/device:CPU:" in devices[0]:
    devices = devices[:1]  # TensorFlow gives a process one CPU replica
  each = _count(len(devices), devices[0].split(":")[1])
  if len(devices) * processes != wanted.mesh.size:
    raise mtf.LayoutError(
      f"{wanted.processors}, but TF_CONFIG names {processes} processes of "
      f"{each} each, which are {len(devices) * processes}; give it that size"
    )
  line = (
    f"runs on {processes} processes with {each} each; this is "
    f"{cluster.this}: {_short(devices)}"
  )
  return RunsOn(Kind.MULTI_WORKER, devices, line, cluster)


def _mirrored(wanted: Wanted) -> RunsOn:
  devices = _one_for_each(wanted)
  if len(set(devices)) < len(devices):
    raise ValueError(
      f"run.strategy 'mirrored' needs a device for each processor, but "
      f"run.mesh_devices {_short(devices)} names one twice; take the strategy "
      "'placement'"
    )
  if len({_type(device) for device in devices}) > 1:
    raise ValueError(
      f"run.strategy 'mirrored' needs devices of one kind, but "
      f"run.mesh_devices are {_short(devices)}; take the strategy 'placement'"
    )
  line = f"runs on {_short(devices)}: one program for all"
  return RunsOn(Kind.MIRRORED, devices, line)


def _placement(wanted: Wanted) -> RunsOn:
  devices = _one_for_each(wanted)
  line = f"runs on {_short(devices)}: operations placed one by one"
  return RunsOn(Kind.PLACEMENT, devices, line)


def _virtual(wanted: Wanted) -> RunsOn:
  device, *others = wanted.best
  line = f"runs on {_short([device])}"
  if wanted.mesh.size > 1:
    line += f": {_count(wanted.mesh.size, 'processor')} side by side"
  if others and _type(device) == "GPU":
    line += (
      f"; this machine has {len(others) + 1} GPUs: a mesh of that size would "
      "use them all"
    )
  if any("TPU:" in name for name in wanted.here):
    line += "; this machine has a TPU: --tpu=local would use it"
  return RunsOn(Kind.VIRTUAL, (device,), line)


_HERE: dict[Kind, Callable[[Wanted], RunsOn]] = {
  Kind.MIRRORED: _mirrored,
  Kind.PLACEMENT: _placement,
  Kind.VIRTUAL: _virtual,
}


def _one_for_each(wanted: Wanted) -> tuple[str, ...]:
  """The devices that were named, or all; one for each processor."""
  named = wanted.mesh_devices
  if named is None:
    if len(wanted.best) != wanted.mesh.size:
      raise mtf.LayoutError(
        f"{wanted.processors}, but run.strategy {wanted.strategy!r} would run "
        f"it on {_short(wanted.best)}; give it that size, or "
        "name devices in run.mesh_devices"
      )
    return wanted.best
  if len(named) != wanted.mesh.size:
    raise mtf.LayoutError(
      f"{wanted.processors}, run.mesh_devices has {len(named)} devices"
    )
  return tuple(device_names.existing(name, wanted.here) for name in named)


def _type(device: str) -> str:
  return device.rpartition("device:")[2].partition(":")[0]


def _short(devices: Sequence[str]) -> str:
  """Devices in words, each once."""
  names = [device_names.short(d) if d else "any" for d in devices]
  return ", ".join(dict.fromkeys(names))


def _count(n: int, what: str) -> str:
  return f"{n} {what}{'s' * (n != 1)}"
