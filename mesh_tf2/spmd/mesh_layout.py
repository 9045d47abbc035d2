"""Where the slices of a tensor are: a mesh shape and layout rules together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..core.errors import LayoutError
from ..core.layout import (
  LayoutLike,
  LayoutRules,
  TensorLayout,
  convert_to_layout_rules,
  pnum_to_processor_coordinates,
  to_mesh_shape,
)
from ..core.shape import Dimension, Shape, ShapeLike, to_shape


class MeshLayout:
  """A mesh shape and layout rules.

  Args:
    shape: the mesh dimensions; no dimensions mean one processor.
    layout_rules: which tensor dimensions are split over which mesh dimensions.
  """

  def __init__(self, shape: ShapeLike, layout_rules: LayoutLike) -> None:
    self._shape = to_mesh_shape(shape)
    self._layout_rules = convert_to_layout_rules(layout_rules)
    self._layouts: dict[Shape, TensorLayout] = {}  # those asked for before

  @property
  def shape(self) -> Shape:
    """The mesh dimensions."""
    return self._shape

  @property
  def layout_rules(self) -> LayoutRules:
    """Which tensor dimensions are split over which mesh dimensions."""
    return self._layout_rules

  @property
  def ndims(self) -> int:
    """The number of mesh dimensions."""
    return len(self._shape)

  @property
  def size(self) -> int:
    """The number of processors."""
    return self._shape.size

  def tensor_dimension_to_mesh_axis(self, dim: Dimension) -> int | None:
    """The mesh axis that splits `dim`, or None."""
    return self._layout_rules.tensor_dimension_to_mesh_axis(dim, self._shape)

  def tensor_layout(self, shape: Any) -> TensorLayout:
    """How a shape, or the shape of a tensor, is split."""
    shape = getattr(shape, "shape", shape)
    layout = self._layouts.get(shape)
    if layout is None:
      layout = self._layout_rules.tensor_layout(shape, self._shape)
      self._layouts[shape] = layout
    return layout

  def axes(self, dims: Iterable[Dimension]) -> tuple[int, ...]:
    """The mesh axes that any of `dims` is split over, ascending."""
    found = map(self.tensor_dimension_to_mesh_axis, dims)
    return tuple(sorted({a for a in found if a is not None}))

  def slice_shape(self, shape: ShapeLike) -> list[int]:
    """The sizes of one processor's slice.

    Raises:
      LayoutError: a dimension does not divide evenly over its mesh dimension.
    """
    shape = to_shape(shape)
    sizes = []
    for d, a in zip(shape, self.tensor_layout(shape), strict=True):
      if a is not None and d.size % self._shape[a].size:
        raise LayoutError(_indivisible(d, self._shape[a], shape))
      sizes.append(d.size if a is None else d.size // self._shape[a].size)
    return sizes

  def slice_size(self, shape: ShapeLike) -> int:
    """How many elements one processor's slice has."""
    return math.prod(self.slice_shape(shape))

  def laid_out_size(self, shape: Any) -> int:
    """The elements of all processors' slices together, replicas counted."""
    return self.slice_size(getattr(shape, "shape", shape)) * self.size

  def slice_begin(self, shape: ShapeLike, pnum: int) -> list[int]:
    """Where the slice of processor `pnum` begins, for each dimension."""
    shape = to_shape(shape)
    at = pnum_to_processor_coordinates(self._shape, pnum)
    pairs = zip(self.tensor_layout(shape), self.slice_shape(shape), strict=True)
    return [0 if a is None else at[a] * n for a, n in pairs]

  def mesh_axis_to_cumprod(self, tensor_shape: ShapeLike) -> list[int | None]:
    """For each mesh axis, how many slices of a tensor lie before it.

    That is the product of the sizes of the tensor's dimensions before the one
    that it splits; None where it splits none.
    """
    shape = to_shape(tensor_shape)
    axes = self.tensor_layout(shape).mesh_axis_to_tensor_axis(self.ndims)
    return [None if i is None else shape.cumprod[i] for i in axes]


def _indivisible(dim: Dimension, mesh_dim: Dimension, shape: Shape) -> str:
  return (
    f"split '{dim.name}' ({dim.size}) over mesh dimension '{mesh_dim.name}' "
    f"({mesh_dim.size}): {dim.size} is not divisible by {mesh_dim.size} "
    f"(tensor [{shape}]); choose a multiple of {mesh_dim.size} or drop the "
    f"rule '{dim.name}:{mesh_dim.name}'"
  )
