"""Slice and pad, each the other's gradient.

If the dimension in question is split over a mesh axis, it is gathered first;
otherwise nothing is communicated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from ...core.errors import ShapeError
from ...core.graph import Apply, Aval, Primitive, Tensor, apply
from ...core.shape import Dimension
from ...spmd.laid_out import Slices
from ...spmd.mesh import MeshImpl
from .along import axis_of, dimension_of, gathered, own_part, whole_number


@dataclasses.dataclass(frozen=True)
class Slice(Primitive):
  """Keeps the positions begin, ..., begin + size - 1 of a dimension."""

  begin: int
  size: int
  dim: Dimension
  flops_per_point = 0

  def infer(self, x: Aval) -> Aval:
    end = self.begin + self.size
    if not 0 <= self.begin <= end <= self.dim.size:
      raise ShapeError(
        f"slice of {self.dim}: positions {self.begin} to {end} are not within "
        f"0 to {self.dim.size}; begin earlier, or take fewer"
      )
    return Aval(x.shape.resize_dimension(self.dim.name, self.size), x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    after = self.dim.size - self.begin - self.size
    return [pad(dy, [self.begin, after], self.dim.name)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape, name = op.inputs[0].shape, self.dim.name
    at = axis_of(shape, name)

    def cut(x: tf.Tensor) -> tf.Tensor:
      begin, size = [0] * x.shape.rank, x.shape.as_list()
      begin[at], size[at] = self.begin, self.size
      return tf.slice(x, begin, size)

    y = mesh.map_trailing(cut, gathered(mesh, x, shape, name))
    return own_part(mesh, y, op.outputs[0].shape, name)


@dataclasses.dataclass(frozen=True)
class Pad(Primitive):
  """Adds zeros before and after the positions of a dimension."""

  before: int
  after: int
  dim: Dimension
  flops_per_point = 0

  def infer(self, x: Aval) -> Aval:
    if self.before < 0 or self.after < 0:
      raise ShapeError(
        f"pad of {self.dim}: paddings are [{self.before}, {self.after}], they "
        "cannot be negative; remove positions with mtf.slice"
      )
    size = self.before + self.dim.size + self.after
    return Aval(x.shape.resize_dimension(self.dim.name, size), x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [mtf_slice(dy, self.before, self.dim.size, self.dim.name)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape, name = op.inputs[0].shape, self.dim.name
    at = axis_of(shape, name)

    def fill_up(x: tf.Tensor) -> tf.Tensor:
      pads = [[0, 0] for _ in range(x.shape.rank)]
      pads[at] = [self.before, self.after]
      return tf.pad(x, pads)

    y = mesh.map_trailing(fill_up, gathered(mesh, x, shape, name))
    return own_part(mesh, y, op.outputs[0].shape, name)


def mtf_slice(
  x: Tensor, begin: int, size: int, slice_dim_name: str, name: str | None = None
) -> Tensor:
  """Some consecutive positions of a dimension.

  Args:
    x: a tensor.
    begin: the first position.
    size: the number of positions.
    slice_dim_name: the name of the dimension. It may be split, and then
      the number of positions must be one that can be split, too.
    name: a name for the operation.

  Raises:
    ShapeError: the positions are not within the dimension.
  """
  dim = dimension_of("slice", x, slice_dim_name)
  begin = whole_number("slice: begin", begin)
  size = whole_number("slice: size", size)
  return apply(Slice(begin, size, dim), x, name=name)


def pad(
  x: Tensor, paddings: Sequence[int], dim_name: str, name: str | None = None
) -> Tensor:
  """Zeros before and after the positions of a dimension.

  Args:
    x: a tensor.
    paddings: the number of zeros before and the number after.
    dim_name: the name of the dimension. It may be split, and then the padded
      size must be one that can be split, too.
    name: a name for the operation.

  Raises:
    ShapeError: a padding is negative, or there are not two of them.
  """
  if len(paddings) != 2:
    raise ShapeError(
      f"pad of '{dim_name}': paddings are two numbers, of zeros before and of "
      f"zeros after, got {list(paddings)}"
    )
  before, after = (whole_number("pad: a padding", n) for n in paddings)
  dim = dimension_of("pad", x, dim_name)
  return apply(Pad(before, after, dim), x, name=name)
