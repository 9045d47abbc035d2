"""Sum and broadcast, each the other's gradient.

Summing over a dimension that is split over a mesh axis leaves one allreduce
over that axis pending. Broadcasting is free: every processor repeats what it
holds.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from ...core.errors import ShapeError
from ...core.graph import Apply, Aval, Primitive, Tensor, apply
from ...core.shape import Dimension, Shape, ShapeLike, to_shape
from ...spmd import slices as on_slice
from ...spmd import wide
from ...spmd.laid_out import Slices
from ...spmd.mesh import MeshImpl
from ..operands import Kind, check_tensor
from .along import dimension_of


@dataclasses.dataclass(frozen=True)
class Sum(Primitive):
  """Keeps the dimensions of `output_shape`, in its order; sums the rest."""

  output_shape: Shape
  counter = "reduce_op"
  counted_as = "ReduceOperation"

  def infer(self, x: Aval) -> Aval:
    Kind.NUMBER.check("reduce_sum", x.dtype)
    if unknown := self.output_shape.drop(x.shape):
      raise ShapeError(
        f"reduce_sum cannot keep [{unknown}]: the input [{x.shape}] lacks it"
      )
    return Aval(self.output_shape, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [broadcast(dy, op.inputs[0].shape)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape = op.inputs[0].shape
    gone, kept = shape.drop(self.output_shape), shape.keep(self.output_shape)
    axes = [shape.index(d) - len(shape) for d in gone]
    order = [kept.index(d) for d in self.output_shape]

    def add_up(x: tf.Tensor, lead: tuple[int, ...]) -> tf.Tensor:
      if not (lead or axes):
        return on_slice.transpose(x, order)
      return on_slice.transpose(wide.reduce_sum(x, [*lead, *axes]), order)

    return mesh.map_trailing_sum(add_up, [x], mesh.axes(gone))

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


@dataclasses.dataclass(frozen=True)
class Broadcast(Primitive):
  """Adds the dimensions of `output_shape` that the input lacks."""

  output_shape: Shape
  flops_per_point = 0

  def infer(self, x: Aval) -> Aval:
    if lost := x.shape.drop(self.output_shape):
      raise ShapeError(
        f"broadcast to [{self.output_shape}] would drop [{lost}] of the input "
        f"[{x.shape}]; add it, or sum over it first with mtf.reduce_sum"
      )
    return Aval(self.output_shape, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [keep_sum(dy, op.inputs[0].shape)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape = op.inputs[0].shape
    aligned = mesh.map_trailing(
      lambda x: on_slice.align(x, shape, self.output_shape), x
    )
    missing = mesh.axes(self.output_shape.drop(shape))
    for a in missing:
      # A tensor varies along every mesh axis that splits it.
      at = mesh.tensor_layout(self.output_shape).tensor_axis_to_mesh_axis
      aligned = _spread(mesh, aligned, a, at.index(a))
    return mesh.broadcast_to(aligned, self.output_shape)


def _spread(mesh: MeshImpl, x: Slices, mesh_axis: int, axis: int) -> Slices:
  """Repeats a size-1 axis once for each processor, then splits it."""
  m = mesh.shape[mesh_axis].size
  sizes = mesh.slice_sizes(x)
  sizes[axis] = m

  def repeat(x: tf.Tensor) -> tf.Tensor:
    lead = x.shape.as_list()[: x.shape.rank - len(sizes)]
    return tf.broadcast_to(x, [*lead, *sizes])

  return mesh.allsplit(mesh.map_trailing(repeat, x), mesh_axis, axis)


def keep_sum(x: Tensor, output_shape: Shape, name: str | None = None) -> Tensor:
  """Sums `x` over the dimensions that are not in `output_shape`."""
  if x.shape == output_shape:
    return x
  return apply(Sum(output_shape), x, name=name)


def broadcast(x: Tensor, new_shape: ShapeLike) -> Tensor:
  """Repeats `x` along the dimensions of `new_shape` that it lacks.

  Args:
    x: some of the dimensions of `new_shape`, in any order.
    new_shape: the shape of the result.

  Raises:
    ShapeError: `x` has a dimension that `new_shape` lacks.
  """
  check_tensor("broadcast", x)
  shape = to_shape(new_shape)
  return x if x.shape == shape else apply(Broadcast(shape), x)


def reduced_shape(
  x: Tensor, output_shape: ShapeLike | None, reduced_dim: Any
) -> Shape:
  """The shape that a reduction leaves, from what its caller says of it."""
  check_tensor("a reduction", x)
  if isinstance(reduced_dim, (str, Dimension)):
    reduced_dim = dimension_of("a reduction", x, reduced_dim)
  if output_shape is not None:
    shape = to_shape(output_shape)
    if new := shape.drop(x.shape):
      raise ShapeError(
        f"output_shape=[{shape}] of a reduction has [{new}], which {x.name} "
        f"[{x.shape}] lacks; take some of its dimensions"
      )
    if reduced_dim is not None and x.shape - reduced_dim != shape:
      raise ShapeError(
        f"reduced_dim={reduced_dim} of [{x.shape}] does not leave "
        f"output_shape=[{shape}]; give one of the two"
      )
    return shape
  if reduced_dim is None:
    return Shape([])
  return x.shape - reduced_dim


def reduce_sum(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: Any = None,
  name: str | None = None,
) -> Tensor:
  """Sums over a dimension, or over all that `output_shape` lacks.

  Args:
    x: any shape.
    disable_positional_args: must be None; give what follows by name.
    output_shape: some of the dimensions of `x`, in any order.
    reduced_dim: a dimension of `x`, or its name.
    name: a name for the operation.

  Returns:
    A tensor of shape `output_shape`, or that of `x` without `reduced_dim`; a
    scalar if neither is given.

  Raises:
    ShapeError: a dimension is not one of `x`.
  """
  by_name_only(disable_positional_args)
  return keep_sum(x, reduced_shape(x, output_shape, reduced_dim), name)


def by_name_only(value: object) -> None:
  """Raises unless the second positional argument was left alone."""
  if value is not None:
    raise ValueError(
      "a reduction takes output_shape and reduced_dim by name only, got "
      f"{value!r} as second argument; write reduced_dim={value!r}"
    )
