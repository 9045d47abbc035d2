"""Gather and scatter-add, each the other's gradient: lookups in a table.

If the table is split along the dimension that is looked up, each processor
looks up what it has, and an allreduce is left pending. The table itself never
travels. A gradient is summed over the mesh axes that split the indices.

Where table and indices are split over the same mesh axis, the indices are
gathered, and a reduce-scatter takes the place of the allreduce; for the
gradient, what is found is gathered.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Tensor, apply
from ..core.primitive import Primitive
from ..core.shape import Dimension, Shape, ShapeLike, to_shape, union
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .cast import cast
from .linear.sum_broadcast import broadcast
from .rows import (
  Rows,
  Table,
  all_parts,
  gathered_places,
  lead_sizes,
  meeting,
  part_number,
  rows_of_places,
  scatter,
  summed_axes,
  trailing_sizes,
)
from .source import constant


@dataclasses.dataclass(frozen=True)
class Gather(Primitive):
  """The rows of a table at the indices; zeros where there is no such row."""

  dim: Dimension
  output_shape: Shape
  flops_per_point = 0

  def infer(self, weights: Aval, indices: Aval) -> Aval:
    check_indices(self.name, indices, self.dim)
    weights.shape.index(self.dim)
    return Aval(self.output_shape, weights.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    weights, indices = op.inputs
    return [scatter_add(dy, indices, self.dim, weights.shape), None]

  def lower(
    self, mesh: MeshImpl, op: Apply, weights: Slices, indices: Slices
  ) -> Slices:
    shapes = (op.inputs[0].shape, op.inputs[1].shape)
    return look_up(mesh, self, shapes, weights, indices)


def look_up(
  mesh: MeshImpl,
  gather: Gather,
  shapes: tuple[Shape, Shape],
  weights: Slices,
  indices: Slices,
) -> Slices:
  """What `gather` finds, on the slices of tensors of these shapes."""
  table = Table.of(*shapes, gather.dim)
  order = [table.result.index(d) for d in gather.output_shape]

  def find(
    w: tf.Tensor, i: tf.Tensor, at: tf.Tensor, lead: tuple[int, ...]
  ) -> tf.Tensor:
    w = on_slice.align(w, shapes[0], table.weights)
    i = on_slice.align(i, shapes[1], table.places)
    sizes = trailing_sizes(w, table.weights)
    rows = Rows(table, lead_sizes(w, table.weights), sizes)
    row, found = rows.find(i, at, all_parts(at, lead))
    width = trailing_sizes(w, table.row)
    y = tf.gather(tf.reshape(w, [-1, math.prod(width)]), row)
    y = tf.where(found[..., tf.newaxis], y, tf.zeros([], y.dtype))
    y = tf.reshape(y, [*y.shape.as_list()[:-1], *width])
    y = tf.reduce_sum(y, lead) if lead else y
    return on_slice.transpose(y, order)

  axis = mesh.tensor_dimension_to_mesh_axis(gather.dim)
  indices = gathered_places(mesh, table, shapes[1], indices)
  xs = [weights, indices, part_number(mesh, axis)]
  y = mesh.map_trailing_sum(find, xs, mesh.axes([gather.dim]))
  if (dim := meeting(mesh, table)) is None or axis is None:
    return y
  place = gather.output_shape.index(dim)
  return mesh.sum_scattered(y, lambda y: y, {axis: place})


@dataclasses.dataclass(frozen=True)
class ScatterAdd(Primitive):
  """Adds rows to a table of zeros, at the indices."""

  dim: Dimension
  output_shape: Shape

  @property
  def name(self) -> str:
    return "scatter_add"

  def infer(self, x: Aval, indices: Aval) -> Aval:
    check_indices(self.name, indices, self.dim)
    if x.dtype == tf.bool:
      raise ValueError("scatter_add takes numbers, got bool; cast them")
    table = Table.of(self.output_shape, indices.shape, self.dim)
    if set(x.shape) != set(table.result):
      raise ShapeError(
        f"scatter_add of [{x.shape}] at [{indices.shape}] into "
        f"[{self.output_shape}] along {self.dim.name} needs [{table.result}]"
      )
    return Aval(self.output_shape, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    x, indices = op.inputs
    return [gather(dy, indices, self.dim, x.shape), None]

  def lower(
    self, mesh: MeshImpl, op: Apply, x: Slices, indices: Slices
  ) -> Slices:
    shapes = [x.shape for x in op.inputs]
    table = Table.of(self.output_shape, shapes[1], self.dim)
    sizes = mesh.slice_shape(table.weights)
    order = [table.weights.index(d) for d in self.output_shape]

    def add_up(
      x: tf.Tensor, i: tf.Tensor, at: tf.Tensor, lead: tuple[int, ...]
    ) -> tf.Tensor:
      x = on_slice.align(x, shapes[0], table.result)
      i = on_slice.align(i, shapes[1], table.places)
      rows, row = rows_of_places(table, sizes, x, i, at, lead)
      return on_slice.transpose(scatter(_sum, x, row, rows, lead), order)

    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    xs = [
      gathered_places(mesh, table, shapes[0], x),
      gathered_places(mesh, table, shapes[1], indices),
      part_number(mesh, axis),
    ]
    return mesh.map_trailing_sum(add_up, xs, summed_axes(mesh, table))

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


def _sum(x: tf.Tensor, row: tf.Tensor, count: int) -> tf.Tensor:
  """Adds up rows with the same number; 16-bit floats in float32."""
  wide = tf.float32 if x.dtype.size < 4 and x.dtype.is_floating else x.dtype
  y = tf.math.unsorted_segment_sum(tf.cast(x, wide), row, count)
  return tf.cast(y, x.dtype)


def check_indices(label: str, indices: Aval, dim: Dimension) -> None:
  """Raises an error unless they can be indices along `dim`."""
  if not indices.dtype.is_integer:
    raise ValueError(
      f"{label} takes integer indices, got {indices.dtype.name}; cast them"
    )
  if dim.name in indices.shape.dimension_names:
    raise ShapeError(
      f"{label} along '{dim.name}': the indices [{indices.shape}] have a "
      "dimension of that name; rename it first"
    )


def gather(
  weights: Tensor,
  indices: Any,
  dim: Dimension,
  output_shape: ShapeLike | None = None,
) -> Tensor:
  """Looks up rows of a table.

  Args:
    weights: the table, of any dtype. It may be split along any dimension.
    indices: integers, as a tensor or one number. For a dimension that both
      have, element i of the indices looks into element i of the table. An
      index outside [0, dim.size) finds zeros.
    dim: the dimension of `weights` that is looked up.
    output_shape: all dimensions of the result, in order; others are broadcast.
      By default those of the indices, then those of the table.

  Raises:
    ShapeError: `weights` lacks `dim`, or the indices have it.
  """
  if not isinstance(indices, Tensor):
    indices = constant(weights.mesh, indices, dtype=tf.int32)
  if weights.dtype == tf.bool:
    numbers = cast(weights, tf.int32)
    return cast(gather(numbers, indices, dim, output_shape), tf.bool)
  kept = weights.shape - dim
  found = union(indices.shape, kept)
  wanted = found if output_shape is None else to_shape(output_shape)
  if lost := found.drop(wanted):
    raise ShapeError(
      f"gather finds [{found}]; output_shape=[{wanted}] lacks [{lost}]"
    )
  return broadcast(
    apply(Gather(dim, wanted.keep(found)), weights, indices), wanted
  )


def scatter_add(
  x: Tensor, indices: Tensor, dim: Dimension, output_shape: ShapeLike
) -> Tensor:
  """Adds up the rows that have the same index.

  Args:
    x: the rows: all dimensions of the indices and of `output_shape` but `dim`.
      Numbers; 16-bit floats are added up in float32.
    indices: integers. Rows whose index is outside [0, dim.size) are dropped.
    dim: the dimension of the result that the indices number.
    output_shape: the shape of the result.

  Raises:
    ShapeError: the shapes do not fit together.
  """
  return apply(ScatterAdd(dim, to_shape(output_shape)), x, indices)
