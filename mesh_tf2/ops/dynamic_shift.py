"""Shift by an offset that is known only when the program runs.

Every position looks up where its element comes from. If the dimension is split
over a mesh axis, every processor of its group gets the whole of it (an
allconcat) and keeps what it needs; the gradient is a shift the other way.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Tensor, apply
from ..core.primitive import Primitive
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .gather import Gather, look_up
from .linear.shift import shift


@dataclasses.dataclass(frozen=True)
class DynamicShift(Primitive):
  """The element at position i goes to i + offset, or `back` to i - offset."""

  dim: Dimension
  wrap: bool
  back: bool
  flops_per_point = 0

  @property
  def name(self) -> str:
    return "dynamic_shift"

  def infer(self, x: Aval, offset: Aval) -> Aval:
    if not offset.dtype.is_integer:
      raise ValueError(
        f"dynamic_shift takes an integer offset, got {offset.dtype.name}; cast "
        "it"
      )
    if unknown := offset.shape.drop(x.shape - self.dim):
      raise ShapeError(
        f"dynamic_shift of [{x.shape}] along {self.dim}: the offset "
        f"[{offset.shape}] must not have [{unknown}]"
      )
    return x

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    opposite = DynamicShift(self.dim, self.wrap, not self.back)
    return [apply(opposite, dy, op.inputs[1]), None]

  def lower(
    self, mesh: MeshImpl, op: Apply, x: Slices, offset: Slices
  ) -> Slices:
    if not self.dim.size:
      return x
    shape, by = (t.shape for t in op.inputs)
    source = Dimension("_source", self.dim.size)
    whole = shape.rename_dimension(self.dim.name, source.name)
    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    if axis is not None:
      x = mesh.allconcat(x, axis, shape.index(self.dim))

    def origin(offset: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
      return self._origin(
        on_slice.append_axes(offset, 1),
        on_slice.prepend_axes(place, 1, len(by)),
      )

    origins = mesh.map_trailing(origin, offset, mesh.positions(self.dim))
    shapes = (whole, Shape([*by, self.dim]))
    return look_up(mesh, Gather(source, shape), shapes, x, origins)

  def _origin(self, offset: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
    """Where the element at a place comes from; nowhere if outside."""
    n = self.dim.size
    # An offset of any size must not overflow.
    if self.wrap:
      small = tf.math.floormod(tf.cast(offset, tf.int64), n)
    else:
      small = tf.clip_by_value(tf.cast(offset, tf.int64), -n, n)
    small = tf.cast(-small if self.back else small, tf.int32)
    return (place - small) % n if self.wrap else place - small


def dynamic_shift(
  x: Tensor, offset: Tensor | int, dim: Dimension, wrap: bool
) -> Tensor:
  """Moves the elements along a dimension, by an offset that is computed.

  Args:
    x: a tensor.
    offset: by how many positions: integers, with any dimensions of `x` but
      `dim`; a positive number moves elements towards larger positions. It has
      no gradient.
    dim: a dimension of `x`; it may be split.
    wrap: whether what leaves at one end comes in at the other; zeros come in
      otherwise.

  Returns:
    A tensor of the shape and dtype of `x`.

  Raises:
    ShapeError: `x` lacks the dimension, or the offset has it, or another one
      that `x` lacks.
    TypeError: the offset is neither a tensor nor a whole number.
  """
  if not isinstance(offset, Tensor):
    return shift(x, offset, dim, wrap)
  return apply(DynamicShift(dim, wrap, False), x, offset)
