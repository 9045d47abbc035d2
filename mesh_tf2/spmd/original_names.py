"""Instructions under the names that Mesh TensorFlow has for them.

For operations that users have written: all are built from `Instructions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..core.graph import Tensor
from ..core.layout import processor_groups
from ..core.shape import Shape, ShapeLike, is_subsequence, to_shape
from . import slices as on_slice
from .instructions import Instructions
from .laid_out import Slices
from .lazy import (
  LazyAllreduceSum,
  compatible_lazy_allreduce_sums,
  convert_args_to_laid_out_tensors,
)


class OriginalNames(Instructions):
  """What can be asked of a mesh in the words of Mesh TensorFlow."""

  def slicewise_delay_allreduce(
    self, fn: Callable[..., Any], *inputs: Slices
  ) -> Any:
    """`fn` on every processor's slices; it must be linear.

    Sums that are still to be taken over the same mesh axes are taken
    afterwards, when somebody asks.
    """
    if not compatible_lazy_allreduce_sums(inputs):
      return self.slicewise(fn, *convert_args_to_laid_out_tensors(inputs))
    partial = self.slicewise(fn, *(x.partial() for x in inputs))
    counted = getattr(inputs[0], "add_counter_fn", None)
    return LazyAllreduceSum(self, partial, inputs[0].mesh_axes, counted)

  # Communication.

  def shift_by_n_processors(
    self, x: Slices, mesh_axis: int, offset: int, wrap: bool
  ) -> Slices:
    """The same as `shift`."""
    return self.shift(x, mesh_axis, offset, wrap)

  def receive(
    self, x: Slices, mesh_axis: int, source_pcoord: Sequence[int | None]
  ) -> Slices:
    """Each processor gets the slice of another one of its group.

    Args:
      x: slices.
      mesh_axis: the axis along which the processors of a group differ.
      source_pcoord: for each coordinate on that axis the one to receive from,
        or None, for zeros. A plain shift sends each slice once; anything else
        sends all slices to all processors of the group.
    """
    m = self.shape[mesh_axis].size
    for wrap in (True, False):
      for offset in range(1 - m, m):
        sources = [_source(i - offset, m, wrap) for i in range(m)]
        if sources == list(source_pcoord):
          return self.shift(x, mesh_axis, offset, wrap)
    every = self.allconcat(
      self.slicewise(lambda x: tf.expand_dims(x, 0), x), mesh_axis, 0
    )

    def choose(every: tf.Tensor, coordinate: tf.Tensor) -> tf.Tensor:
      sources = tf.constant([m if s is None else s for s in source_pcoord])
      padded = tf.concat([every, tf.zeros_like(every[:1])], 0)
      return tf.gather(padded, tf.gather(sources, coordinate))

    return self.slicewise(choose, every, self.processor_coordinate(mesh_axis))

  # Numbers of processors and slices.

  def laid_out_pcoord(self, mesh_axis: int) -> Slices:
    """Each processor's coordinate on a mesh axis, an int32 scalar."""
    return self.processor_coordinate(mesh_axis)

  def laid_out_pnum(self) -> Slices:
    """Each processor's number, an int32 scalar."""
    return self._number(range(self.ndims))

  def laid_out_slice_num(self, tensor_shape: ShapeLike) -> Slices:
    """The number of each processor's slice of a tensor, an int32 scalar.

    Slices are counted row-major, over the dimensions that are split.
    """
    layout = self.tensor_layout(to_shape(tensor_shape))
    return self._number([a for a in layout if a is not None])

  def _number(self, mesh_axes: Sequence[int]) -> Slices:
    sizes = [self.shape[a].size for a in mesh_axes]
    if not sizes:
      return self.import_tensor(tf.zeros([], tf.int32), Shape([]))

    def number(*coordinates: tf.Tensor) -> tf.Tensor:
      total = coordinates[0]
      for size, coordinate in zip(sizes[1:], coordinates[1:], strict=True):
        total = total * size + coordinate
      return total

    return self.map_trailing(number, *map(self.processor_coordinate, mesh_axes))

  # Whole tensors and slices.

  def broadcast_impl(
    self, old_slices: Slices, old_shape: ShapeLike, new_shape: ShapeLike
  ) -> Slices:
    """The slices of a tensor that is repeated along new dimensions.

    Args:
      old_slices: of a tensor of `old_shape`.
      old_shape: dimensions.
      new_shape: the same dimensions in the same order, with others between.

    Raises:
      ValueError: they are not.
    """
    old, new = to_shape(old_shape), to_shape(new_shape)
    if not is_subsequence(old.dims, new.dims):
      raise ValueError(
        f"broadcast_impl: [{old}] is not part of [{new}] in this order; "
        "transpose the slices first"
      )
    sizes = self.slice_shape(new)
    thin = [n if d in old else 1 for d, n in zip(new, sizes, strict=True)]

    # The result has to vary along every mesh axis that splits it.
    coordinates = map(self.processor_coordinate, self.axes(new.drop(old)))

    def repeat(x: tf.Tensor, *coordinates: tf.Tensor) -> tf.Tensor:
      y = on_slice.reshape(x, len(old), thin)
      leads = [y.shape.as_list()[: y.shape.rank - len(sizes)]]
      leads += [c.shape.as_list() for c in coordinates]
      lead = [max(column) for column in zip(*leads, strict=True)]
      return on_slice.broadcast_to(y, [*lead, *sizes])

    return self.map_trailing(repeat, old_slices, *coordinates)

  def make_slices(
    self, tf_tensor: tf.Tensor, tensor_shape: ShapeLike
  ) -> list[tf.Tensor]:
    """Cuts a whole tensor: the slice of each processor, in their order."""
    size = self.slice_shape(tensor_shape)
    return [
      tf.slice(tf_tensor, self.slice_begin(tensor_shape, pnum), size)
      for pnum in range(self.size)
    ]

  def combine_slices(
    self,
    slices: Sequence[tf.Tensor],
    tensor_shape: ShapeLike,
    device: str | None = None,
  ) -> tf.Tensor:
    """The inverse of `make_slices`.

    Args:
      slices: of each processor, in their order.
      tensor_shape: of the whole tensor.
      device: where to put it together; by default TensorFlow chooses.
    """
    parts = dict(enumerate(slices))
    with tf.device(device):
      for i, a in enumerate(self.tensor_layout(to_shape(tensor_shape))):
        if a is not None:
          for group in processor_groups(self.shape, [a]):
            joined = tf.concat([parts[p] for p in group], i)
            parts.update(dict.fromkeys(group, joined))
      return tf.identity(parts[0])

  def import_tf_tensor(self, x: Tensor, tf_x: tf.Tensor) -> Slices:
    """The slices of a whole tensor, laid out as the mesh tensor `x`."""
    return self.import_tensor(tf_x, x.shape)

  def export_to_tf_tensor(self, x: Tensor, laid_out_x: Slices) -> tf.Tensor:
    """The whole tensor, from slices laid out as the mesh tensor `x`."""
    (value,) = convert_args_to_laid_out_tensors([laid_out_x])
    return self.export_tensor(value, x.shape)

  def Print(
    self, x: Slices, data: Sequence[Slices], message: str, **kwargs: Any
  ) -> Slices:
    """`x`, unprinted: slices are printed by `mtf.Print` on whole tensors."""
    return x


def _source(coordinate: int, m: int, wrap: bool) -> int | None:
  if wrap:
    return coordinate % m
  return coordinate if 0 <= coordinate < m else None
