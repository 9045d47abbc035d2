"""Where the largest element is, and where the smallest.

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
from .order import First, check_ordered, from_key, to_key


@dataclasses.dataclass(frozen=True)
class Best(Primitive):
  """The element that comes first in an order, and where it first occurs."""

  dim: Dimension
  first: First

  def infer(self, x: Aval) -> tuple[Aval, ...]:
    check_ordered("top_1, argmax or argmin", x.dtype)
    if not self.dim.size:
      raise ShapeError(f"dimension {self.dim} has no elements to choose from")
    shape = x.shape - self.dim
    return Aval(shape, x.dtype), Aval(shape, tf.int32)

  def gradient(self, op: Apply, dy: Tensor, _: Tensor) -> list[Tensor | None]:
    return [to_ties(op.inputs[0], op.outputs[0], dy)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Any:
    shape, dtype = op.inputs[0].shape, op.inputs[0].dtype
    last = Shape([*(shape - self.dim), self.dim])

    def find(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      key = to_key(on_slice.align(x, shape, last), self.first)
      best = tf.reduce_max(key, -1, keepdims=True)
      n = key.shape[-1]
      places = tf.where(tf.equal(key, best), tf.range(n), n)
      return tf.squeeze(best, -1), tf.reduce_min(places, -1)

    def restore(key: tf.Tensor) -> tf.Tensor:
      return from_key(key, dtype, self.first)

    key, index = mesh.map_trailing(find, x)
    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    if axis is not None:
      key, index = self._join(mesh, axis, key, index)
    return mesh.map_trailing(restore, key), index

  def _join(self, mesh: MeshImpl, axis: int, key: Slices, index: Slices) -> Any:
    """The first of what all processors found."""
    part = self.dim.size // mesh.shape[axis].size
    best = mesh.allreduce(key, (axis,), "MAX")

    def claim(
      mine: tf.Tensor, best: tf.Tensor, index: tf.Tensor, at: tf.Tensor
    ) -> tf.Tensor:
      begin = on_slice.append_axes(at * part, index.shape.rank - at.shape.rank)
      return tf.where(tf.equal(mine, best), index + begin, self.dim.size)

    coordinate = mesh.processor_coordinate(axis)
    claims = mesh.map_trailing(claim, key, best, index, coordinate)
    return best, mesh.allreduce(claims, (axis,), "MIN")

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


def top_1(
  x: Tensor, reduced_dim: Dimension, name: str | None = None
) -> tuple[Tensor, Tensor]:
  """The largest element along a dimension, and its position.

  In the gradient, every element that is as large gets the whole gradient.

  Args:
    x: numbers. NaN is larger than all others.
    reduced_dim: a dimension of `x`; it may be split.
    name: a name for the operation.

  Returns:
    The values, and the int32 positions: the first one of several. Both have
    the shape of `x` without `reduced_dim`.

  Raises:
    ShapeError: `x` lacks the dimension, or its size is 0.
  """
  best = Best(reduced_dim, First.LARGEST)
  values, indices = apply(best, x, name=name or "top_1")
  return values, indices


def argmax(
  x: Tensor, reduced_dim: Dimension, name: str | None = None
) -> Tensor:
  """The position of the largest element, the first one of several: int32.

  If there is a NaN, it is the position of the first one, as in NumPy. See
  `top_1` for the arguments.
  """
  return top_1(x, reduced_dim, name)[1]


def argmin(
  x: Tensor, reduced_dim: Dimension, name: str | None = None
) -> Tensor:
  """The position of the smallest element, the first one of several: int32.

  If there is a NaN, it is the position of the first one, as in NumPy. See
  `top_1` for the arguments.
  """
  best = Best(reduced_dim, First.SMALLEST_NAN_BEFORE)
  indices: Tensor = apply(best, x, name=name or "argmin")[1]
  return indices
