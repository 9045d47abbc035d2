"""The k largest elements, in order; and the n-th one.

If the dimension is split over a mesh axis, each processor finds the k largest
of its own elements; those are exchanged (two allconcats), never the rest.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .gather import gather, scatter_add
from .order import First, check_ordered, from_key, to_key


@dataclasses.dataclass(frozen=True)
class TopK(Primitive):
  """Those that come first along a dimension, and where they are."""

  dim: Dimension
  k_dim: Dimension
  first: First

  def infer(self, x: Aval) -> tuple[Aval, ...]:
    check_ordered("top_k", x.dtype)
    if not 0 < self.k_dim.size <= self.dim.size:
      raise ShapeError(
        f"top_k: k is {self.k_dim.size} ({self.k_dim}), it must be between 1 "
        f"and the size of {self.dim}"
      )
    shape = (x.shape - self.dim) + self.k_dim
    return Aval(shape, x.dtype), Aval(shape, tf.int32)

  def gradient(self, op: Apply, dy: Tensor, _: Tensor) -> list[Tensor | None]:
    shape = op.inputs[0].shape
    return [scatter_add(dy, op.outputs[1], self.dim, shape)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Any:
    shape, dtype = op.inputs[0].shape, op.inputs[0].dtype
    last = Shape([*(shape - self.dim), self.dim])
    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    m = 1 if axis is None else mesh.shape[axis].size
    part = self.dim.size // m

    def find(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      key = to_key(on_slice.align(x, shape, last), self.first)
      found = tf.math.top_k(key, min(self.k_dim.size, part))
      return found.values, found.indices

    def restore(key: tf.Tensor) -> tf.Tensor:
      return from_key(key, dtype, self.first)

    keys, indices = mesh.map_trailing(find, x)
    if axis is not None:
      keys, indices = self._join(mesh, axis, keys, indices)
    values = mesh.map_trailing(restore, self._lay_out(mesh, keys))
    return values, self._lay_out(mesh, indices)

  def _join(
    self, mesh: MeshImpl, axis: int, keys: Slices, indices: Slices
  ) -> Any:
    """The first of what all processors found."""
    part = self.dim.size // mesh.shape[axis].size
    last = len(mesh.slice_sizes(keys)) - 1

    def globally(i: tf.Tensor, coordinate: tf.Tensor) -> tf.Tensor:
      return i + on_slice.append_axes(coordinate * part, last + 1)

    coordinate = mesh.processor_coordinate(axis)
    indices = mesh.map_trailing(globally, indices, coordinate)
    keys = mesh.allconcat(keys, axis, last)
    indices = mesh.allconcat(indices, axis, last)

    # Equal elements stand in the order of their positions before and after.
    def find(key: tf.Tensor, i: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      found = tf.math.top_k(key, self.k_dim.size)
      flat = tf.reshape(found.indices, [-1, self.k_dim.size])
      rows = tf.reshape(i, [-1, i.shape[-1]])
      taken = tf.gather(rows, flat, batch_dims=1)
      return found.values, tf.reshape(taken, found.indices.shape)

    return mesh.map_trailing(find, keys, indices)

  def _lay_out(self, mesh: MeshImpl, x: Slices) -> Slices:
    axis = mesh.tensor_dimension_to_mesh_axis(self.k_dim)
    if axis is None:
      return x
    return mesh.allsplit(x, axis, len(mesh.slice_sizes(x)) - 1)

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


def top_k(
  x: Tensor, reduced_dim: Dimension, k_dim: Dimension, name: str | None = None
) -> tuple[Tensor, Tensor]:
  """The k largest elements along a dimension, largest first.

  Args:
    x: numbers. NaN is larger than all others.
    reduced_dim: a dimension of `x`; it may be split.
    k_dim: the dimension that takes its place, at the end; its size is k.
    name: a name for the operation.

  Returns:
    The values, and their int32 positions. Of equal elements the one with the
    smaller position comes first.

  Raises:
    ShapeError: k is larger than the dimension.
  """
  primitive = TopK(reduced_dim, k_dim, First.LARGEST)
  values, indices = apply(primitive, x, name=name)
  return values, indices


def nth_largest_element(
  x: Tensor, n: int, reduced_dim: Dimension, name: str | None = None
) -> Tensor:
  """The n-th largest element along a dimension; the largest for n = 0.

  Args:
    x: numbers. NaN is larger than all others.
    n: at least 0, less than the size of `reduced_dim`.
    reduced_dim: a dimension of `x`.
    name: a name for the operation.

  Returns:
    A tensor without `reduced_dim`.

  Raises:
    ShapeError: there are not so many elements.
  """
  return _nth(x, n, reduced_dim, First.LARGEST, name or "nth_largest_element")


def nth_smallest_element(
  x: Tensor, n: int, reduced_dim: Dimension, name: str | None = None
) -> Tensor:
  """The n-th smallest element along a dimension; the smallest for n = 0.

  See `nth_largest_element` for the arguments.
  """
  return _nth(x, n, reduced_dim, First.SMALLEST, name or "nth_smallest_element")


def _nth(x: Tensor, n: int, dim: Dimension, first: First, name: str) -> Tensor:
  if not 0 <= n < dim.size:
    raise ShapeError(
      f"{name}: n is {n}, it must be between 0 and {dim.size - 1}, since "
      f"{dim.name} has {dim.size} elements"
    )
  k_dim = Dimension("_top_k", n + 1)
  values, _ = apply(TopK(dim, k_dim, first), x, name=name)
  return gather(values, n, k_dim)
