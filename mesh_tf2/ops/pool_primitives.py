"""What pooling is made of: largest and sums over windows, and their adjoints.

Every dimension may be split over the mesh. For a spatial dimension that is
split, processors exchange the borders of their blocks where windows reach over
them; windows that do not overlap and divide the blocks need nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .linear.convolution.kernels import add_wide, look, spread
from .linear.convolution.stencil import Stencil
from .linear.convolution.windows import (
  Windows,
  gather_windows,
  scatter_windows,
  windows,
)


@dataclasses.dataclass(frozen=True)
class Pools:
  """Which positions each output is pooled from."""

  stencils: tuple[Stencil, ...]

  def output_shape(self, x: Shape) -> Shape:
    """Batch dimensions, fewer positions, channels."""
    n = len(self.stencils)
    if len(x) < n + 1:
      raise ShapeError(
        f"pooling over {n} spatial dimensions takes batch dimensions, {n} "
        f"spatial ones and channels, got [{x}]"
      )
    spatial = []
    for d, s in zip(x[-n - 1 : -1], self.stencils, strict=True):
      if s.outputs(d.size) < 1:
        raise ShapeError(
          f"a window of {s.size} positions does not fit into {d}; use a "
          'smaller one, or padding="SAME"'
        )
      spatial.append(Dimension(d.name, s.outputs(d.size)))
    return Shape([*x[: -n - 1], *spatial, x[-1]])

  def windows(self, mesh: MeshImpl, x: Shape) -> list[Windows]:
    """What each processor looks at."""
    return windows(mesh, x, self.output_shape(x), self.stencils, channels=1)

  def seen(self, x: tf.Tensor) -> list[tf.Tensor]:
    """For each position of a window, what all outputs see there."""
    n = len(self.stencils)
    sizes = x.shape.as_list()[-n - 1 : -1]
    pairs = zip(sizes, self.stencils, strict=True)
    outputs = [(m - s.span) // s.stride + 1 for m, s in pairs]
    return [
      look(x, at, outputs, self.stencils, behind=1) for at in self._positions
    ]

  def unseen(
    self, parts: Sequence[tf.Tensor], sizes: Sequence[int]
  ) -> tf.Tensor:
    """The adjoint of `seen`: the sum of all parts, each put where it looked."""
    total = None
    for at, part in zip(self._positions, parts, strict=True):
      total = add_wide(total, spread(part, at, sizes, self.stencils, behind=1))
    return tf.cast(total, parts[0].dtype)

  @property
  def _positions(self) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(s.size) for s in self.stencils)))


@dataclasses.dataclass(frozen=True)
class MaxPool(Primitive):
  """The largest element of each window."""

  pools: Pools

  def infer(self, x: Aval) -> Aval:
    return Aval(self.pools.output_shape(x.shape), x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [apply(ToLargest(self.pools), op.inputs[0], op.outputs[0], dy)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    x = _above_padding(mesh, self.pools, op.inputs[0], x)
    pools = self.pools
    return mesh.map_trailing(
      lambda x: functools.reduce(tf.maximum, pools.seen(x)), x
    )


@dataclasses.dataclass(frozen=True)
class ToLargest(Primitive):
  """Of x, y and dy: each element as large as its window's y gets its dy."""

  pools: Pools

  def infer(self, x: Aval, y: Aval, dy: Aval) -> Aval:
    _check_output(self.pools, x, y, dy)
    return x

  def gradient(self, op: Apply, ddx: Tensor) -> list[Tensor | None]:
    x, y, _ = op.inputs
    return [None, None, apply(FromLargest(self.pools), x, y, ddx)]

  def lower(
    self, mesh: MeshImpl, op: Apply, x: Slices, y: Slices, dy: Slices
  ) -> Slices:
    every = self.pools.windows(mesh, op.inputs[0].shape)
    x = _above_padding(mesh, self.pools, op.inputs[0], x)

    def fn(x: tf.Tensor, y: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
      zero = tf.zeros_like(dy)
      parts = [tf.where(tf.equal(v, y), dy, zero) for v in self.pools.seen(x)]
      return self.pools.unseen(parts, [w.size for w in every])

    return scatter_windows(mesh, mesh.map_trailing(fn, x, y, dy), every)


@dataclasses.dataclass(frozen=True)
class FromLargest(Primitive):
  """Of x, y and v: sums v over those elements that are as large as y."""

  pools: Pools

  def infer(self, x: Aval, y: Aval, v: Aval) -> Aval:
    _check_output(self.pools, x, y)
    return y

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    x, y, _ = op.inputs
    return [None, None, apply(ToLargest(self.pools), x, y, dy)]

  def lower(
    self, mesh: MeshImpl, op: Apply, x: Slices, y: Slices, v: Slices
  ) -> Slices:
    x = _above_padding(mesh, self.pools, op.inputs[0], x)
    v = gather_windows(mesh, v, self.pools.windows(mesh, op.inputs[0].shape))

    def fn(x: tf.Tensor, y: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
      total, zero = None, tf.zeros_like(y)
      pairs = zip(self.pools.seen(x), self.pools.seen(v), strict=True)
      for seen, part in pairs:
        total = add_wide(total, tf.where(tf.equal(seen, y), part, zero))
      return tf.cast(total, y.dtype)

    return mesh.map_trailing(fn, x, y, v)


@dataclasses.dataclass(frozen=True)
class SumPool(Primitive):
  """The sum of each window."""

  pools: Pools

  def infer(self, x: Aval) -> Aval:
    return Aval(self.pools.output_shape(x.shape), x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [apply(SumPoolAdjoint(self.pools, op.inputs[0].shape), dy)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    every = self.pools.windows(mesh, op.inputs[0].shape)

    def fn(x: tf.Tensor) -> tf.Tensor:
      total = functools.reduce(add_wide, self.pools.seen(x), None)
      return tf.cast(total, x.dtype)

    return mesh.map_trailing(fn, gather_windows(mesh, x, every))


@dataclasses.dataclass(frozen=True)
class SumPoolAdjoint(Primitive):
  """Each element gets the sum of the windows that it is in."""

  pools: Pools
  input_shape: Shape

  def infer(self, dy: Aval) -> Aval:
    x = Aval(self.input_shape, dy.dtype)
    _check_output(self.pools, x, dy)
    return x

  def gradient(self, op: Apply, dx: Tensor) -> list[Tensor | None]:
    return [apply(SumPool(self.pools), dx)]

  def lower(self, mesh: MeshImpl, op: Apply, dy: Slices) -> Slices:
    every = self.pools.windows(mesh, self.input_shape)
    count = math.prod(s.size for s in self.pools.stencils)

    def fn(dy: tf.Tensor) -> tf.Tensor:
      return self.pools.unseen([dy] * count, [w.size for w in every])

    return scatter_windows(mesh, mesh.map_trailing(fn, dy), every)


def _above_padding(
  mesh: MeshImpl, pools: Pools, x: Tensor, slices: Slices
) -> Slices:
  """The windows of x; padding is smaller than any element."""
  lowest = -np.inf if x.dtype.is_floating else x.dtype.min
  return gather_windows(mesh, slices, pools.windows(mesh, x.shape), lowest)


def _check_output(pools: Pools, x: Aval, *ys: Aval) -> None:
  wanted = pools.output_shape(x.shape)
  if wrong := [y for y in ys if y != Aval(wanted, x.dtype)]:
    raise ShapeError(
      f"pooling {x!r} gives {Aval(wanted, x.dtype)!r}, got {wrong[0]!r}"
    )
