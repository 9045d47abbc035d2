"""Windows: what a processor's outputs look at, and how it gets there.

Where a spatial dimension is split, the border of a block is looked at by the
processors next to it, or further away where blocks are small. They get it by a
shift of just those positions. In the adjoint, what a processor found for
positions of others is shifted back to them and added.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ....core.shape import Dimension, Shape
from ....spmd.laid_out import Slices
from ....spmd.mesh import MeshImpl
from .stencil import Stencil


@dataclasses.dataclass(frozen=True)
class Span:
  """The positions begin, ..., end - 1, counted from a block's first one."""

  begin: int
  end: int

  @property
  def size(self) -> int:
    """How many positions."""
    return self.end - self.begin


@dataclasses.dataclass(frozen=True)
class Windows:
  """Each processor's window on one spatial dimension.

  Attributes:
    inputs: the dimension that is looked at.
    outputs: how many outputs there are.
    stencil: what an output looks at.
    axis: of the dimension in a slice, counted from the back.
    parts: over how many processors the dimension is split.
    mesh_axis: over which mesh axis, or None.
  """

  inputs: Dimension
  outputs: int
  stencil: Stencil
  axis: int
  parts: int
  mesh_axis: int | None

  @property
  def block(self) -> int:
    """How many inputs a processor holds."""
    return self.inputs.size // self.parts

  @property
  def begins(self) -> list[int]:
    """Where the window of each processor begins, from its first input."""
    before = self.stencil.before(self.inputs.size)
    drift = self.outputs // self.parts * self.stencil.stride - self.block
    return [p * drift - before for p in range(self.parts)]

  @property
  def size(self) -> int:
    """How many positions a window has."""
    return self.stencil.window(self.outputs // self.parts)

  @property
  def reach(self) -> Span:
    """All that any processor looks at, from its own first input."""
    return Span(min(self.begins), max(self.begins) + self.size)

  @property
  def is_aligned(self) -> bool:
    """Whether every window lies alike around its processor's block."""
    return len(set(self.begins)) == 1

  def own_begin(self, mesh: MeshImpl) -> Slices:
    """Each processor's number among `begins`: one element."""
    return self._constant(mesh, np.array(self.begins, np.int32))

  def is_inside(self, mesh: MeshImpl) -> Slices | None:
    """Which positions of the window are inputs; None where all are."""
    rows = [
      np.arange(self.size) + b + p * self.block
      for p, b in enumerate(self.begins)
    ]
    inside = np.concatenate([(r >= 0) & (r < self.inputs.size) for r in rows])
    return None if inside.all() else self._constant(mesh, inside)

  # There are few different begins: they are as many as a window has positions
  # at most. So each is tried, which any device can do faster than a gather.

  def choose(self, wide: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    """The window that starts at `begin`, out of the reach."""
    found = None
    for b in sorted(set(self.begins)):
      first = b - self.reach.begin
      part = _fit(wide, self.axis, Span(first, first + self.size), 0)
      if found is not None:
        part = tf.where(_in_front(tf.equal(begin, b), part), part, found)
      found = part
    return found

  def place(self, window: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    """The adjoint of `choose`: the window with zeros around it."""
    total, zero = None, tf.zeros_like(window)
    for b in sorted(set(self.begins)):
      part = tf.where(_in_front(tf.equal(begin, b), window), window, zero)
      whole = Span(self.reach.begin - b, self.reach.end - b)
      part = _fit(part, self.axis, whole, 0)
      total = part if total is None else total + part
    return total

  def _constant(self, mesh: MeshImpl, whole: Any) -> Slices:
    dim = Dimension(self.inputs.name, len(whole))
    return mesh.import_tensor(tf.constant(whole), Shape([dim]))


def windows(
  mesh: MeshImpl,
  inputs: Shape,
  outputs: Shape,
  stencils: Sequence[Stencil],
  channels: int,
) -> list[Windows]:
  """Those of every spatial dimension.

  Args:
    mesh: what they are split over.
    inputs: the shape that is looked at: batch, spatial, channel dimensions.
    outputs: the shape of the result.
    stencils: one for each spatial dimension.
    channels: the number of channel dimensions.
  """
  found = []
  n = len(stencils)
  first = len(inputs) - channels - n
  for i, stencil in enumerate(stencils):
    dim = inputs[first + i]
    mesh_axis = mesh.tensor_dimension_to_mesh_axis(dim)
    parts = 1 if mesh_axis is None else mesh.shape[mesh_axis].size
    size = outputs[first + i].size
    axis = i - n - channels
    found.append(Windows(dim, size, stencil, axis, parts, mesh_axis))
  return found


def gather_windows(
  mesh: MeshImpl, x: Slices, every: Sequence[Windows], fill: Any = 0
) -> Slices:
  """What each processor's outputs look at; `fill` outside of the input."""
  for w in every:
    x = _gather(mesh, x, w, fill)
  return x


def _gather(mesh: MeshImpl, x: Slices, w: Windows, fill: Any) -> Slices:
  if w.mesh_axis is None:
    return mesh.map_trailing(lambda x: _fit(x, w.axis, w.reach, fill), x)
  wide = fetch(mesh, x, w.mesh_axis, w.axis, w.block, w.reach)
  if not w.is_aligned:
    wide = mesh.map_trailing(w.choose, wide, w.own_begin(mesh))
  inside = None if fill == 0 else w.is_inside(mesh)
  if inside is None:
    return wide

  def mask(x: tf.Tensor, inside: tf.Tensor) -> tf.Tensor:
    *lead, n = inside.shape.as_list()
    between = [1] * (x.shape.rank + w.axis - len(lead))
    behind = [1] * (-w.axis - 1)
    inside = tf.reshape(inside, [*lead, *between, n, *behind])
    return tf.where(inside, x, tf.cast(fill, x.dtype))

  return mesh.map_trailing(mask, wide, inside)


def _in_front(flag: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
  """A processor's one flag, to broadcast over its slice of `x`."""
  lead = flag.shape.as_list()[:-1]
  return tf.reshape(flag, [*lead, *[1] * (x.shape.rank - len(lead))])


def scatter_windows(
  mesh: MeshImpl, dx: Slices, every: Sequence[Windows]
) -> Slices:
  """The adjoint of `gather_windows`: each input gets the sum of its copies."""
  for w in reversed(every):
    dx = _scatter(mesh, dx, w)
  return dx


def _scatter(mesh: MeshImpl, dx: Slices, w: Windows) -> Slices:
  if w.mesh_axis is None:
    back = Span(-w.reach.begin, w.block - w.reach.begin)
    return mesh.map_trailing(lambda dx: _fit(dx, w.axis, back, 0), dx)
  if not w.is_aligned:
    dx = mesh.map_trailing(w.place, dx, w.own_begin(mesh))
  return give_back(mesh, dx, w.mesh_axis, w.axis, w.block, w.reach)


def fetch(
  mesh: MeshImpl, x: Slices, mesh_axis: int, axis: int, block: int, reach: Span
) -> Slices:
  """The positions of `reach`, whoever holds them; zeros outside of the whole.

  Args:
    mesh: the mesh.
    x: slices that are split along `axis`.
    mesh_axis: the mesh axis that splits it.
    axis: counted from the back.
    block: how many positions a processor holds.
    reach: counted from the processor's own first position.
  """
  near = _within(mesh, mesh_axis, block, reach)
  parts = []
  for distance in _distances(block, near):
    piece = _piece(block, near, distance)
    part = mesh.map_trailing(lambda x, p=piece: _fit(x, axis, p, 0), x)
    parts.append(_send(mesh, part, mesh_axis, -distance))
  whole = Span(reach.begin - near.begin, reach.end - near.begin)

  def join(*xs: tf.Tensor) -> tf.Tensor:
    return _fit(tf.concat(xs, axis), axis, whole, 0)

  return mesh.map_trailing(join, *parts)


def give_back(
  mesh: MeshImpl, dx: Slices, mesh_axis: int, axis: int, block: int, reach: Span
) -> Slices:
  """The adjoint of `fetch`: adds up what all found for a processor's block."""
  near = _within(mesh, mesh_axis, block, reach)
  total = None
  for distance in _distances(block, near):
    piece = _piece(block, near, distance)
    start = distance * block + piece.begin - reach.begin
    own = Span(start, start + piece.size)
    part = mesh.map_trailing(lambda x, p=own: _fit(x, axis, p, 0), dx)
    part = _send(mesh, part, mesh_axis, distance)
    whole = Span(-piece.begin, block - piece.begin)
    part = mesh.map_trailing(lambda x, p=whole: _fit(x, axis, p, 0), part)
    total = part if total is None else mesh.map_trailing(tf.add, total, part)
  return total


def _within(mesh: MeshImpl, mesh_axis: int, block: int, reach: Span) -> Span:
  """What of `reach` somebody holds, for some processor."""
  m = mesh.shape[mesh_axis].size
  return Span(max(reach.begin, (1 - m) * block), min(reach.end, m * block))


def _distances(block: int, reach: Span) -> range:
  """How many processors further on the parts of `reach` are."""
  return range(reach.begin // block, -(-reach.end // block))


def _piece(block: int, reach: Span, distance: int) -> Span:
  """What `reach` needs of the processor at a distance, in that one's block."""
  first = distance * block
  return Span(max(reach.begin - first, 0), min(reach.end - first, block))


def _send(mesh: MeshImpl, x: Slices, mesh_axis: int, offset: int) -> Slices:
  return mesh.shift(x, mesh_axis, offset, wrap=False) if offset else x


def _fit(x: tf.Tensor, axis: int, span: Span, fill: Any) -> tf.Tensor:
  """The positions of `span` along an axis; `fill` where there are none."""
  sizes = x.shape.as_list()
  n = sizes[axis]
  begin, end = min(max(span.begin, 0), n), max(min(span.end, n), 0)
  kept = max(end - begin, 0)
  before = min(max(-span.begin, 0), span.size)
  if span == Span(0, n):
    return x
  # TensorFlow pads tensors of eight axes at most, and with those of processors
  # there may be more.
  front = math.prod(sizes[: len(sizes) + axis])
  behind = math.prod(sizes[len(sizes) + axis + 1 :])
  x = tf.reshape(x, [front, n, behind])[:, begin : begin + kept]
  pads = [[0, 0], [before, span.size - before - kept], [0, 0]]
  x = tf.pad(x, pads, constant_values=tf.cast(fill, x.dtype))
  sizes[axis] = span.size
  return tf.reshape(x, sizes)
