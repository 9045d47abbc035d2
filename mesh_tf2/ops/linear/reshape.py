"""Reshape: the same elements in the same order under other dimensions.

The layout may change with the names, and then elements move (`relayout.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from ...core.errors import ShapeError
from ...core.graph import Apply, Aval, Primitive, Tensor, apply
from ...core.shape import Dimension, Shape, ShapeLike, anonymous_shape, to_shape
from ...spmd.laid_out import PendingSum, Slices
from ...spmd.mesh import MeshImpl
from ..operands import check_tensor
from .relayout import local_reshape, moves_nothing, relayout, relayout_sum


@dataclasses.dataclass(frozen=True)
class Reshape(Primitive):
  """The elements of the input, in order, under other dimensions."""

  new_shape: Shape
  counter = "reshape_op"
  keeps_pending = True
  flops_per_point = 0

  def infer(self, x: Aval) -> Aval:
    if x.shape.size != self.new_shape.size:
      raise ShapeError(
        f"reshape from [{x.shape}] ({x.shape.size} elements) to "
        f"[{self.new_shape}] ({self.new_shape.size} elements)"
      )
    return Aval(self.new_shape, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [reshape(dy, op.inputs[0].shape)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    old, new = op.inputs[0].shape, self.new_shape
    if not isinstance(x, PendingSum):
      return relayout(mesh, x, old, new)
    if not moves_nothing(mesh, old, new):
      return relayout_sum(mesh, x, old, new)

    def local(x: Slices) -> Slices:
      return local_reshape(mesh, x, mesh.slice_shape(new))

    return PendingSum(
      x.mesh_axes,
      lambda: local(x.partial()),
      lambda: local(x.total()),
      like=x,
    )


def reshape(x: Tensor, new_shape: ShapeLike, name: str = "reshape") -> Tensor:
  """The elements of `x`, in row-major order, under other dimensions.

  Args:
    x: any shape.
    new_shape: as many elements. If its layout is another one, elements move.
    name: a name for the operation.

  Raises:
    ShapeError: the numbers of elements differ.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mesh = mtf.Mesh(mtf.Graph(), "mesh")
    >>> x = mtf.zeros(mesh, "batch:8 d_model:16")
    >>> mtf.reshape(x, "batch:8 heads:4 d_kv:4").shape
    batch:8 heads:4 d_kv:4
  """
  check_tensor("reshape", x)
  shape = to_shape(new_shape)
  return x if x.shape == shape else apply(Reshape(shape), x, name=name)


def rename_dimension(x: Tensor, old_name: str, new_name: str) -> Tensor:
  """`x` with one dimension renamed, and laid out by its new name."""
  check_tensor("rename_dimension", x)
  return reshape(x, x.shape.rename_dimension(old_name, new_name))


def anonymize(x: Tensor) -> Tensor:
  """`x` under names that no layout rule knows: whole on every processor."""
  check_tensor("anonymize", x)
  return reshape(x, anonymous_shape(x.shape))


T = TypeVar("T", Tensor, Shape)


def replace_dimensions(
  tensor_or_shape: T,
  old_dim_or_dims: Dimension | Sequence[Dimension],
  new_dim_or_dims: Dimension | Sequence[Dimension],
) -> T:
  """Puts some dimensions in the place of others that stand side by side.

  Args:
    tensor_or_shape: a tensor, which is reshaped, or a shape.
    old_dim_or_dims: a dimension, or several that follow each other.
    new_dim_or_dims: what takes their place.

  Raises:
    ShapeError: the old dimensions do not follow each other in this order, or
      one of the lists is empty.
  """
  if isinstance(tensor_or_shape, Tensor):
    shape = tensor_or_shape.shape
    return reshape(
      tensor_or_shape, _replaced(shape, old_dim_or_dims, new_dim_or_dims)
    )
  if not isinstance(tensor_or_shape, Shape):
    check_tensor("replace_dimensions", tensor_or_shape)
  return _replaced(tensor_or_shape, old_dim_or_dims, new_dim_or_dims)


def _replaced(
  shape: Shape,
  old_dim_or_dims: Dimension | Sequence[Dimension],
  new_dim_or_dims: Dimension | Sequence[Dimension],
) -> Shape:
  old, new = _as_list(old_dim_or_dims), _as_list(new_dim_or_dims)
  if not old or not new:
    raise ShapeError("replace_dimensions needs old and new dimensions")
  dims, at = shape.dims, shape.index(old[0])
  if dims[at : at + len(old)] != old:
    raise ShapeError(
      f"replace_dimensions: [{Shape(old)}] do not follow each other in "
      f"[{shape}]; transpose it first"
    )
  return Shape([*dims[:at], *new, *dims[at + len(old) :]])


def _as_list(x: Dimension | Sequence[Dimension]) -> list[Dimension]:
  return [x] if isinstance(x, Dimension) else list(x)
