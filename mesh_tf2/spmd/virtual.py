"""A mesh of virtual processors inside one tensor on one device.

A laid-out tensor is one TensorFlow tensor with a leading axis for each mesh
axis along which it varies, in mesh order, and none for the others. Every slice
is really cut; collectives are reductions, transposes and rolls on the leading
axes. Neither the graph nor the work grows with the number of processors.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.layout import (
  pnum_to_processor_coordinates,
  processor_coordinates_to_pnum,
)
from ..core.shape import Dimension, Shape
from . import slices as on_slice
from . import wide
from .laid_out import PendingSum, Slices
from .mesh import MeshImpl
from .virtual_slices import (
  VirtualSlices,
  VirtualVariable,
  aligned,
  move,
  to_tensor,
  union,
  with_axes,
  wrap,
)

_LARGEST_CONSTANT = 4096  # elements: larger ones are computed where they run

_REDUCE = {
  "SUM": wide.reduce_sum,
  "MAX": tf.reduce_max,
  "MIN": tf.reduce_min,
}


class VirtualMeshImpl(MeshImpl):
  """Any mesh on one device, for one machine, for tests and for debugging."""

  LaidOutTensor = VirtualSlices
  LaidOutVariable = VirtualVariable
  is_one_device = True
  delays_sums = False  # nothing is sent, and partial sums are larger

  def slicewise(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Maps `fn` over the processors with `tf.vectorized_map`."""
    axes = union(xs)
    if not axes:
      return wrap(fn(*(x.value for x in xs)), ())
    sizes = [self.shape[a].size for a in axes]
    flat = [self._flat(x, axes, sizes) for x in xs]
    ys = tf.vectorized_map(lambda slices: fn(*slices), tuple(flat))

    def unflatten(y: tf.Tensor) -> tf.Tensor:
      return tf.reshape(y, [*sizes, *y.shape.as_list()[1:]])

    return wrap(tf.nest.map_structure(unflatten, ys), axes)

  def _flat(
    self, x: VirtualSlices, axes: Sequence[int], sizes: Sequence[int]
  ) -> tf.Tensor:
    trailing = self.slice_sizes(x)
    full = on_slice.broadcast_to(with_axes(x, axes), [*sizes, *trailing])
    return tf.reshape(full, [-1, *trailing])

  def map_trailing(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Runs `fn` once: the processors are further axes in front."""
    axes = union(xs)
    return wrap(fn(*(with_axes(x, axes) for x in xs)), axes)

  def map_points(
    self,
    fn: Callable[..., tf.Tensor],
    xs: Sequence[Slices],
    shapes: Sequence[Shape],
    target: Shape,
  ) -> Slices:
    """Leaves axes of size 1 in front to TensorFlow's broadcasting."""
    axes = union(xs)
    pairs = list(zip(xs, shapes, strict=True))
    is_any_full = any(
      len(x.axes) == len(axes) and len(s) == len(target) for x, s in pairs
    )

    ys = [aligned(x, s, target, axes, is_any_full) for x, s in pairs]
    return wrap(on_slice.on_points(fn, *ys), axes)

  def map_trailing_sum(
    self,
    fn: Callable[..., tf.Tensor],
    xs: Sequence[Slices],
    mesh_axes: Sequence[int],
  ) -> Slices:
    """Sums over the processors inside `fn` when the sum is asked for."""
    axes = union(xs)
    values = [with_axes(x, axes) for x in xs]

    def partial() -> Slices:
      return VirtualSlices(fn(*values, lead=()), axes)

    def total() -> Slices:
      lead = tuple(i for i, a in enumerate(axes) if a in mesh_axes)
      kept = tuple(a for a in axes if a not in mesh_axes)
      y = VirtualSlices(fn(*values, lead=lead), kept)
      self._record("allreduce", mesh_axes, y)
      return y

    return PendingSum(mesh_axes, partial, total) if mesh_axes else partial()

  def einsum(self, equation: str, *xs: Slices) -> Slices:
    """The mesh axes become batch letters of the equation."""
    return self._einsum(equation, xs, ())

  def einsum_sum(
    self, equation: str, xs: Sequence[Slices], mesh_axes: Sequence[int]
  ) -> Slices:
    """Sums over the mesh inside the einsum when the sum is asked for."""
    if not mesh_axes:
      return self._einsum(equation, xs, ())

    def total() -> Slices:
      y = self._einsum(equation, xs, mesh_axes)
      self._record("allreduce", mesh_axes, y)
      return y

    return PendingSum(mesh_axes, lambda: self._einsum(equation, xs, ()), total)

  def _einsum(
    self, equation: str, xs: Sequence[VirtualSlices], summed: Sequence[int]
  ) -> VirtualSlices:
    letters = string.ascii_uppercase
    axes = tuple(a for a in union(xs) if a not in summed)
    ins, out = equation.split("->")

    def spell(axes: Sequence[int]) -> str:
      return "".join(letters[a] for a in axes)

    pairs = zip(xs, ins.split(","), strict=True)
    ins = ",".join(spell(x.axes) + term for x, term in pairs)
    values = [x.value for x in xs]
    return VirtualSlices(
      wide.einsum(f"{ins}->{spell(axes)}{out}", *values), axes
    )

  def processor_coordinate(self, mesh_axis: int) -> Slices:
    """0, 1, ... along the mesh axis."""
    return VirtualSlices(tf.range(self.shape[mesh_axis].size), (mesh_axis,))

  def _index_along(
    self, dim: Dimension, stride: int, sizes: Sequence[int]
  ) -> Slices:
    if dim.size > _LARGEST_CONSTANT:
      return super()._index_along(dim, stride, sizes)
    index = np.arange(dim.size, dtype=np.uint64) * np.uint64(stride)
    axis = self.tensor_dimension_to_mesh_axis(dim)
    if axis is None:
      return VirtualSlices(to_tensor(index.reshape(sizes)), ())
    index = index.reshape([self.shape[axis].size, *sizes])
    return VirtualSlices(to_tensor(index), (axis,))

  def slice_sizes(self, x: Slices) -> list[int]:
    """The trailing sizes."""
    return x.value.shape.as_list()[len(x.axes) :]

  def dtype(self, x: Slices) -> tf.DType:
    """The dtype of the tensor."""
    return x.value.dtype

  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """Cuts the split axes in two and moves the processors to the front."""
    x = VirtualSlices(tf.convert_to_tensor(value), ())
    for i, a in enumerate(self.tensor_layout(shape)):
      if a is not None:
        x = self.allsplit(x, a, i)
    return x

  def export_tensor(self, x: Slices, shape: Shape) -> tf.Tensor:
    """Moves the processors back into the axes that they split."""
    for i, a in enumerate(self.tensor_layout(shape)):
      if a is not None:
        x = self._allconcat(x, a, i)
    return x.value

  def create_variable(
    self, name: str, value: Slices, trainable: bool
  ) -> VirtualVariable:
    """One `tf.Variable` that holds every slice once."""
    return VirtualVariable(name, value, trainable)

  def distinct_slices(
    self, x: Slices, shape: Shape
  ) -> Iterator[tuple[list[int], tf.Tensor]]:
    """Indexes the leading axes."""
    for at in itertools.product(*(range(self.shape[a].size) for a in x.axes)):
      yield self._begin(dict(zip(x.axes, at, strict=True)), shape), x.value[at]

  def assemble(
    self, shape: Shape, read: Callable[[list[int], list[int]], tf.Tensor]
  ) -> Slices:
    """Stacks the slices along the leading axes."""
    axes, size = self.tensor_layout(shape).mesh_axes, self.slice_shape(shape)
    counts = [self.shape[a].size for a in axes]
    ats = itertools.product(*map(range, counts))
    parts = [
      read(self._begin(dict(zip(axes, at, strict=True)), shape), size)
      for at in ats
    ]
    if not axes:
      return VirtualSlices(parts[0], ())
    return VirtualSlices(tf.reshape(tf.stack(parts), [*counts, *size]), axes)

  def _begin(self, at: dict[int, int], shape: Shape) -> list[int]:
    pairs = zip(self.tensor_layout(shape), self.slice_shape(shape), strict=True)
    return [0 if a is None else at[a] * n for a, n in pairs]

  def flatten(self, x: Slices) -> list[tf.Tensor]:
    """The one tensor."""
    return [x.value]

  def unflatten(self, like: Slices, tensors: Sequence[tf.Tensor]) -> Slices:
    """The one tensor, with the mesh axes of `like`."""
    return VirtualSlices(tensors[0], like.axes)

  def allsplit(
    self,
    x: Slices,
    mesh_axis: int,
    split_axis: int,
    which: Slices | None = None,
  ) -> Slices:
    """Cuts an axis in two; its outer half becomes a leading axis."""
    if which is not None:
      return super().allsplit(x, mesh_axis, split_axis, which)
    m, lead = self.shape[mesh_axis].size, len(x.axes)
    sizes = x.value.shape.as_list()
    at = lead + split_axis
    cut = [*sizes[:at], m, sizes[at] // m, *sizes[at + 1 :]]
    axes = tuple(sorted((*x.axes, mesh_axis)))
    y = move(tf.reshape(x.value, cut), at, axes.index(mesh_axis))
    return VirtualSlices(y, axes)

  def _allconcat(self, x: Slices, mesh_axis: int, concat_axis: int) -> Slices:
    m, lead = self.shape[mesh_axis].size, len(x.axes)
    if mesh_axis not in x.axes:
      copies = [1] * lead + [1] * len(self.slice_sizes(x))
      copies[lead + concat_axis] = m
      return VirtualSlices(tf.tile(x.value, copies), x.axes)
    at = lead - 1 + concat_axis
    y = move(x.value, x.axes.index(mesh_axis), at)
    sizes = y.shape.as_list()
    joined = [*sizes[:at], m * sizes[at + 1], *sizes[at + 2 :]]
    axes = tuple(a for a in x.axes if a != mesh_axis)
    return VirtualSlices(tf.reshape(y, joined), axes)

  def _alltoall(
    self, x: Slices, mesh_axis: int, split_axis: int, concat_axis: int
  ) -> Slices:
    sizes = self.slice_sizes(x)
    m = self.shape[mesh_axis].size
    # The part that each processor will hold becomes an axis of its own, so
    # that joining the old parts cannot mix with it.
    cut = [*sizes[:split_axis], m, sizes[split_axis] // m]
    cut += sizes[split_axis + 1 :]
    y = self.map_trailing(lambda x: on_slice.reshape(x, len(sizes), cut), x)
    y = self._allconcat(y, mesh_axis, concat_axis + (concat_axis > split_axis))
    y = self.allsplit(y, mesh_axis, split_axis)
    final = list(sizes)
    final[split_axis] //= m
    final[concat_axis] *= m
    return self.map_trailing(lambda x: on_slice.reshape(x, len(cut), final), y)

  def _allreduce(
    self, x: Slices, mesh_axes: tuple[int, ...], reduction: str
  ) -> Slices:
    here = [a for a in mesh_axes if a in x.axes]
    y = _REDUCE[reduction](x.value, [x.axes.index(a) for a in here])
    copies = 1
    for a in set(mesh_axes) - set(here):
      copies *= self.shape[a].size
    if reduction == "SUM" and copies > 1:
      y *= tf.cast(copies, y.dtype)
    return VirtualSlices(y, tuple(a for a in x.axes if a not in here))

  def sum_scattered(
    self,
    x: PendingSum,
    change: Callable[[Slices], Slices],
    places: Mapping[int, int],
  ) -> Slices:
    """Sums inside the function that makes the parts, and splits afterwards."""
    with x.counting():
      with self.unobserved():
        y = change(x.fresh_total())
      for a, at in places.items():
        y = self.allsplit(y, a, at)
        self._record("reduce_scatter", (a,), y)
      if rest := [a for a in x.mesh_axes if a not in places]:
        self._record("allreduce", rest, y)
      return y

  def _permute(
    self,
    x: Slices,
    sources: Sequence[int],
    parts: Sequence[int],
    varies: Sequence[int],
  ) -> Slices:
    sizes = self.slice_sizes(x)
    own = [self.shape[a].size for a in x.axes]
    axes = tuple(sorted(varies))
    counts = [self.shape[a].size for a in axes]
    wanted = []
    for at in itertools.product(*map(range, counts)):
      place = dict(zip(axes, at, strict=True))
      pnum = processor_coordinates_to_pnum(
        self.shape, [place.get(a, 0) for a in range(self.ndims)]
      )
      source = pnum_to_processor_coordinates(self.shape, sources[pnum])
      row = 0
      for a, n in zip(x.axes, own, strict=True):
        row = row * n + source[a]
      wanted.append(row * sizes[0] + parts[pnum])
    flat = tf.reshape(x.value, [math.prod(own) * sizes[0], *sizes[1:]])
    y = tf.gather(flat, tf.constant(wanted, tf.int32))
    return VirtualSlices(tf.reshape(y, [*counts, 1, *sizes[1:]]), axes)

  def _shift(
    self, x: Slices, mesh_axis: int, offset: int, wrap: bool
  ) -> Slices:
    m = self.shape[mesh_axis].size
    if mesh_axis not in x.axes:
      axes = tuple(sorted((*x.axes, mesh_axis)))
      full = with_axes(x, axes)
      sizes = full.shape.as_list()
      sizes[axes.index(mesh_axis)] = m
      x = VirtualSlices(tf.broadcast_to(full, sizes), axes)
    at = x.axes.index(mesh_axis)
    if wrap:
      return VirtualSlices(tf.roll(x.value, offset, at), x.axes)
    kept = max(m - abs(offset), 0)
    gap = m - kept
    y = on_slice.cut(x.value, at, max(-offset, 0) if kept else 0, kept)
    y = on_slice.pad(y, at, *((gap, 0) if offset > 0 else (0, gap)))
    return VirtualSlices(y, x.axes)
