"""The product of all elements along dimensions.

If one of them is split over a mesh axis, the products that the processors of a
group found are gathered: one number from each for every number of the result.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Shape, ShapeLike
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .binary import divide, equal, multiply, sub, where
from .cast import cast
from .linear.sum_broadcast import (
  broadcast,
  by_name_only,
  keep_sum,
  reduced_shape,
)
from .operands import Kind
from .source import ones_like, zeros_like


@dataclasses.dataclass(frozen=True)
class Product(Primitive):
  """Keeps the dimensions of `output_shape`, in its order; multiplies the rest.

  16-bit floats are multiplied in float32.
  """

  output_shape: Shape

  @property
  def name(self) -> str:
    return "reduce_prod"

  def infer(self, x: Aval) -> Aval:
    Kind.NUMBER.check("reduce_prod", x.dtype)
    if unknown := self.output_shape.drop(x.shape):
      raise ShapeError(
        f"reduce_prod cannot keep [{unknown}]: the input [{x.shape}] lacks it"
      )
    return Aval(self.output_shape, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    """With z elements that are 0: dx_i = dy * prod(others), 0 if z is over 1.

    An element that is 0 gets the product of all others; the others get 0.
    """
    x = op.inputs[0]
    is_zero = equal(x, 0)
    one_for_zero = where(is_zero, ones_like(x), x)
    others = broadcast(_product(one_for_zero, self.output_shape), x.shape)
    zeros = cast(is_zero, tf.int32)
    all_zeros = broadcast(keep_sum(zeros, self.output_shape), x.shape)
    none_left = equal(sub(all_zeros, zeros), 0)
    dx = multiply(divide(others, one_for_zero), broadcast(dy, x.shape))
    return [where(none_left, dx, zeros_like(dx))]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape, dtype = op.inputs[0].shape, op.inputs[0].dtype
    gone, kept = shape.drop(self.output_shape), shape.keep(self.output_shape)
    axes = [shape.index(d) - len(shape) for d in gone]
    order = [kept.index(d) for d in self.output_shape]
    front = -len(kept) - 1
    wide = tf.float32 if dtype.is_floating and dtype.size < 4 else dtype

    def reduce(x: tf.Tensor) -> tf.Tensor:
      y = tf.reduce_prod(tf.cast(x, wide), axes)
      return tf.expand_dims(on_slice.transpose(y, order), front)

    y = mesh.map_trailing(reduce, x)
    for mesh_axis in mesh.axes(gone):
      parts = mesh.allconcat(y, mesh_axis, 0)
      y = mesh.map_trailing(
        lambda y: tf.reduce_prod(y, front, keepdims=True), parts
      )
    return mesh.map_trailing(lambda y: tf.cast(tf.squeeze(y, front), dtype), y)

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


def _product(x: Tensor, shape: Shape, name: str | None = None) -> Tensor:
  return x if x.shape == shape else apply(Product(shape), x, name=name)


def reduce_prod(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """The product; see `reduce_sum` for the arguments.

  Its gradient is right where elements are 0, too.
  """
  by_name_only(disable_positional_args)
  shape = reduced_shape(x, output_shape, reduced_dim)
  return _product(x, shape, name)
