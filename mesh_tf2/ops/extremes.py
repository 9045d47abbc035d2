"""The largest and the smallest, all and any, and where the largest is.

Reducing a dimension that is split over a mesh axis costs an allreduce of what
is left; finding the position of the largest costs another one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape, ShapeLike
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .binary import equal, where
from .linear.sum_broadcast import broadcast, by_name_only, reduced_shape
from .source import zeros_like


@dataclasses.dataclass(frozen=True)
class Extreme(Primitive):
  """Keeps the dimensions of `output_shape`, in its order; reduces the rest.

  `reduction` joins what the processors found. A bool is joined as an integer.
  """

  label: str
  fn: Callable[..., tf.Tensor] = dataclasses.field(repr=False)
  reduction: str
  output_shape: Shape
  counter = "reduce_op"

  @property
  def name(self) -> str:
    return self.label

  def infer(self, x: Aval) -> Aval:
    if unknown := self.output_shape.drop(x.shape):
      raise ShapeError(
        f"{self.label} cannot keep [{unknown}]: the input [{x.shape}] lacks it"
      )
    if (x.dtype == tf.bool) != (self.label in ("reduce_all", "reduce_any")):
      raise ValueError(
        f"{self.label} cannot take {x.dtype.name}; reduce_all and reduce_any "
        "are for bool, reduce_max and reduce_min for numbers"
      )
    return Aval(self.output_shape, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [_to_ties(op.inputs[0], op.outputs[0], dy)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape = op.inputs[0].shape
    gone, kept = shape.drop(self.output_shape), shape.keep(self.output_shape)
    axes = [shape.index(d) - len(shape) for d in gone]
    order = [kept.index(d) for d in self.output_shape]

    def reduce(x: tf.Tensor) -> tf.Tensor:
      return on_slice.transpose(self.fn(x, axes) if axes else x, order)

    y, mesh_axes = mesh.map_trailing(reduce, x), mesh.axes(gone)
    if op.inputs[0].dtype != tf.bool or not mesh_axes:
      return mesh.allreduce(y, mesh_axes, self.reduction)
    number = mesh.map_trailing(lambda y: tf.cast(y, tf.int32), y)
    joined = mesh.allreduce(number, mesh_axes, self.reduction)
    return mesh.map_trailing(lambda y: tf.cast(y, tf.bool), joined)

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


def _to_ties(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
  """The whole gradient to every element that equals the result."""
  whole = broadcast(dy, x.shape)
  return where(equal(x, y, x.shape), whole, zeros_like(whole), x.shape)


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
    return [_to_ties(op.inputs[0], op.outputs[0], dy)]

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


def _reduce(
  row: tuple[str, Any, str],
  x: Tensor,
  trap: object,
  dims: tuple[ShapeLike | None, object],
  name: str | None,
) -> Tensor:
  by_name_only(trap)
  shape = reduced_shape(x, *dims)
  return x if x.shape == shape else apply(Extreme(*row, shape), x, name=name)


def reduce_max(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """The largest element; see `reduce_sum` for the arguments.

  In the gradient, every element that is as large gets the whole gradient.
  """
  row = ("reduce_max", tf.reduce_max, "MAX")
  dims = (output_shape, reduced_dim)
  return _reduce(row, x, disable_positional_args, dims, name)


def reduce_min(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """The smallest element; see `reduce_sum` for the arguments.

  In the gradient, every element that is as small gets the whole gradient.
  """
  row = ("reduce_min", tf.reduce_min, "MIN")
  dims = (output_shape, reduced_dim)
  return _reduce(row, x, disable_positional_args, dims, name)


def reduce_all(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """Whether all elements of a bool tensor are True; see `reduce_sum`."""
  row = ("reduce_all", tf.reduce_all, "MIN")
  dims = (output_shape, reduced_dim)
  return _reduce(row, x, disable_positional_args, dims, name)


def reduce_any(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """Whether some element of a bool tensor is True; see `reduce_sum`."""
  row = ("reduce_any", tf.reduce_any, "MAX")
  dims = (output_shape, reduced_dim)
  return _reduce(row, x, disable_positional_args, dims, name)


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
