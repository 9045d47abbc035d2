"""The rows of a table, numbered: where a lookup finds them on a processor.

A slice of the table is a list of rows. An index that is another processor's is
not found; a mesh that keeps all parts in one tensor finds them all at once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl


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
class Rows:
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


def meeting(mesh: MeshImpl, table: Table) -> Dimension | None:
  """The dimension of the indices that is split over the table's mesh axis."""
  axis = mesh.tensor_dimension_to_mesh_axis(table.dim)
  if axis is None:
    return None
  axes = map(mesh.tensor_dimension_to_mesh_axis, table.new)
  pairs = zip(table.new, axes, strict=True)
  return next((d for d, a in pairs if a == axis), None)


def gathered_places(
  mesh: MeshImpl, table: Table, shape: Shape, x: Slices
) -> Slices:
  """Gathers what would have to meet a table on the same mesh axis.

  Every processor has a part of the table for all places of its group.

  Args:
    mesh: the mesh.
    table: how the rows are numbered.
    shape: of the indices, or of what goes into the rows.
    x: its slices.
  """
  dim = meeting(mesh, table)
  axis = mesh.tensor_dimension_to_mesh_axis(table.dim)
  if dim is None or axis is None:
    return x
  return mesh.allconcat(x, axis, shape.index(dim))


def summed_axes(mesh: MeshImpl, table: Table) -> tuple[int, ...]:
  """The mesh axes over which the rows of all places are joined."""
  gathered = meeting(mesh, table)
  return mesh.axes([d for d in table.new if d != gathered])


def part_number(mesh: MeshImpl, mesh_axis: int | None) -> Slices:
  """Which part of the table a processor has."""
  if mesh_axis is None:
    return mesh.constant(tf.constant(0))
  return mesh.processor_coordinate(mesh_axis)


def all_parts(coordinate: tf.Tensor, lead: Sequence[int]) -> int | None:
  """The axis of `lead` along which there are all coordinates, in order.

  A mesh that keeps its processors in axes in front has all parts of the table
  at hand, and can look into the right one at once.
  """
  sizes = coordinate.shape.as_list()
  return next((i for i in lead if sizes[i] > 1), None)


def lead_sizes(x: tf.Tensor, shape: Shape) -> list[int]:
  """The sizes of the axes in front of those of `shape`."""
  sizes: list[int] = x.shape.as_list()
  return sizes[: len(sizes) - len(shape)]


def trailing_sizes(x: tf.Tensor, shape: Shape) -> list[int]:
  """The sizes of the last axes, those of `shape`."""
  sizes: list[int] = x.shape.as_list()
  return sizes[len(sizes) - len(shape) :]


def scatter(
  combine: Callable[[tf.Tensor, tf.Tensor, int], tf.Tensor],
  x: tf.Tensor,
  row: tf.Tensor,
  rows: Rows,
  lead: Sequence[int] = (),
) -> tf.Tensor:
  """Joins each row of `x` with the rows of the table that have its number.

  Args:
    combine: `f(rows, numbers, count)`, like `tf.math.unsorted_segment_sum`.
    x: the trailing axes are `rows.table.result`.
    row: their numbers, negative for none.
    rows: of the slice of the table.
    lead: axes of `rows.lead`, of size 1, that the result lacks.
  """
  width = trailing_sizes(x, rows.table.row)
  places = x.shape.as_list()[: x.shape.rank - len(width)]
  both = tf.broadcast_static_shape(tf.TensorShape(places), row.shape)
  row = tf.reshape(tf.broadcast_to(row, both), [-1])
  x = tf.broadcast_to(x, [*both.as_list(), *width])
  y = combine(tf.reshape(x, [-1, math.prod(width)]), row, rows.count)
  front = [n for j, n in enumerate(rows.lead) if j not in lead]
  return tf.reshape(y, [*front, *rows.sizes])


def rows_of_places(
  table: Table,
  sizes: list[int],
  x: tf.Tensor,
  indices: tf.Tensor,
  coordinate: tf.Tensor,
  lead: Sequence[int] = (),
) -> tuple[Rows, tf.Tensor]:
  """The rows of a table that is to be made, and the row of each place.

  Args:
    table: how the rows are numbered.
    sizes: of a slice of the table, in the order of `table.weights`.
    x: what goes into the rows; the trailing axes are `table.result`.
    indices: the trailing axes are `table.places`.
    coordinate: which part of the table a slice is.
    lead: axes in front over which the places are joined.

  Returns:
    The rows, and their numbers, -1 for a place without a row.
  """
  leads = [
    lead_sizes(x, table.result),
    lead_sizes(indices, table.places),
    coordinate.shape.as_list(),
  ]
  front = [max(column) for column in zip(*leads, strict=True)]
  kept = [1 if j in lead else n for j, n in enumerate(front)]
  rows = Rows(table, kept, sizes)
  parts = all_parts(coordinate, range(len(kept)))
  row, found = rows.find(indices, coordinate, parts)
  return rows, tf.where(found, row, -1)
