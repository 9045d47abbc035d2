"""Sums, maxima and minima of segments: elements that have the same id.

Each processor reduces what it has, and an allreduce over the mesh axes that
split the dimension joins the results; for a sum it is left pending.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Tensor, apply
from ..core.primitive import Primitive
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .binary import equal, where
from .gather import check_indices, gather, scatter_add
from .operands import Kind
from .order import First, from_key, to_key
from .rows import (
  Table,
  gathered_places,
  part_number,
  rows_of_places,
  scatter,
  summed_axes,
)
from .source import zeros_like


@dataclasses.dataclass(frozen=True)
class SegmentExtreme(Primitive):
  """Of the elements with the same id the one that comes first in an order."""

  label: str
  dim: Dimension
  output_shape: Shape
  first: First

  @property
  def name(self) -> str:
    return self.label

  def infer(self, x: Aval, ids: Aval) -> Aval:
    check_indices(self.label, ids, self.dim)
    Kind.ORDERED.check(self.label, x.dtype)
    return Aval(self.output_shape, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    (x, ids), (y,) = op.inputs, op.outputs
    # Every element that equals the result gets the whole gradient.
    best = gather(y, ids, self.dim, x.shape)
    whole = gather(dy, ids, self.dim, x.shape)
    return [where(equal(x, best), whole, zeros_like(whole)), None]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices, ids: Slices) -> Slices:
    shapes, dtype = [t.shape for t in op.inputs], op.inputs[0].dtype
    table = Table.of(self.output_shape, shapes[1], self.dim)
    sizes = mesh.slice_shape(table.weights)
    order = [table.weights.index(d) for d in self.output_shape]
    nothing = to_key(_last(dtype, self.first), self.first)

    def best(x: tf.Tensor, i: tf.Tensor, at: tf.Tensor) -> tf.Tensor:
      x = on_slice.align(x, shapes[0], table.result)
      i = on_slice.align(i, shapes[1], table.places)
      rows, row = rows_of_places(table, sizes, x, i, at)
      key = to_key(x, self.first)
      y = scatter(tf.math.unsorted_segment_max, key, row, rows)
      return on_slice.transpose(tf.maximum(y, nothing), order)

    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    x = gathered_places(mesh, table, shapes[0], x)
    ids = gathered_places(mesh, table, shapes[1], ids)
    y = mesh.map_trailing(best, x, ids, part_number(mesh, axis))
    y = mesh.allreduce(y, summed_axes(mesh, table), "MAX")
    return mesh.map_trailing(lambda y: from_key(y, dtype, self.first), y)

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


def _last(dtype: tf.DType, first: First) -> tf.Tensor:
  """What comes last in an order: the result where there are no elements."""
  if dtype.is_floating:
    infinity = float("inf")
    return tf.constant(-infinity if first is First.LARGEST else infinity, dtype)
  return tf.constant(dtype.min if first is First.LARGEST else dtype.max, dtype)


def segment_sum(
  x: Tensor, segment_ids: Tensor, dim: Dimension, num_segments_dim: Dimension
) -> Tensor:
  """Adds up the elements along a dimension that have the same id.

  Args:
    x: numbers. 16-bit floats are added up in float32.
    segment_ids: integers, with the dimension `dim` and any others of `x`; in
      any order. Elements whose id is outside [0, num_segments_dim.size) are
      left out.
    dim: the dimension whose elements belong to segments; it may be split.
    num_segments_dim: takes its place: one element for each segment.

  Returns:
    A tensor of the dtype of `x`; zero for a segment without elements.

  Raises:
    ShapeError: `x` or `segment_ids` lacks `dim`, the ids have a dimension that
      `x` lacks, or the name of `num_segments_dim` is in use.

  Example:
    How many tokens each of three documents has:

    >>> import tensorflow as tf
    >>> import mesh_tf2 as mtf
    >>> token, doc = mtf.Dimension("token", 6), mtf.Dimension("doc", 3)
    >>> program = mtf.Program("x:2", "token:x")
    >>> @program.function
    ... def count(mesh, ids):
    ...   ids = mtf.import_tf_tensor(mesh, ids, [token])
    ...   return mtf.segment_sum(mtf.ones_like(ids), ids, token, doc)
    >>> print(count(tf.constant([0, 0, 2, 2, 2, 0])).numpy())
    [3 0 3]
  """
  shape = _shape("segment_sum", x, segment_ids, dim, num_segments_dim)
  return scatter_add(x, segment_ids, num_segments_dim, shape)


def segment_max(
  x: Tensor, segment_ids: Tensor, dim: Dimension, num_segments_dim: Dimension
) -> Tensor:
  """The largest of the elements along a dimension that have the same id.

  NaN is larger than all others. A segment without elements gets -inf, or the
  least integer. In the gradient, every element that is as large gets the whole
  gradient. See `segment_sum` for the arguments.
  """
  shape = _shape("segment_max", x, segment_ids, dim, num_segments_dim)
  row = ("segment_max", num_segments_dim, shape, First.LARGEST)
  return apply(SegmentExtreme(*row), x, segment_ids)


def segment_min(
  x: Tensor, segment_ids: Tensor, dim: Dimension, num_segments_dim: Dimension
) -> Tensor:
  """The smallest of the elements along a dimension that have the same id.

  If there is a NaN among them, the result is NaN. A segment without elements
  gets inf, or the largest integer. In the gradient, every element that is as
  small gets the whole gradient. See `segment_sum` for the arguments.
  """
  shape = _shape("segment_min", x, segment_ids, dim, num_segments_dim)
  row = ("segment_min", num_segments_dim, shape, First.SMALLEST_NAN_BEFORE)
  return apply(SegmentExtreme(*row), x, segment_ids)


def _shape(
  label: str, x: Tensor, ids: Tensor, dim: Dimension, segments: Dimension
) -> Shape:
  """The shape of the result."""
  if dim not in x.shape or dim not in ids.shape:
    raise ShapeError(
      f"{label} along {dim}: both x [{x.shape}] and the segment ids "
      f"[{ids.shape}] must have that dimension"
    )
  if unknown := ids.shape.drop(x.shape):
    raise ShapeError(
      f"{label} of [{x.shape}]: the segment ids [{ids.shape}] must not have "
      f"[{unknown}], which x lacks"
    )
  if segments.name in x.shape.dimension_names:
    raise ShapeError(
      f"{label} of [{x.shape}]: the dimension of the segments, {segments}, "
      "needs a name that x does not have"
    )
  return Shape([segments if d == dim else d for d in x.shape])
