"""Where the largest element is.

If the dimension is split over a mesh axis, that costs two allreduces of what is
left: one of the values, one of the positions.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .extremes import to_ties


@dataclasses.dataclass(frozen=True)
class Top1(Primitive):
  """The largest element along a dimension, and where it first occurs."""

  dim: Dimension

  def infer(self, x: Aval) -> tuple[Aval, ...]:
    if not self.dim.size:
      raise ShapeError(f"dimension {self.dim} has no largest element")
    shape = x.shape - self.dim
    return Aval(shape, x.dtype), Aval(shape, tf.int32)

  def gradient(self, op: Apply, dy: Tensor, _: Tensor) -> list[Tensor | None]:
    return [to_ties(op.inputs[0], op.outputs[0], dy)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Any:
    shape = op.inputs[0].shape

    def find(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      x = on_slice.align(x, shape, Shape([*(shape - self.dim), self.dim]))
      *front, n = x.shape.as_list()
      where_ = tf.argmax(tf.reshape(x, [-1, n]), 1, tf.int32)
      return tf.reduce_max(x, -1), tf.reshape(where_, front)

    best, index = mesh.map_trailing(find, x)
    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    if axis is None:
      return best, index
    part = self.dim.size // mesh.shape[axis].size
    last = self.dim.size - 1
    total = mesh.allreduce(best, (axis,), "MAX")

    def claim(
      mine: tf.Tensor, best: tf.Tensor, index: tf.Tensor, at: tf.Tensor
    ) -> tf.Tensor:
      begin = on_slice.append_axes(at * part, len(shape) - 1)
      return tf.where(tf.equal(mine, best), index + begin, last)

    coordinate = mesh.processor_coordinate(axis)
    claims = mesh.map_trailing(claim, best, total, index, coordinate)
    return total, mesh.allreduce(claims, (axis,), "MIN")

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


def top_1(
  x: Tensor, reduced_dim: Dimension, name: str | None = None
) -> tuple[Tensor, Tensor]:
  """The largest element along a dimension, and its position.

  Args:
    x: numbers.
    reduced_dim: a dimension of `x`; it may be split.
    name: a name for the operation.

  Returns:
    The values, and the int32 positions: the first one of several. Both have
    the shape of `x` without `reduced_dim`.
  """
  values, indices = apply(Top1(reduced_dim), x, name=name)
  return values, indices


def argmax(
  x: Tensor, reduced_dim: Dimension, name: str | None = None
) -> Tensor:
  """The position of the largest element, the first one of several: int32."""
  return top_1(x, reduced_dim, name)[1]
