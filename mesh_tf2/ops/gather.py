"""Gather and scatter-add, each the other's gradient: lookups in a table.

If the table is split along the dimension that is looked up, each processor
looks up what it has, and an allreduce is left pending. The table itself never
travels. A gradient is summed over the mesh axes that split the indices.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape, ShapeLike, to_shape, union
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .cast import cast
from .linear.sum_broadcast import broadcast
from .source import constant


@dataclasses.dataclass(frozen=True)
class Table:
  """How a lookup sees its operands.

  A slice of the table is a list of rows, and a row is what one index finds:
  the dimensions behind `dim`. Those before it (and those shared with the
  indices) number the rows.

  Attributes:
    dim: the dimension that is looked up.
    batch: the other dimensions that number the rows.
    new: the dimensions of the indices that the table lacks.
    row: the dimensions of a row.
  """

  dim: Dimension
  batch: Shape
  new: Shape
  row: Shape

  @classmethod
  def of(cls, weights: Shape, indices: Shape, dim: Dimension) -> Table:
    """From the shapes of the operands."""
    at = weights.index(dim)
    before, behind = weights.dims[:at], Shape(weights.dims[at + 1 :])
    shared = behind.keep(indices)
    new = indices.drop(weights)
    return cls(dim, Shape([*before, *shared]), new, behind.drop(shared))

  @property
  def weights(self) -> Shape:
    """The table, row after row."""
    return Shape([*self.batch, self.dim, *self.row])

  @property
  def places(self) -> Shape:
    """What each index stands for."""
    return Shape([*self.batch, *self.new])

  @property
  def result(self) -> Shape:
    """What is found, row after row."""
    return Shape([*self.places, *self.row])


@dataclasses.dataclass(frozen=True)
class Gather(Primitive):
  """The rows of a table at the indices; zeros where there is no such row."""

  dim: Dimension
  output_shape: Shape

  def infer(self, weights: Aval, indices: Aval) -> Aval:
    _check(weights.shape, indices, self.dim)
    return Aval(self.output_shape, weights.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    weights, indices = op.inputs
    return [scatter_add(dy, indices, self.dim, weights.shape), None]

  def lower(
    self, mesh: MeshImpl, op: Apply, weights: Slices, indices: Slices
  ) -> Slices:
    shapes = [x.shape for x in op.inputs]
    table = Table.of(shapes[0], shapes[1], self.dim)

    def look_up(
      w: tf.Tensor, i: tf.Tensor, at: tf.Tensor, lead: tuple[int, ...]
    ) -> tf.Tensor:
      w = on_slice.align(w, shapes[0], table.weights)
      i = on_slice.align(i, shapes[1], table.places)
      rows = _Rows(table, _lead(w, table.weights), _trailing(w, table.weights))
      row, found = rows.find(i, at, _all_parts(at, lead))
      width = math.prod(_trailing(w, table.row))
      y = tf.gather(tf.reshape(w, [-1, width]), row)
      y = tf.where(found[..., tf.newaxis], y, tf.zeros([], y.dtype))
      y = tf.reshape(y, [*y.shape.as_list()[:-1], *_trailing(w, table.row)])
      y = tf.reduce_sum(y, lead) if lead else y
      order = [table.result.index(d) for d in self.output_shape]
      return on_slice.transpose(y, order)

    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    xs = [weights, indices, _coordinate(mesh, axis)]
    return mesh.map_trailing_sum(look_up, xs, mesh.axes([self.dim]))

  def iteration(self, op: Apply) -> Shape:
    return union(*(x.shape for x in op.inputs))


@dataclasses.dataclass(frozen=True)
class ScatterAdd(Primitive):
  """Adds rows to a table of zeros, at the indices."""

  dim: Dimension
  output_shape: Shape

  def infer(self, x: Aval, indices: Aval) -> Aval:
    _check(self.output_shape, indices, self.dim)
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

    def add_up(
      x: tf.Tensor, i: tf.Tensor, at: tf.Tensor, lead: tuple[int, ...]
    ) -> tf.Tensor:
      x = on_slice.align(x, shapes[0], table.result)
      i = on_slice.align(i, shapes[1], table.places)
      leads = [_lead(x, table.result), _lead(i, table.places), at.shape]
      sizes_in_front = [max(column) for column in zip(*leads, strict=True)]
      kept = [1 if j in lead else n for j, n in enumerate(sizes_in_front)]
      rows = _Rows(table, kept, sizes)
      row, found = rows.find(i, at, _all_parts(at, range(len(kept))))
      return self._sum(x, tf.where(found, row, -1), rows, lead, table)

    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    xs = [x, indices, _coordinate(mesh, axis)]
    return mesh.map_trailing_sum(add_up, xs, mesh.axes(table.new))

  def _sum(
    self,
    x: tf.Tensor,
    row: tf.Tensor,
    rows: _Rows,
    lead: tuple[int, ...],
    table: Table,
  ) -> tf.Tensor:
    """Adds each row of `x` to the row of the table with that number."""
    width = _trailing(x, table.row)
    places = x.shape.as_list()[: x.shape.rank - len(width)]
    both = tf.broadcast_static_shape(tf.TensorShape(places), row.shape)
    row = tf.reshape(tf.broadcast_to(row, both), [-1])
    x = tf.broadcast_to(x, [*both.as_list(), *width])
    x = tf.reshape(x, [-1, math.prod(width)])
    wide = tf.float32 if x.dtype.size < 4 and x.dtype.is_floating else x.dtype
    y = tf.math.unsorted_segment_sum(tf.cast(x, wide), row, rows.count)
    front = [n for j, n in enumerate(rows.lead) if j not in lead]
    y = tf.reshape(tf.cast(y, x.dtype), [*front, *rows.sizes])
    order = [table.weights.index(d) for d in self.output_shape]
    return on_slice.transpose(y, order)

  def iteration(self, op: Apply) -> Shape:
    return union(op.inputs[0].shape, self.output_shape)


@dataclasses.dataclass(frozen=True)
class _Rows:
  """Numbers of the rows of a slice of a table.

  `lead` are the sizes of the axes in front of the slice, `sizes` those of the
  slice in the order of `table.weights`.
  """

  table: Table
  lead: list[int]
  sizes: list[int]

  @property
  def count(self) -> int:
    """The number of rows."""
    here = self.sizes[: len(self.table.batch) + 1]
    return math.prod([*self.lead, *here])

  def find(
    self, indices: tf.Tensor, coordinate: tf.Tensor, all_parts: int | None
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """The row of each index, and whether there is one.

    Args:
      indices: in the whole table; the trailing axes are `table.places`.
      coordinate: which part of the table a slice is.
      all_parts: the axis in front that holds all parts in order, if an index
        is to be found in whichever part it is.
    """
    table, part = self.table, self.sizes[len(self.table.batch)]
    places, strides = len(table.places), self._strides()
    wide = tf.int32 if self.count < 2**31 else tf.int64
    wide = wide if indices.dtype == tf.int32 else tf.int64
    indices = tf.cast(indices, wide)
    if all_parts is None:
      begin = on_slice.append_axes(tf.cast(coordinate, wide) * part, places)
      row, found = self._within(indices - begin, part)
    else:
      row, found = self._within(indices, table.dim.size)
      row = row // part * strides[all_parts] + row % part
    numbered = [*self.lead, *self.sizes[: len(table.batch)]]
    rank = len(self.lead) + places
    for axis, n in enumerate(numbered):
      if n > 1 and axis != all_parts:
        steps = tf.range(n, dtype=wide) * strides[axis]
        row += tf.reshape(steps, [n, *[1] * (rank - axis - 1)])
    return row, found

  def _within(
    self, indices: tf.Tensor, size: int
  ) -> tuple[tf.Tensor, tf.Tensor]:
    found = tf.logical_and(indices >= 0, indices < size)
    return tf.where(found, indices, 0), found

  def _strides(self) -> list[int]:
    sizes = [*self.lead, *self.sizes[: len(self.table.batch) + 1]]
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def _coordinate(mesh: MeshImpl, mesh_axis: int | None) -> Slices:
  """Which part of the table a processor has."""
  if mesh_axis is None:
    return mesh.constant(tf.constant(0))
  return mesh.processor_coordinate(mesh_axis)


def _all_parts(coordinate: tf.Tensor, lead: Sequence[int]) -> int | None:
  """The axis of `lead` along which there are all coordinates, in order.

  A mesh that keeps its processors in axes in front has all parts of the table
  at hand, and can look into the right one at once.
  """
  sizes = coordinate.shape.as_list()
  return next((i for i in lead if sizes[i] > 1), None)


def _lead(x: tf.Tensor, shape: Shape) -> list[int]:
  sizes: list[int] = x.shape.as_list()
  return sizes[: len(sizes) - len(shape)]


def _trailing(x: tf.Tensor, shape: Shape) -> list[int]:
  sizes: list[int] = x.shape.as_list()
  return sizes[len(sizes) - len(shape) :]


def _check(weights: Shape, indices: Aval, dim: Dimension) -> None:
  if not indices.dtype.is_integer:
    raise ValueError(
      f"gather takes integer indices, got {indices.dtype.name}; cast them"
    )
  if dim.name in indices.shape.dimension_names:
    raise ShapeError(
      f"gather along '{dim.name}': the indices [{indices.shape}] have a "
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
    indices: integers. Rows whose index is outside [0, dim.size) are dropped.
    dim: the dimension of the result that the indices number.
    output_shape: the shape of the result.

  Raises:
    ShapeError: the shapes do not fit together.
  """
  return apply(ScatterAdd(dim, to_shape(output_shape)), x, indices)
