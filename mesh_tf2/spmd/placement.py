"""A mesh of devices in one process: a tensor for each of them.

A laid-out tensor is a list of TensorFlow tensors, one for each processor, each
made on its own device. The graph grows with the number of processors.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import LayoutError
from ..core.layout import (
  LayoutLike,
  pnum_to_processor_coordinates,
  processor_groups,
)
from ..core.shape import Shape, ShapeLike
from . import device_names, wide
from .laid_out import LaidOutVariable, Slices
from .mesh import MeshImpl
from .ring import (  # noqa: F401  public under the name of this module
  allconcat_ring,
  allreduce_ring,
  allreduce_ring_single_shard,
  alltoall_pointtwise,
  alltoall_ring,
)

_COMBINE: dict[str, Callable[[Sequence[tf.Tensor]], tf.Tensor]] = {
  "SUM": wide.add_all,
  "MAX": functools.partial(functools.reduce, tf.maximum),
  "MIN": functools.partial(functools.reduce, tf.minimum),
}


@dataclasses.dataclass(frozen=True)
class PlacementSlices:
  """One tensor for each processor, in the order of their numbers."""

  tensor_list: tuple[tf.Tensor, ...]

  @property
  def all_slices(self) -> list[tf.Tensor]:
    """The tensors."""
    return list(self.tensor_list)

  @property
  def slice_shape(self) -> list[int]:
    """The sizes of a slice; all are alike."""
    return self.tensor_list[0].shape.as_list()

  def __repr__(self) -> str:
    return f"PlacementSlices({self.tensor_list[0].shape})"


class PlacementVariable(LaidOutVariable):
  """A `tf.Variable` on each device, which holds its own slice."""

  def __init__(
    self,
    name: str,
    value: PlacementSlices,
    trainable: bool,
    devices: Sequence[str],
  ) -> None:
    self._devices = devices
    self.tf_variables = []
    for i, (x, device) in enumerate(
      zip(value.tensor_list, devices, strict=True)
    ):
      with tf.device(device):
        self.tf_variables.append(
          tf.Variable(
            x,
            trainable=trainable,
            name=f"{name}_slice_{i}",
            experimental_enable_variable_lifting=False,
          )
        )

  def read(self) -> PlacementSlices:
    """The current slices."""
    values = []
    for v, device in zip(self.tf_variables, self._devices, strict=True):
      with tf.device(device):
        values.append(v.read_value())
    return PlacementSlices(tuple(values))

  def assign(self, value: PlacementSlices) -> None:
    """Overwrites the slices."""
    for v, x in zip(self.tf_variables, value.tensor_list, strict=True):
      v.assign(x)


class PlacementMeshImpl(MeshImpl):
  """One TensorFlow operation for each processor, on the device given for it.

  Args:
    shape: the mesh dimensions.
    layout: the layout rules.
    devices: a device name for each processor, in row-major order, in any usual
      spelling (`gpu:0`, `/device:GPU:0`); `""` leaves the choice to TensorFlow.

  Raises:
    LayoutError: the number of devices is not that of the processors, or a name
      is not that of a device of this process.
  """

  LaidOutTensor = PlacementSlices
  LaidOutVariable = PlacementVariable

  def __init__(
    self, shape: ShapeLike, layout: LayoutLike, devices: Sequence[str]
  ) -> None:
    super().__init__(shape, layout)
    if len(devices) != self.size:
      raise LayoutError(
        f"mesh [{self.shape}] has {self.size} processors, but "
        f"{len(devices)} devices are given"
      )
    self._devices = [device_names.existing(device) for device in devices]

  @property
  def devices(self) -> list[str]:
    """The device of each processor, as TensorFlow spells it."""
    return list(self._devices)

  def slicewise(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Calls `fn` once for each processor."""
    results = []
    for pnum, device in enumerate(self._devices):
      with tf.device(device):
        results.append(fn(*(x.tensor_list[pnum] for x in xs)))
    return _gather(results)

  def map_trailing(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """The same as `slicewise`: there are no further axes here."""
    return self.slicewise(fn, *xs)

  def einsum(self, equation: str, *xs: Slices) -> Slices:
    """An einsum for each processor."""
    return self.slicewise(functools.partial(wide.einsum, equation), *xs)

  def processor_coordinate(self, mesh_axis: int) -> Slices:
    """A constant for each processor."""
    return self._from_pnum(
      lambda pnum: tf.constant(self._coordinates(pnum)[mesh_axis], tf.int32)
    )

  def _coordinates(self, pnum: int) -> list[int]:
    return pnum_to_processor_coordinates(self.shape, pnum)

  def _from_pnum(self, make: Callable[[int], tf.Tensor]) -> PlacementSlices:
    values = []
    for pnum, device in enumerate(self._devices):
      with tf.device(device):
        values.append(make(pnum))
    return PlacementSlices(tuple(values))

  def slice_sizes(self, x: Slices) -> list[int]:
    """The sizes of the first processor's slice; all are alike."""
    return x.tensor_list[0].shape.as_list()

  def dtype(self, x: Slices) -> tf.DType:
    """The dtype of every slice."""
    return x.tensor_list[0].dtype

  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """Cuts the slice of each processor out of the whole tensor."""
    value = tf.convert_to_tensor(value)
    size = self.slice_shape(shape)
    if size == shape.to_integer_list:
      return self._from_pnum(lambda pnum: tf.identity(value))
    return self._from_pnum(
      lambda pnum: tf.slice(value, self.slice_begin(shape, pnum), size)
    )

  def export_tensor(self, x: Slices, shape: Shape) -> tf.Tensor:
    """Joins the slices along the axes that are split."""
    layout = self.tensor_layout(shape)
    parts = dict(enumerate(x.tensor_list))
    for i, a in enumerate(layout):
      if a is not None:
        groups = processor_groups(self.shape, [a])
        joined = {
          group[0]: tf.concat([parts[p] for p in group], i) for group in groups
        }
        parts = _spread(joined, groups)
    return parts[0]

  def create_variable(
    self, name: str, value: Slices, trainable: bool
  ) -> PlacementVariable:
    """A variable on each device."""
    return PlacementVariable(name, value, trainable, self._devices)

  def distinct_slices(
    self, x: Slices, shape: Shape
  ) -> Iterator[tuple[list[int], tf.Tensor]]:
    """The slice of the first processor that holds each part."""
    seen = set()
    for pnum, value in enumerate(x.tensor_list):
      begin = self.slice_begin(shape, pnum)
      if tuple(begin) not in seen:
        seen.add(tuple(begin))
        yield begin, value

  def assemble(
    self, shape: Shape, read: Callable[[list[int], list[int]], tf.Tensor]
  ) -> Slices:
    """Reads each distinct slice once; replicas are copied."""
    size, known = self.slice_shape(shape), {}

    def make(pnum: int) -> tf.Tensor:
      begin = self.slice_begin(shape, pnum)
      if tuple(begin) not in known:
        known[tuple(begin)] = read(begin, size)
      return tf.identity(known[tuple(begin)])

    return self._from_pnum(make)

  def flatten(self, x: Slices) -> list[tf.Tensor]:
    """The tensors of all processors."""
    return list(x.tensor_list)

  def unflatten(self, like: Slices, tensors: Sequence[tf.Tensor]) -> Slices:
    """The tensors of all processors."""
    return PlacementSlices(tuple(tensors))

  def _allreduce(
    self, x: Slices, mesh_axes: tuple[int, ...], reduction: str
  ) -> Slices:
    combine = _COMBINE[reduction]
    out: dict[int, tf.Tensor] = {}
    groups = processor_groups(self.shape, mesh_axes)
    for group in groups:
      with tf.device(self._devices[group[0]]):
        out[group[0]] = combine([x.tensor_list[p] for p in group])
    spread = _spread(out, groups)
    return self._from_pnum(lambda pnum: tf.identity(spread[pnum]))

  def _allconcat(self, x: Slices, mesh_axis: int, concat_axis: int) -> Slices:
    group_of = self._groups((mesh_axis,))
    return self._from_pnum(
      lambda pnum: tf.concat(
        [x.tensor_list[p] for p in group_of[pnum]], concat_axis
      )
    )

  def _alltoall(
    self, x: Slices, mesh_axis: int, split_axis: int, concat_axis: int
  ) -> Slices:
    m, group_of = self.shape[mesh_axis].size, self._groups((mesh_axis,))
    parts = [tf.split(v, m, split_axis) for v in x.tensor_list]

    def make(pnum: int) -> tf.Tensor:
      mine = self._coordinates(pnum)[mesh_axis]
      return tf.concat([parts[p][mine] for p in group_of[pnum]], concat_axis)

    return self._from_pnum(make)

  def _permute(
    self,
    x: Slices,
    sources: Sequence[int],
    parts: Sequence[int],
    varies: Sequence[int],
  ) -> Slices:
    def make(pnum: int) -> tf.Tensor:
      part = parts[pnum]
      return tf.identity(x.tensor_list[sources[pnum]][part : part + 1])

    return self._from_pnum(make)

  def _shift(
    self, x: Slices, mesh_axis: int, offset: int, wrap: bool
  ) -> Slices:
    m, group_of = self.shape[mesh_axis].size, self._groups((mesh_axis,))

    def make(pnum: int) -> tf.Tensor:
      source = self._coordinates(pnum)[mesh_axis] - offset
      if wrap or 0 <= source < m:
        return tf.identity(x.tensor_list[group_of[pnum][source % m]])
      return tf.zeros_like(x.tensor_list[pnum])

    return self._from_pnum(make)

  def _groups(self, mesh_axes: Sequence[int]) -> dict[int, list[int]]:
    groups = processor_groups(self.shape, mesh_axes)
    return {p: group for group in groups for p in group}


def _spread(
  firsts: dict[int, tf.Tensor], groups: Sequence[Sequence[int]]
) -> dict[int, tf.Tensor]:
  """Gives every member of a group what its first member has."""
  return {p: firsts[group[0]] for group in groups for p in group}


def _gather(results: list[Any]) -> Any:
  """From one structure for each processor to a structure of slices."""
  return tf.nest.map_structure(lambda *ys: PlacementSlices(ys), *results)
