"""Cumulative sums; the gradient of one is another, from the other end.

If the dimension is split over a mesh axis, the processors exchange the sums of
their parts: one allconcat of one element for each processor.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl


@dataclasses.dataclass(frozen=True)
class CumSum(Primitive):
  """The sum of all elements before each one, itself included or not."""

  dim: Dimension
  exclusive: bool
  reverse: bool

  def infer(self, x: Aval) -> Aval:
    x.shape.index(self.dim)
    return x

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [apply(CumSum(self.dim, self.exclusive, not self.reverse), dy)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape, dtype = op.inputs[0].shape, op.inputs[0].dtype
    at = shape.index(self.dim) - len(shape)
    is_narrow = dtype.is_floating and dtype.size < 4

    def widen(x: tf.Tensor) -> tf.Tensor:
      return tf.cast(x, tf.float32) if is_narrow else x

    def local(x: tf.Tensor) -> tf.Tensor:
      return tf.cumsum(widen(x), at, self.exclusive, self.reverse)

    y = mesh.map_trailing(local, x)
    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    if axis is not None:
      part = mesh.map_trailing(
        lambda x: tf.reduce_sum(widen(x), at, keepdims=True), x
      )
      y = self._add_others(mesh, axis, y, part, shape)
    return mesh.map_trailing(lambda y: tf.cast(y, dtype), y)

  def _add_others(
    self, mesh: MeshImpl, axis: int, y: Slices, part: Slices, shape: Shape
  ) -> Slices:
    """Adds the sums of the parts that come before a processor's own."""
    place = shape.index(self.dim)
    parts = mesh.allconcat(part, axis, place)
    m, after = mesh.shape[axis].size, len(shape) - 1 - place

    def add(y: tf.Tensor, parts: tf.Tensor, at: tf.Tensor) -> tf.Tensor:
      others = tf.range(m)
      mine = on_slice.append_axes(at, 1)
      before = others > mine if self.reverse else others < mine
      mask = tf.reshape(
        before, [*at.shape.as_list(), *[1] * place, m, *[1] * after]
      )
      kept = tf.where(mask, parts, tf.zeros([], parts.dtype))
      return y + tf.reduce_sum(kept, -1 - after, keepdims=True)

    return mesh.map_trailing(add, y, parts, mesh.processor_coordinate(axis))


def cumsum(x: Tensor, dim: Dimension, exclusive: bool = False) -> Tensor:
  """The sum of the elements up to each position of a dimension.

  Args:
    x: numbers. 16-bit floats are added up in float32.
    dim: a dimension of `x`; it may be split.
    exclusive: whether to leave out the element at the position itself.

  Returns:
    A tensor of the shape and dtype of `x`.
  """
  return apply(CumSum(dim, exclusive, False), x)
