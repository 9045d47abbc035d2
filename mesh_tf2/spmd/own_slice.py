"""The instructions of a mesh as one of its processors carries them out.

A laid-out tensor is one TensorFlow tensor: the slice of the processor that runs
the program. What the processors have to say to each other goes through a
communicator. The program is as large for 512 processors as for two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from ..core.layout import LayoutLike, processor_groups
from ..core.shape import Shape, ShapeLike
from . import wide
from .communicators.base import Communicator
from .laid_out import Slices
from .mesh import MeshImpl


class OwnSliceMeshImpl(MeshImpl):
  """What every processor of a mesh does with its own slices.

  Args:
    shape: the mesh dimensions.
    layout: the layout rules.
    communicator: how processors send things to each other.
  """

  def __init__(
    self, shape: ShapeLike, layout: LayoutLike, communicator: Communicator
  ) -> None:
    super().__init__(shape, layout)
    self._communicator = communicator

  @contextlib.contextmanager
  def looped(self) -> Iterator[None]:
    """Tells the communicator."""
    with self._communicator.looped():
      yield

  # Instructions without communication.

  def slicewise(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Calls `fn`."""
    return fn(*xs)

  def map_trailing(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Calls `fn`: there are no further axes."""
    return fn(*xs)

  def einsum(self, equation: str, *xs: Slices) -> Slices:
    """An einsum of this processor's slices."""
    return wide.einsum(equation, *xs)

  def processor_coordinate(self, mesh_axis: int) -> Slices:
    """From the number of the processor."""
    size = self.shape[mesh_axis].size
    after = self.shape[mesh_axis + 1 :]
    stride = Shape(after).size
    return self._communicator.processor_number() // stride % size

  def slice_sizes(self, x: Slices) -> list[int]:
    """The sizes of the tensor."""
    return x.shape.as_list()

  def dtype(self, x: Slices) -> tf.DType:
    """The dtype of the tensor."""
    return x.dtype

  def flatten(self, x: Slices) -> list[tf.Tensor]:
    """The one tensor."""
    return [x]

  def unflatten(self, like: Slices, tensors: Sequence[tf.Tensor]) -> Slices:
    """The one tensor."""
    return tensors[0]

  # Input and output.

  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """Cuts the processor's own slice out of the whole tensor.

    Where the host can do that, it does: no more than the slice goes to the
    processor's device.
    """
    value = tf.convert_to_tensor(value)
    sizes = self.slice_shape(shape)
    if sizes == shape.to_integer_list:
      return value
    with self._communicator.on_host():
      begin = [
        0 if a is None else self.processor_coordinate(a) * n
        for a, n in zip(self.tensor_layout(shape), sizes, strict=True)
      ]
      return tf.slice(value, begin, sizes)

  def export_tensor(self, x: Slices, shape: Shape) -> tf.Tensor:
    """Joins the slices of all processors, on every one of them."""
    for i, a in enumerate(self.tensor_layout(shape)):
      if a is not None:
        x = self._allconcat(x, a, i)
    return x

  # Communication.

  def _allreduce(
    self, x: Slices, mesh_axes: tuple[int, ...], reduction: str
  ) -> Slices:
    groups = processor_groups(self.shape, mesh_axes)
    is_long = reduction == "SUM" and wide.is_long(x.dtype, len(groups[0]))
    sent = tf.cast(x, tf.float32) if is_long else x
    y = self._communicator.allreduce(sent, groups, reduction)
    return tf.cast(y, x.dtype)

  def _allconcat(self, x: Slices, mesh_axis: int, concat_axis: int) -> Slices:
    y = self._communicator.allgather(x, self._groups(mesh_axis))
    return _joined(y, concat_axis)

  def _alltoall(
    self, x: Slices, mesh_axis: int, split_axis: int, concat_axis: int
  ) -> Slices:
    parts = _parts(x, split_axis, self.shape[mesh_axis].size)
    y = self._communicator.alltoall(parts, self._groups(mesh_axis))
    return _joined(y, concat_axis)

  def _reduce_scatter(
    self, x: Slices, mesh_axis: int, split_axis: int
  ) -> Slices:
    parts = _parts(x, split_axis, self.shape[mesh_axis].size)
    return self._communicator.reduce_scatter(parts, self._groups(mesh_axis))

  def _permute(
    self,
    x: Slices,
    sources: Sequence[int],
    parts: Sequence[int],
    varies: Sequence[int],
  ) -> Slices:
    targets = dict(zip(sources, range(self.size), strict=True))
    sent = [parts[targets[n]] if n in targets else 0 for n in range(self.size)]
    mine = tf.gather(sent, self._communicator.processor_number())
    part = tf.gather(x, [mine], axis=0)
    groups = processor_groups(self.shape, self._axes_between(sources))
    return self._communicator.permute(part, sources, groups)

  def _shift(
    self, x: Slices, mesh_axis: int, offset: int, wrap: bool
  ) -> Slices:
    groups = self._groups(mesh_axis)
    sources: list[int | None] = [None] * self.size
    for group in groups:
      for i, number in enumerate(group):
        source = i - offset
        if wrap or 0 <= source < len(group):
          sources[number] = group[source % len(group)]
    return self._communicator.permute(x, sources, groups)

  def _groups(self, mesh_axis: int) -> list[list[int]]:
    return processor_groups(self.shape, [mesh_axis])


def _joined(x: tf.Tensor, axis: int) -> tf.Tensor:
  """Parts along the first axis, put one behind another along an axis."""
  count, *sizes = x.shape.as_list()
  order = [*range(1, axis + 1), 0, *range(axis + 1, len(sizes) + 1)]
  sizes[axis] *= count
  return tf.reshape(tf.transpose(x, order), sizes)


def _parts(x: tf.Tensor, axis: int, count: int) -> tf.Tensor:
  """The parts of an axis, along a new first one."""
  sizes = x.shape.as_list()
  cut = [*sizes[:axis], count, sizes[axis] // count, *sizes[axis + 1 :]]
  rest = [i for i in range(len(cut)) if i != axis]
  return tf.transpose(tf.reshape(x, cut), [axis, *rest])
