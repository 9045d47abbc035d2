"""Concat and split, stack and unstack: in each pair, one undoes the other.

If the dimension along which parts are put together or taken apart is split over
a mesh axis, it is gathered first; otherwise nothing is communicated. Stacking
along a new dimension never communicates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ...core.errors import ShapeError
from ...core.graph import Apply, Aval, Primitive, Tensor, apply
from ...core.shape import Dimension, Shape
from ...spmd.laid_out import Slices
from ...spmd.mesh import MeshImpl
from ..operands import check_tensor
from .along import axis_of, dimension_of, gathered, own_part, whole_number


@dataclasses.dataclass(frozen=True)
class Concat(Primitive):
  """Puts tensors one after another along a dimension."""

  dim_name: str
  flops_per_point = 0

  def infer(self, *xs: Aval) -> Aval:
    _check_one_dtype("concat", xs)
    first = xs[0].shape
    sizes = [x.shape.get_dim_by_name(self.dim_name).size for x in xs]
    whole = first.resize_dimension(self.dim_name, sum(sizes))
    for x, n in zip(xs, sizes, strict=True):
      if x.shape != first.resize_dimension(self.dim_name, n):
        raise ShapeError(
          f"concat along '{self.dim_name}' of [{first}] and [{x.shape}]: all "
          "other dimensions must agree, in the same order; transpose or "
          "broadcast one of them"
        )
    return Aval(whole, xs[0].dtype)

  def gradient(self, op: Apply, dy: Tensor) -> Sequence[Tensor | None]:
    dims = [x.shape.get_dim_by_name(self.dim_name) for x in op.inputs]
    whole = dy.shape.get_dim_by_name(self.dim_name)
    return split(dy, whole, [d.size for d in dims])

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Slices:
    shape, name = op.outputs[0].shape, self.dim_name
    at = axis_of(shape, name)
    pairs = zip(xs, op.inputs, strict=True)
    parts = [gathered(mesh, x, t.shape, name) for x, t in pairs]
    y = mesh.map_trailing(lambda *xs: tf.concat(xs, at), *parts)
    return own_part(mesh, y, shape, name)


@dataclasses.dataclass(frozen=True)
class Split(Primitive):
  """Cuts a dimension into parts of the given sizes."""

  dim: Dimension
  sizes: tuple[int, ...]
  flops_per_point = 0

  def infer(self, x: Aval) -> tuple[Aval, ...]:
    x.shape.index(self.dim)
    if sum(self.sizes) != self.dim.size or min(self.sizes, default=-1) < 0:
      raise ShapeError(
        f"split of {self.dim} into parts of sizes {list(self.sizes)}: they "
        f"must add up to {self.dim.size}"
      )
    return tuple(
      Aval(x.shape.resize_dimension(self.dim.name, n), x.dtype)
      for n in self.sizes
    )

  def gradient(self, op: Apply, *dys: Tensor) -> list[Tensor | None]:
    return [concat(dys, self.dim.name)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Any:
    shape, name = op.inputs[0].shape, self.dim.name
    at = axis_of(shape, name)
    parts = mesh.map_trailing(
      lambda x: tuple(tf.split(x, list(self.sizes), at)),
      gathered(mesh, x, shape, name),
    )
    pairs = zip(parts, op.outputs, strict=True)
    return tuple(own_part(mesh, y, t.shape, name) for y, t in pairs)


@dataclasses.dataclass(frozen=True)
class Stack(Primitive):
  """Puts tensors side by side along a new dimension."""

  dim: Dimension
  axis: int
  flops_per_point = 0

  def infer(self, *xs: Aval) -> Aval:
    _check_one_dtype("stack", xs)
    shape = xs[0].shape
    if differing := [x.shape for x in xs if x.shape != shape]:
      raise ShapeError(
        f"stack of [{shape}] and [{differing[0]}]: the shapes must be equal; "
        "transpose or broadcast one of them"
      )
    dims = shape.dims
    return Aval(
      Shape([*dims[: self.axis], self.dim, *dims[self.axis :]]), xs[0].dtype
    )

  def gradient(self, op: Apply, dy: Tensor) -> Sequence[Tensor | None]:
    return unstack(dy, self.dim)

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Slices:
    shape, name = op.outputs[0].shape, self.dim.name
    at = axis_of(shape, name)
    y = mesh.map_trailing(lambda *xs: tf.stack(xs, at), *xs)
    return own_part(mesh, y, shape, name)


@dataclasses.dataclass(frozen=True)
class Unstack(Primitive):
  """Takes the positions of a dimension apart."""

  dim: Dimension
  flops_per_point = 0

  def infer(self, x: Aval) -> tuple[Aval, ...]:
    return (Aval(x.shape - self.dim, x.dtype),) * self.dim.size

  def gradient(self, op: Apply, *dys: Tensor) -> list[Tensor | None]:
    axis = op.inputs[0].shape.index(self.dim)
    return [stack(dys, self.dim.name, axis)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Any:
    shape, name = op.inputs[0].shape, self.dim.name
    at = axis_of(shape, name)
    return mesh.map_trailing(
      lambda x: tuple(tf.unstack(x, self.dim.size, at)),
      gathered(mesh, x, shape, name),
    )


def _check_one_dtype(name: str, xs: Sequence[Aval]) -> None:
  if len({x.dtype for x in xs}) > 1:
    raise ValueError(
      f"{name} needs tensors of one dtype, got {[x.dtype.name for x in xs]}; "
      "cast them first"
    )


def concat(
  xs: Sequence[Tensor], concat_dim_name: str, name: str | None = None
) -> Tensor:
  """Joins tensors along a dimension that they all have.

  Args:
    xs: tensors of one dtype, which differ in the size of one dimension only.
    concat_dim_name: the name of that dimension. It may be split.
    name: a name for the operation.

  Raises:
    ShapeError: there are no tensors, or another dimension differs.
  """
  if not xs:
    raise ShapeError(
      f"concat along '{concat_dim_name}' needs at least one tensor, got none"
    )
  return apply(Concat(concat_dim_name), *xs, name=name)


def split(
  x: Tensor,
  split_dim: Dimension | str,
  num_or_size_splits: int | Sequence[int],
  name: str | None = None,
) -> list[Tensor]:
  """Cuts a tensor along a dimension.

  Args:
    x: a tensor.
    split_dim: a dimension of it, or its name. It may be split.
    num_or_size_splits: the number of equal parts, or the size of each part.
    name: a name for the operation.

  Returns:
    The parts. Each has a dimension of the same name and a smaller size.

  Raises:
    ShapeError: the parts do not add up to the dimension.
  """
  split_dim = dimension_of("split", x, split_dim)
  if not isinstance(num_or_size_splits, Sequence):
    n = whole_number("split: num_or_size_splits", num_or_size_splits)
    if n < 1 or split_dim.size % n:
      raise ShapeError(
        f"split of {split_dim} into {n} equal parts: {split_dim.size} is not "
        f"divisible by {n}; give a list of sizes"
      )
    sizes = (split_dim.size // n,) * n
  else:
    sizes = tuple(
      whole_number("split: the size of a part", n) for n in num_or_size_splits
    )
  parts: list[Tensor] = apply(Split(split_dim, sizes), x, name=name)
  return parts


def stack(
  xs: Sequence[Tensor], dim_name: str, axis: int = 0, name: str | None = None
) -> Tensor:
  """Joins tensors of equal shape along a new dimension.

  Args:
    xs: tensors of one shape and dtype.
    dim_name: the name of the new dimension. It may be split.
    axis: its place in the result; a negative one counts from the back.
    name: a name for the operation.

  Raises:
    ShapeError: there are no tensors, their shapes differ, or there is no such
      place.
  """
  if not xs:
    raise ShapeError(
      f"stack along '{dim_name}' needs at least one tensor, got none"
    )
  check_tensor("stack", xs[0])
  ndims, axis = len(xs[0].shape) + 1, whole_number("stack: axis", axis)
  if not -ndims <= axis < ndims:
    raise ShapeError(
      f"stack: axis is {axis}, the result has {ndims} dimensions; take one "
      f"from {-ndims} to {ndims - 1}"
    )
  return apply(
    Stack(Dimension(dim_name, len(xs)), axis % ndims), *xs, name=name
  )


def unstack(
  x: Tensor, dim: Dimension | str, name: str | None = None
) -> list[Tensor]:
  """The tensors at each position of a dimension, without that dimension.

  Args:
    x: a tensor.
    dim: a dimension of it, or its name. It may be split.
    name: a name for the operation.
  """
  gone = dimension_of("unstack", x, dim)
  parts: list[Tensor] = apply(Unstack(gone), x, name=name)
  return parts
