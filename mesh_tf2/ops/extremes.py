"""The largest and the smallest, all and any.

Reducing a dimension that is split over a mesh axis costs an allreduce of what
is left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Shape, ShapeLike
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .binary import equal, where
from .linear.sum_broadcast import broadcast, by_name_only, reduced_shape
from .order import check_ordered
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
    check_ordered(self.label, x.dtype)
    return Aval(self.output_shape, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [to_ties(op.inputs[0], op.outputs[0], dy)]

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


def to_ties(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
  """The whole gradient to every element that equals the result."""
  whole = broadcast(dy, x.shape)
  return where(equal(x, y, x.shape), whole, zeros_like(whole), x.shape)


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
