"""Where variables go that are kept whole, and how many axes a TPU has."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


class BalancedVariablePlacer:
  """Gives each variable to the device that has least to hold so far.

  To be handed to `mtf.Mesh` as `variable_placer`, for programs that keep whole
  copies of variables. The slices of a `Program` are on the processors anyway.

  Args:
    devices: names of devices.
    init_usage: how many bytes each of them holds already; by default none.

  Raises:
    ValueError: there is no device, or not a number for each.
  """

  def __init__(
    self, devices: Sequence[str], init_usage: Sequence[int] | None = None
  ) -> None:
    usage = [0] * len(devices) if init_usage is None else list(init_usage)
    if not devices or len(usage) != len(devices):
      raise ValueError(
        f"BalancedVariablePlacer: {len(devices)} devices, of which the use of "
        f"{len(usage)} is given; name a device or more, and a number for each"
      )
    # Of those that hold as much, the first one in the list is next.
    self._heap = [
      (used, i, device)
      for i, (used, device) in enumerate(zip(usage, devices, strict=True))
    ]
    heapq.heapify(self._heap)

  def device_function(self, var: Any) -> str:
    """The device of a variable.

    Args:
      var: has a `shape` and a `dtype`, or a `master_dtype` if it is an mtf one.
    """
    dtype = tf.as_dtype(getattr(var, "master_dtype", var.dtype))
    shape = getattr(var.shape, "to_integer_list", var.shape)
    size = dtype.size * (tf.TensorShape(shape).num_elements() or 0)
    used, i, device = self._heap[0]
    heapq.heapreplace(self._heap, (used + size, i, device))
    return device


def topology_rank(topology: Any) -> int:
  """How many axes the mesh of a TPU topology has.

  Args:
    topology: what `tf.tpu.experimental.initialize_tpu_system` returns.
  """
  return len(topology.mesh_shape)
