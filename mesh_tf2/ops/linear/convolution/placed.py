"""A convolution on a mesh: its three products, on the slices of processors.

Batch and output channels may be split at no cost; a sum over split input
channels stays pending. For a spatial dimension that is split, borders are
exchanged (`windows.py`). In the gradient for the filter, batch and spatial
dimensions are what is summed over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from ....core.shape import Shape
from ....spmd.laid_out import PendingSum, Slices
from ....spmd.mesh import MeshImpl
from . import kernels
from .folding import folding
from .groups import Channels, channels
from .stencil import Stencil
from .windows import Windows, gather_windows, scatter_windows, windows


@dataclasses.dataclass(frozen=True)
class Form:
  """What all convolutions of one kind have in common, whatever the sizes."""

  stencils: tuple[Stencil, ...]
  groups: int

  @property
  def ndims(self) -> int:
    """The number of spatial dimensions."""
    return len(self.stencils)


@dataclasses.dataclass(frozen=True)
class Placed:
  """A convolution of known shapes on a mesh.

  Attributes:
    mesh: the mesh.
    form: strides, dilations, padding, groups.
    x: batch and spatial dimensions, input channels.
    w: the filter: spatial dimensions, input channels of a group, output
      channels.
    y: batch and spatial dimensions, output channels.
  """

  mesh: MeshImpl
  form: Form
  x: Shape
  w: Shape
  y: Shape

  @property
  def channels(self) -> Channels:
    """What happens to the channels of a grouped convolution."""
    return channels(self.mesh, self.x[-1], self.y[-1], self.form.groups)

  @property
  def windows(self) -> list[Windows]:
    """What each processor looks at."""
    return windows(self.mesh, self.x, self.y, self.form.stencils, channels=1)

  def correlate(self, x: Slices, w: Slices) -> Slices:
    """The slices of y."""
    x = self.channels.enter_input(self.mesh, x)
    x = gather_windows(self.mesh, x, self.windows)
    w = self.channels.enter_output(self.mesh, w)
    stencils = self.form.stencils

    def fn(x: tf.Tensor, w: tf.Tensor, lead: Sequence[int]) -> tf.Tensor:
      f = folding((("x", x), ("w", w)), lead, *self._numbers)
      y = kernels.correlate(f.fold(x, "x"), f.fold(w, "w"), stencils)
      return f.unfold(y, "y")

    y = self.mesh.map_trailing_sum(fn, (x, w), self._summed(self.x[-1:]))
    return self.channels.leave_output(self.mesh, y)

  def input_of(self, w: Slices, y: Slices) -> Slices:
    """The slices of x."""
    w = self.channels.enter_output(self.mesh, w)
    y = self.channels.enter_output(self.mesh, y)
    stencils, every = self.form.stencils, self.windows
    sizes = [w.size for w in every]

    def fn(w: tf.Tensor, y: tf.Tensor, lead: Sequence[int]) -> tf.Tensor:
      f = folding((("w", w), ("y", y)), lead, *self._numbers)
      x = kernels.input_of(f.fold(w, "w"), f.fold(y, "y"), sizes, stencils)
      return f.unfold(x, "x")

    def finish(x: Slices) -> Slices:
      x = scatter_windows(self.mesh, x, every)
      return self.channels.leave_input(self.mesh, x)

    found = self.mesh.map_trailing_sum(fn, (w, y), self._summed(self.y[-1:]))
    if not isinstance(found, PendingSum):
      return finish(found)
    return PendingSum(
      found.mesh_axes,
      lambda: finish(found.partial()),
      lambda: finish(found.fresh_total()),
    )

  def filter_of(self, x: Slices, y: Slices) -> Slices:
    """The slices of w."""
    x = self.channels.enter_input(self.mesh, x)
    x = gather_windows(self.mesh, x, self.windows)
    y = self.channels.enter_output(self.mesh, y)
    stencils = self.form.stencils

    def fn(x: tf.Tensor, y: tf.Tensor, lead: Sequence[int]) -> tf.Tensor:
      f = folding((("x", x), ("y", y)), lead, *self._numbers)
      w = kernels.filter_of(f.fold(x, "x"), f.fold(y, "y"), stencils)
      return f.unfold(w, "w")

    summed = self.mesh.axes(self.y[:-1])
    w = self.mesh.map_trailing_sum(fn, (x, y), summed)
    return self.channels.leave_output(self.mesh, w)

  def _summed(self, dims: Shape) -> tuple[int, ...]:
    """The mesh axes to sum over when all of `dims` is summed over."""
    return self.mesh.axes(dims) if self.form.groups == 1 else ()

  @property
  def _numbers(self) -> tuple[int, int, int]:
    """The number of batch axes, of spatial axes, and of groups in a slice."""
    n = self.form.ndims
    return len(self.x) - n - 1, n, self.channels.local
