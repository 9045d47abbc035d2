"""Work along a dimension that may be split: on all of it, or on one's part.

What needs a dimension as a whole gathers it (an allconcat over its mesh axis),
works, and keeps its own part (which costs nothing). Where the dimension is not
split, neither does anything.
"""

from __future__ import annotations

import operator

from ...core.errors import ShapeError
from ...core.graph import Tensor
from ...core.shape import Dimension, DimensionLike, Shape
from ...spmd.laid_out import Slices
from ...spmd.mesh import MeshImpl
from ..operands import check_tensor


def dimension_of(op: str, x: Tensor, dim: DimensionLike | str) -> Dimension:
  """A dimension of what `op` gets, given as such or by its name.

  Raises:
    ShapeError: there is none.
    TypeError: `x` is no tensor.
  """
  check_tensor(op, x)
  try:
    if isinstance(dim, str):
      return x.shape.get_dim_by_name(dim)
    return x.shape.dims[x.shape.index(dim)]
  except ShapeError as e:
    raise ShapeError(f"{op}: {e}") from None


def whole_number(what: str, value: object) -> int:
  """An integer of any sort, NumPy's too.

  Raises:
    TypeError: it is none.
  """
  try:
    return operator.index(value)  # type: ignore[arg-type]
  except TypeError:
    raise TypeError(f"{what} is a whole number, got {value!r}") from None


def axis_of(shape: Shape, name: str) -> int:
  """The axis of a dimension, counted from the back."""
  return shape.dimension_names.index(name) - len(shape)


def gathered(mesh: MeshImpl, x: Slices, shape: Shape, name: str) -> Slices:
  """The slices of a tensor of this shape, whole along a dimension."""
  dim = shape.get_dim_by_name(name)
  mesh_axis = mesh.tensor_dimension_to_mesh_axis(dim)
  if mesh_axis is None:
    return x
  return mesh.allconcat(x, mesh_axis, shape.index(dim))


def own_part(mesh: MeshImpl, y: Slices, shape: Shape, name: str) -> Slices:
  """The slices of a tensor of this shape, which are whole along a dimension."""
  dim = shape.get_dim_by_name(name)
  mesh_axis = mesh.tensor_dimension_to_mesh_axis(dim)
  if mesh_axis is None:
    return y
  return mesh.allsplit(y, mesh_axis, shape.index(dim))
