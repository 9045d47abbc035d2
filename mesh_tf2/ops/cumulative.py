"""Cumulative sums and products.

The gradient of a cumulative sum is another, from the other end; that of a
product is a recurrence, which no zero disturbs. If the dimension is split over
a mesh axis, the processors exchange the totals of their parts: one allconcat of
one element for each processor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import tensorflow as tf

from ..core.graph import Apply, Aval, Tensor, apply
from ..core.primitive import Primitive
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .elementwise import multiply
from .linear.shift import shift
from .recurrence import recurrence


@dataclasses.dataclass(frozen=True)
class Cumulative(Primitive):
  """Joins all elements before each one, itself included or not."""

  dim: Dimension
  exclusive: bool
  reverse: bool

  along: ClassVar[Callable[..., tf.Tensor]]  # the same on a slice
  total: ClassVar[Callable[..., tf.Tensor]]  # joins all elements along an axis
  join: ClassVar[Callable[..., tf.Tensor]]  # joins two elements
  neutral: ClassVar[int]  # joined with another element, it changes nothing

  def infer(self, x: Aval) -> Aval:
    x.shape.index(self.dim)
    if x.dtype == tf.bool:
      raise ValueError(f"{self.name} takes numbers, got bool; cast them")
    return x

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape, dtype = op.inputs[0].shape, op.inputs[0].dtype
    at = shape.index(self.dim) - len(shape)
    is_narrow = dtype.is_floating and dtype.size < 4

    def widen(x: tf.Tensor) -> tf.Tensor:
      return tf.cast(x, tf.float32) if is_narrow else x

    def local(x: tf.Tensor) -> tf.Tensor:
      return self.along(widen(x), at, self.exclusive, self.reverse)

    y = mesh.map_trailing(local, x)
    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    if axis is not None:
      part = mesh.map_trailing(
        lambda x: self.total(widen(x), at, keepdims=True), x
      )
      y = self._join_others(mesh, axis, y, part, shape)
    return mesh.map_trailing(lambda y: tf.cast(y, dtype), y)

  def _join_others(
    self, mesh: MeshImpl, axis: int, y: Slices, part: Slices, shape: Shape
  ) -> Slices:
    """Joins the totals of the parts that come before a processor's own."""
    place = shape.index(self.dim)
    parts = mesh.allconcat(part, axis, place)
    m, after = mesh.shape[axis].size, len(shape) - 1 - place

    def join(y: tf.Tensor, parts: tf.Tensor, at: tf.Tensor) -> tf.Tensor:
      others = tf.range(m)
      mine = on_slice.append_axes(at, 1)
      before = others > mine if self.reverse else others < mine
      mask = tf.reshape(
        before, [*at.shape.as_list(), *[1] * place, m, *[1] * after]
      )
      kept = tf.where(mask, parts, tf.constant(self.neutral, parts.dtype))
      return self.join(y, self.total(kept, -1 - after, keepdims=True))

    return mesh.map_trailing(join, y, parts, mesh.processor_coordinate(axis))


@dataclasses.dataclass(frozen=True)
class CumSum(Cumulative):
  """The sum of all elements before each one."""

  along = staticmethod(tf.cumsum)
  total = staticmethod(tf.reduce_sum)
  join = staticmethod(tf.add)
  neutral = 0

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [apply(CumSum(self.dim, self.exclusive, not self.reverse), dy)]


@dataclasses.dataclass(frozen=True)
class CumProd(Cumulative):
  """The product of all elements before each one."""

  along = staticmethod(tf.math.cumprod)
  total = staticmethod(tf.reduce_prod)
  join = staticmethod(tf.multiply)
  neutral = 1

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    # dx_i = (product of all x before i) * s_i, where s_i adds up
    # dy_j * (product of all x between i and j) over all j that i is part of.
    (x,) = op.inputs
    step = 1 if self.reverse else -1
    before = apply(CumProd(self.dim, True, self.reverse), x)
    if self.exclusive:
      sums = recurrence(x, dy, self.dim, not self.reverse)
      sums = shift(sums, step, self.dim, wrap=False)
    else:
      next_x = shift(x, step, self.dim, wrap=False)
      sums = recurrence(next_x, dy, self.dim, not self.reverse)
    return [multiply(before, sums)]


def cumsum(
  x: Tensor, dim: Dimension, exclusive: bool = False, reverse: bool = False
) -> Tensor:
  """The sum of the elements up to each position of a dimension.

  Args:
    x: numbers. 16-bit floats are added up in float32.
    dim: a dimension of `x`; it may be split.
    exclusive: whether to leave out the element at the position itself.
    reverse: whether to add up from the last element, not from the first.

  Returns:
    A tensor of the shape and dtype of `x`.

  Raises:
    ShapeError: `x` lacks the dimension.
  """
  return apply(CumSum(dim, exclusive, reverse), x)


def cumprod(
  x: Tensor, dim: Dimension, exclusive: bool = False, reverse: bool = False
) -> Tensor:
  """The product of the elements up to each position of a dimension.

  The gradient is right where elements are zero, too. See `cumsum` for the
  arguments; 16-bit floats are multiplied in float32.
  """
  return apply(CumProd(dim, exclusive, reverse), x)
