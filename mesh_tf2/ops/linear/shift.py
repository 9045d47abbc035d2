"""Shift: move everything along one dimension, by a number of positions.

The gradient is a shift the other way. Where the dimension is split, a
processor receives what it needs from one or two others.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from ...core.graph import Apply, Aval, Primitive, Tensor, apply
from ...core.shape import Dimension
from ...spmd import slices as on_slice
from ...spmd.laid_out import Slices
from ...spmd.mesh import MeshImpl
from .along import whole_number


@dataclasses.dataclass(frozen=True)
class Shift(Primitive):
  """The element at position i goes to position i + offset."""

  offset: int
  dim: Dimension
  wrap: bool
  flops_per_point = 0

  def infer(self, x: Aval) -> Aval:
    x.shape.index(self.dim)
    return x

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [shift(dy, -self.offset, self.dim, self.wrap)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    if not self.dim.size:
      return x
    shape = op.inputs[0].shape
    mesh_axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    at = shape.index(self.dim) - len(shape)
    if mesh_axis is None:
      return mesh.map_trailing(lambda x: self._local(x, at), x)
    m = mesh.shape[mesh_axis].size
    block = self.dim.size // m
    far, near = divmod(self.offset, block)
    # The first `near` positions come from one processor further away.
    parts = [(0, block - near, far), (block - near, near, far + 1)]

    def receive(begin: int, size: int, distance: int) -> Slices:
      part = mesh.map_trailing(lambda x: on_slice.cut(x, at, begin, size), x)
      if abs(distance) >= m and not self.wrap:
        return mesh.map_trailing(tf.zeros_like, part)
      return mesh.shift(part, mesh_axis, distance, self.wrap)

    received = [receive(*part) for part in parts if part[1]]
    if len(received) == 1:
      return received[0]
    return mesh.map_trailing(lambda *xs: tf.concat(xs[::-1], at), *received)

  def _local(self, x: tf.Tensor, at: int) -> tf.Tensor:
    n = self.dim.size
    if self.wrap:
      return tf.roll(x, self.offset, at)
    if abs(self.offset) >= n:
      return tf.zeros_like(x)
    right, left = max(self.offset, 0), max(-self.offset, 0)
    kept = on_slice.cut(x, at, left, n - abs(self.offset))
    return on_slice.pad(kept, at, right, left)


def shift(
  x: Tensor, offset: int, dim: Dimension, wrap: bool, name: str | None = None
) -> Tensor:
  """Moves the elements along a dimension, which may be split.

  Args:
    x: a tensor.
    offset: by how many positions; a positive number moves them towards larger
      ones.
    dim: a dimension of `x`.
    wrap: whether what leaves at one end comes in at the other; zeros come in
      otherwise.
    name: a name for the operation.

  Raises:
    ShapeError: `x` lacks the dimension.
    TypeError: `offset` is no whole number.
  """
  offset = whole_number("shift: offset", offset)
  return apply(Shift(offset, dim, wrap), x, name=name)
