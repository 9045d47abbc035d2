"""Reshape: the same elements in the same order under other dimensions.

The layout may change with the names, and then elements move. In terms of the
flat index, a mesh axis that splits a dimension owns a *digit* of it: a stride
and a size. Splitting both shapes at all their digits' boundaries gives a common
refinement in which every mesh axis owns a dimension of its own. There,

* an axis that owns the same digit before and after does nothing;
* an axis that owns a digit only afterwards splits it: nothing is sent;
* an axis that changes its digit does an alltoall;
* an axis that owns a digit only before does an allconcat.

Where the boundaries do not divide each other, or two axes trade digits, the
axis in question is gathered first and split again afterwards: dearer, and just
as right.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TypeVar

import tensorflow as tf

from ...core.errors import ShapeError
from ...core.graph import Apply, Aval, Primitive, Tensor, apply
from ...core.shape import Dimension, Shape, ShapeLike, anonymous_shape, to_shape
from ...spmd import slices as on_slice
from ...spmd.laid_out import PendingSum, Slices
from ...spmd.mesh import MeshImpl


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
    old = op.inputs[0].shape
    moved = _digits(mesh, old) != _digits(mesh, self.new_shape)
    if not isinstance(x, PendingSum):
      return relayout(mesh, x, old, self.new_shape)
    if moved:
      return relayout(mesh, x.total(), old, self.new_shape)

    def local(x: Slices) -> Slices:
      return _local_reshape(mesh, x, mesh.slice_shape(self.new_shape))

    return PendingSum(
      x.mesh_axes,
      lambda: local(x.partial()),
      lambda: local(x.total()),
      like=x,
    )


@dataclasses.dataclass(frozen=True)
class Digit:
  """The part of a flat index that a mesh axis owns."""

  stride: int
  size: int


def _digits(mesh: MeshImpl, shape: Shape) -> dict[int, Digit]:
  """The digit of each mesh axis that splits `shape`."""
  owned, stride = {}, 1
  pairs = list(zip(shape, mesh.tensor_layout(shape), strict=True))
  for d, a in reversed(pairs):
    if a is not None:
      m = mesh.shape[a].size
      owned[a] = Digit(stride * (d.size // m), m)
    stride *= d.size
  return owned


def relayout(mesh: MeshImpl, x: Slices, old: Shape, new: Shape) -> Slices:
  """From the slices of `old` to those of `new`."""
  if not old.size:
    return mesh.full(tf.zeros([], mesh.dtype(x)), new)
  source, target = _digits(mesh, old), _digits(mesh, new)
  if source == target:
    return _local_reshape(mesh, x, mesh.slice_shape(new))
  walk = _Walk(mesh, x, old, source)
  strides = _common_strides(old.size, [*source.values(), *target.values()])
  for a, d in source.items():
    # What a single processor owns may lie outside of all boundaries.
    misplaced_alone = d.size == 1 and target.get(a) != d
    if misplaced_alone or not _whole(d, strides):
      walk.gather(a)
  walk.refine(strides)
  walk.split(target)
  while walk.misplaced(target):
    walk.exchange(target)
    if left := walk.misplaced(target):
      walk.gather(left[0])
  walk.split(target)
  return walk.finish(new, target)


def _common_strides(total: int, digits: Sequence[Digit]) -> list[int]:
  """Boundaries of digits, ascending, each a divisor of the next.

  A boundary that does not fit between those before it is left out.
  """
  chain = sorted({1, total})
  for d in digits:
    for b in (d.stride, d.stride * d.size):
      if all(b % c == 0 or c % b == 0 for c in chain):
        chain = sorted({*chain, b})
  return chain


def _whole(digit: Digit, strides: Sequence[int]) -> bool:
  """Whether the digit is one step between two neighbouring boundaries."""
  return digit.size == 1 or (
    digit.stride in strides
    and strides.index(digit.stride) + 1 < len(strides)
    and strides[strides.index(digit.stride) + 1] == digit.stride * digit.size
  )


class _Walk:
  """Slices on their way from one layout to another.

  `strides` are the boundaries of the axes of a slice, ascending; the axis that
  begins at stride s is the one at `_at(s)`. A mesh axis owns the whole of an
  axis of the refinement, whose local size then is 1.
  """

  def __init__(
    self, mesh: MeshImpl, x: Slices, old: Shape, owned: dict[int, Digit]
  ) -> None:
    self._mesh = mesh
    self._x = x
    self._old = old
    self.owned = dict(owned)
    self._strides: list[int] = []

  def gather(self, mesh_axis: int) -> None:
    """Makes the slices whole along the digit of a mesh axis."""
    digit = self.owned.pop(mesh_axis)
    if not self._strides:
      layout = self._mesh.tensor_layout(self._old)
      at = list(layout).index(mesh_axis)
    else:
      at = self._at(digit.stride)
    self._x = self._mesh.allconcat(self._x, mesh_axis, at)

  def refine(self, strides: list[int]) -> None:
    """Gives the slices one axis for each step between boundaries."""
    self._strides = strides
    sizes = [b // a for a, b in itertools.pairwise(strides)]
    for d in self.owned.values():
      if d.size > 1:
        sizes[strides.index(d.stride)] = 1
    self._x = _local_reshape(self._mesh, self._x, sizes[::-1])

  def misplaced(self, target: dict[int, Digit]) -> list[int]:
    """The mesh axes that own another digit than they should, or none."""
    return [a for a, d in self.owned.items() if target.get(a) != d]

  def split(self, target: dict[int, Digit]) -> None:
    """Lets mesh axes own digits that no other one owns."""
    for a, d in target.items():
      free = d.size > 1 and _whole(d, self._strides) and self._is_free(d)
      if a not in self.owned and free:
        self._x = self._mesh.allsplit(self._x, a, self._at(d.stride))
        self.owned[a] = d

  def exchange(self, target: dict[int, Digit]) -> None:
    """Moves mesh axes to their new digits while there are free ones."""
    strides = self._strides
    again = True
    while again:
      again = False
      for a, d in list(self.owned.items()):
        new = target.get(a, d)
        movable = new != d and d.size > 1 and _whole(new, strides)
        if movable and self._is_free(new):
          here, there = self._at(d.stride), self._at(new.stride)
          self._x = self._mesh.alltoall(self._x, a, there, here)
          self.owned[a], again = new, True

  def finish(self, new: Shape, target: dict[int, Digit]) -> Slices:
    """The slices of the new shape; splits what could not be split before."""
    mesh, late = self._mesh, [a for a in target if a not in self.owned]
    sizes = new.to_integer_list
    layout = list(mesh.tensor_layout(new))
    for i, a in enumerate(layout):
      if a is not None and a not in late:
        sizes[i] //= mesh.shape[a].size
    x = _local_reshape(mesh, self._x, sizes)
    for a in late:
      x = mesh.allsplit(x, a, layout.index(a))
    return x

  def _at(self, stride: int) -> int:
    strides = self._strides
    return len(strides) - 2 - strides.index(stride)

  def _is_free(self, digit: Digit) -> bool:
    return all(d.stride != digit.stride for d in self.owned.values())


def _local_reshape(mesh: MeshImpl, x: Slices, sizes: Sequence[int]) -> Slices:
  ndims = len(mesh.slice_sizes(x))

  def change(x: tf.Tensor) -> tf.Tensor:
    return on_slice.reshape(x, ndims, sizes)

  return mesh.map_trailing(change, x)


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
  shape = to_shape(new_shape)
  return x if x.shape == shape else apply(Reshape(shape), x, name=name)


def rename_dimension(x: Tensor, old_name: str, new_name: str) -> Tensor:
  """`x` with one dimension renamed, and laid out by its new name."""
  return reshape(x, x.shape.rename_dimension(old_name, new_name))


def anonymize(x: Tensor) -> Tensor:
  """`x` under names that no layout rule knows: whole on every processor."""
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
