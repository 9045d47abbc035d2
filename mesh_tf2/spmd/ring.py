"""Collectives on a list of tensors, from device to device around a ring.

Every device sends to the next one only, all at the same time, so that no link
carries more than its share (Patarasu and Yuan, Bandwidth optimal all-reduce
algorithms for clusters of workstations, 2009).
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from .parallel import binary_reduction_fn

# Below this size, cutting a tensor up costs more than it saves.
_SMALL = 1024


def allreduce_ring_single_shard(
  xs: Sequence[tf.Tensor],
  devices: Sequence[str],
  reduction_fn_string: str = "SUM",
) -> list[tf.Tensor]:
  """The reduction of all tensors, on every device, without cutting them up.

  From both ends of the list, results so far go to the middle; from there the
  whole result goes back.

  Args:
    xs: tensors of equal shape.
    devices: a name for each tensor.
    reduction_fn_string: "SUM", "MAX" or "MIN".
  """
  _check(xs, devices)
  combine = binary_reduction_fn(reduction_fn_string)
  n, middle = len(xs), len(xs) // 2
  up, down = list(xs), list(xs)
  for i in range(1, middle):
    with tf.device(devices[i]):
      up[i] = combine(up[i - 1], up[i])
  for i in range(n - 2, middle - 1, -1):
    with tf.device(devices[i]):
      down[i] = combine(down[i], down[i + 1])
  with tf.device(devices[middle]):
    whole = combine(up[middle - 1], down[middle]) if middle else xs[0]
  out = [whole] * n
  for step in (-1, 1):
    i = middle + step
    while 0 <= i < n:
      out[i] = _copy(out[i - step], devices[i])
      i += step
  out[middle] = _copy(whole, devices[middle])
  return out


def allreduce_ring(
  xs: Sequence[tf.Tensor],
  devices: Sequence[str],
  reduction_fn_string: str = "SUM",
) -> list[tf.Tensor]:
  """The reduction of all tensors, on every device.

  Each of n devices ends up with the result of one of n shards, which then goes
  around: a device sends 2 (n - 1) / n of a tensor, however many there are. A
  tensor that is small, of unknown size, or not divisible by n is sent whole.

  Args:
    xs: tensors of equal shape.
    devices: a name for each tensor.
    reduction_fn_string: "SUM", "MAX" or "MIN".
  """
  _check(xs, devices)
  n, size = len(xs), xs[0].shape.num_elements()
  if size is None or size < _SMALL or size % n:
    return allreduce_ring_single_shard(xs, devices, reduction_fn_string)
  combine = binary_reduction_fn(reduction_fn_string)
  shards = []
  for x, device in zip(xs, devices, strict=True):
    with tf.device(device):
      shards.append(tf.split(tf.reshape(x, [size]), n))
  # In round r, device i receives shard i - r - 1 and adds its own to it.
  for r in range(n - 1):
    before = [list(own) for own in shards]
    for i, device in enumerate(devices):
      k = (i - r - 1) % n
      with tf.device(device):
        shards[i][k] = combine(before[i - 1][k], before[i][k])
  # Device i has the whole of shard i + 1 now.
  for r in range(n - 1):
    before = [list(own) for own in shards]
    for i, device in enumerate(devices):
      k = (i - r) % n
      shards[i][k] = _copy(before[i - 1][k], device)
  out = []
  for own, device in zip(shards, devices, strict=True):
    with tf.device(device):
      out.append(tf.reshape(tf.concat(own, 0), xs[0].shape))
  return out


def allconcat_ring(
  xs: Sequence[tf.Tensor], devices: Sequence[str], concat_axis: int
) -> list[tf.Tensor]:
  """All tensors joined along an axis, on every device.

  Args:
    xs: tensors, alike but for that axis.
    devices: a name for each tensor.
    concat_axis: the axis.
  """
  _check(xs, devices)
  n = len(xs)
  parts = [{i: x} for i, x in enumerate(xs)]
  # Both ways around the ring, so that it takes n / 2 rounds.
  for r in range(1, n // 2 + 1):
    before = [dict(own) for own in parts]
    for i, device in enumerate(devices):
      for source, k in ((i - 1, i - r), (i + 1, i + r)):
        if k % n not in parts[i]:
          parts[i][k % n] = _copy(before[source % n][k % n], device)
  out = []
  for own, device in zip(parts, devices, strict=True):
    with tf.device(device):
      out.append(tf.concat([own[k] for k in range(n)], concat_axis))
  return out


def alltoall_pointtwise(
  xs: Sequence[tf.Tensor],
  devices: Sequence[str],
  split_axis: int,
  concat_axis: int,
) -> list[tf.Tensor]:
  """Cuts every tensor, and joins on each device what it is to have of all.

  Each part goes from its device to the other one at once.

  Args:
    xs: n tensors of equal shape.
    devices: a name for each tensor.
    split_axis: the axis that is cut into n parts.
    concat_axis: the axis along which device i joins the parts with number i.

  Raises:
    ValueError: the axis does not divide into n equal parts.
  """
  parts = _cut(xs, devices, split_axis)
  out = []
  for i, device in enumerate(devices):
    with tf.device(device):
      out.append(tf.concat([own[i] for own in parts], concat_axis))
  return out


def alltoall_ring(
  xs: Sequence[tf.Tensor],
  devices: Sequence[str],
  split_axis: int,
  concat_axis: int,
) -> list[tf.Tensor]:
  """The same as `alltoall_pointtwise`, from neighbour to neighbour.

  A part takes the shorter way around the ring.

  Args:
    xs: n tensors of equal shape.
    devices: a name for each tensor.
    split_axis: the axis that is cut into n parts.
    concat_axis: the axis along which device i joins the parts with number i.

  Raises:
    ValueError: the axis does not divide into n equal parts.
  """
  parts, n = _cut(xs, devices, split_axis), len(xs)
  out = []
  for i, device in enumerate(devices):
    received = []
    for source in range(n):
      part, distance = parts[source][i], (i - source) % n
      step = 1 if 2 * distance <= n else -1
      for hop in range(1, (distance if step > 0 else n - distance) + 1):
        part = _copy(part, devices[(source + step * hop) % n])
      received.append(part)
    with tf.device(device):
      out.append(tf.concat(received, concat_axis))
  return out


def _cut(
  xs: Sequence[tf.Tensor], devices: Sequence[str], split_axis: int
) -> list[list[tf.Tensor]]:
  _check(xs, devices)
  n, size = len(xs), xs[0].shape[split_axis]
  if size is not None and size % n:
    raise ValueError(
      f"alltoall: axis {split_axis} of {xs[0].shape} does not divide into {n} "
      "equal parts, one for each device"
    )
  parts = []
  for x, device in zip(xs, devices, strict=True):
    with tf.device(device):
      parts.append(tf.split(x, n, split_axis))
  return parts


def _copy(x: tf.Tensor, device: str) -> tf.Tensor:
  with tf.device(device):
    return tf.identity(x)


def _check(xs: Sequence[tf.Tensor], devices: Sequence[str]) -> None:
  if not xs or len(xs) != len(devices):
    raise ValueError(
      f"{len(xs)} tensors on {len(devices)} devices; give a device for each of "
      "one or more tensors"
    )
