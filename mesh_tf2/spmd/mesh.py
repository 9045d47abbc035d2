"""The instruction set of a mesh: what a lowering may ask of its processors.

What an implementation has to have is in `instructions.py`; everything that can
be built from that is built once, in this file. `original_names.py` has more of
it, under the names of Mesh TensorFlow, for operations that users have written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from ..core.shape import Dimension, Shape
from . import slices as on_slice
from .laid_out import PendingSum, Slices
from .original_names import OriginalNames


class MeshImpl(OriginalNames):
  """A mesh shape, layout rules, and the instructions of its processors.

  Args:
    shape: the mesh dimensions; no dimensions mean one processor.
    layout_rules: which tensor dimensions are split over which mesh dimensions.
  """

  def map_trailing_sum(
    self,
    fn: Callable[..., tf.Tensor],
    xs: Sequence[Slices],
    mesh_axes: Sequence[int],
  ) -> Slices:
    """`map_trailing`, to be summed over `mesh_axes` when somebody asks.

    `fn` takes a further argument `lead`: those of the axes in front over which
    it is to sum as well (and to drop), none where there are no such axes.
    """
    y = self.map_trailing(lambda *xs: fn(*xs, lead=()), *xs)
    return self.pending_sum(y, mesh_axes)

  def reduce_scatter(
    self, x: Slices, mesh_axis: int, split_axis: int
  ) -> Slices:
    """The sum over a mesh axis; each processor gets its own part of an axis."""
    y = self._reduce_scatter(x, mesh_axis, split_axis)
    self._record("reduce_scatter", (mesh_axis,), y)
    return y

  def allsplit(
    self,
    x: Slices,
    mesh_axis: int,
    split_axis: int,
    which: Slices | None = None,
  ) -> Slices:
    """Each processor keeps its own part of an axis. No communication.

    Args:
      x: slices that are alike along `mesh_axis`.
      mesh_axis: there are as many parts as it has processors.
      split_axis: the axis of a slice that is cut.
      which: the number of the part that each processor keeps, an int32 scalar;
        by default its coordinate on `mesh_axis`.
    """
    m = self._shape[mesh_axis].size
    sizes = self.slice_sizes(x)
    part = sizes[split_axis] // m
    at = split_axis - len(sizes)

    def keep(x: tf.Tensor, coordinate: tf.Tensor) -> tf.Tensor:
      return tf.gather(x, tf.range(part) + coordinate * part, axis=at)

    chosen = self.processor_coordinate(mesh_axis) if which is None else which
    return self.slicewise(keep, x, chosen)

  def pending_sum(self, x: Slices, mesh_axes: Sequence[int]) -> Slices:
    """`x`, to be summed over `mesh_axes` when somebody needs the sum."""
    if not mesh_axes:
      return x
    return PendingSum(
      mesh_axes, lambda: x, lambda: self.allreduce(x, mesh_axes, "SUM")
    )

  def _reduce_scatter(
    self, x: Slices, mesh_axis: int, split_axis: int
  ) -> Slices:
    total = self._allreduce(x, (mesh_axis,), "SUM")
    return self.allsplit(total, mesh_axis, split_axis)

  def sum_scattered(
    self,
    x: PendingSum,
    change: Callable[[Slices], Slices],
    places: Mapping[int, int],
  ) -> Slices:
    """Takes a pending sum, so that a processor gets just its own part.

    Args:
      x: a sum over at least the mesh axes in `places`.
      change: a linear function of slices without communication, to be called
        first.
      places: for each mesh axis to split, the axis of a slice that it splits.
        Read after `change` is called.
    """
    with x.counting():
      y = change(x.partial())
      for a, at in places.items():
        y = self.reduce_scatter(y, a, at)
      rest = [a for a in x.mesh_axes if a not in places]
      return self.allreduce(y, rest)

  def einsum_sum(
    self, equation: str, xs: Sequence[Slices], mesh_axes: Sequence[int]
  ) -> Slices:
    """Einsum, to be summed over `mesh_axes` when somebody needs the sum."""
    return self.pending_sum(self.einsum(equation, *xs), mesh_axes)

  def map_points(
    self,
    fn: Callable[..., tf.Tensor],
    xs: Sequence[Slices],
    shapes: Sequence[Shape],
    target: Shape,
  ) -> Slices:
    """Runs a function of elements, broadcasting slices to those of `target`.

    Args:
      fn: takes a TensorFlow tensor for each of `xs`, and broadcasts over them.
      xs: slices of tensors that have some of the dimensions of `target`.
      shapes: those of the tensors.
      target: the dimensions of the result, in order.
    """

    def aligned(*xs: tf.Tensor) -> tf.Tensor:
      pairs = zip(xs, shapes, strict=True)
      ys = (on_slice.align(x, s, target) for x, s in pairs)
      return on_slice.on_points(fn, *ys)

    return self.map_trailing(aligned, *xs)

  def global_index(self, shape: Shape) -> Slices:
    """The row-major position in the whole tensor of each element: uint64."""
    total, stride = None, 1
    for i in reversed(range(len(shape))):
      sizes = [1] * len(shape)
      (sizes[i],) = self.slice_shape(Shape([shape[i]]))
      part = self._index_along(shape[i], stride, sizes)
      total = part if total is None else self.map_trailing(tf.add, total, part)
      stride *= shape[i].size
    return self.constant(tf.zeros([], tf.uint64)) if total is None else total

  def _index_along(
    self, dim: Dimension, stride: int, sizes: Sequence[int]
  ) -> Slices:
    """0, stride, 2 stride, ... along a dimension, as slices of `sizes`."""
    n = math.prod(sizes)
    steps = tf.cast(tf.range(n, dtype=tf.int64), tf.uint64) * _u64(stride)
    local = tf.reshape(steps, sizes)
    axis = self.tensor_dimension_to_mesh_axis(dim)
    if axis is None:
      return self.constant(local)

    def add(coordinate: tf.Tensor) -> tf.Tensor:
      begin = tf.cast(coordinate, tf.uint64) * _u64(n * stride)
      return on_slice.append_axes(begin, len(sizes)) + local

    return self.map_trailing(add, self.processor_coordinate(axis))

  def positions(self, dim: Dimension, dtype: Any = tf.int32) -> Slices:
    """Each processor's part of 0, 1, ..., dim.size - 1."""
    (n,) = self.slice_shape(Shape([dim]))
    local = tf.range(n)
    axis = self.tensor_dimension_to_mesh_axis(dim)
    if axis is None:
      return self.constant(tf.cast(local, dtype))

    def add(coordinate: tf.Tensor) -> tf.Tensor:
      return tf.cast(on_slice.append_axes(coordinate * n, 1) + local, dtype)

    return self.map_trailing(add, self.processor_coordinate(axis))

  def constant(self, value: tf.Tensor) -> Slices:
    """The same value on every processor."""
    anonymous = Shape((f"_{i}", n) for i, n in enumerate(value.shape.as_list()))
    return self.import_tensor(value, anonymous)

  def full(self, value: tf.Tensor, shape: Shape) -> Slices:
    """Slices of a tensor of `shape`, each element the scalar `value`."""
    sizes = self.slice_shape(shape)
    axes = self.tensor_layout(shape).mesh_axes
    if not axes:
      return self.constant(tf.fill(sizes, value))

    def fill(*coordinates: tf.Tensor) -> tf.Tensor:
      ranked = [c.shape.as_list() for c in coordinates]
      lead = [max(column) for column in zip(*ranked, strict=True)]
      return tf.fill([*lead, *sizes], value)

    return self.map_trailing(fill, *map(self.processor_coordinate, axes))

  def broadcast_to(self, x: Slices, shape: Shape) -> Slices:
    """Fills up a slice with size-1 axes to the slice of `shape`."""
    sizes = self.slice_shape(shape)
    if self.slice_sizes(x) == sizes:
      return x

    def fill(x: tf.Tensor) -> tf.Tensor:
      lead = x.shape.as_list()[: x.shape.rank - len(sizes)]
      return on_slice.broadcast_to(x, [*lead, *sizes])

    return self.map_trailing(fill, x)


def _u64(value: int) -> tf.Tensor:
  return tf.constant(value, tf.uint64)
