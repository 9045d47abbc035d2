"""Channels of a grouped convolution, where they are split over the mesh.

In a grouped convolution an output channel sees the input channels of its own
group only. Where the output channels are split so that every processor has
whole groups, it needs just their input channels, and nothing is summed over
processors. Otherwise the channels are brought together first, and each
processor keeps its own part of what it computes.
"""

from __future__ import annotations

import dataclasses

from ....core.shape import Dimension
from ....spmd.laid_out import PendingSum, Slices
from ....spmd.mesh import MeshImpl


@dataclasses.dataclass(frozen=True)
class Channels:
  """What happens to channels before and after the kernel runs.

  Attributes:
    local: the number of groups that a processor computes.
    cut_input: the mesh axis over which whole input channels are split first.
    join_input: the mesh axis over which input channels are joined first.
    join_output: likewise for output channels.
  """

  local: int
  cut_input: int | None = None
  join_input: int | None = None
  join_output: int | None = None

  def enter_input(self, mesh: MeshImpl, x: Slices) -> Slices:
    """The input, or its gradient, as the kernel takes it."""
    if self.cut_input is not None:
      return _cut(mesh, x, self.cut_input)
    return _join(mesh, x, self.join_input)

  def leave_input(self, mesh: MeshImpl, x: Slices) -> Slices:
    """The input, or its gradient, as it is laid out."""
    if self.cut_input is not None:
      return _join(mesh, x, self.cut_input)
    return _cut(mesh, x, self.join_input)

  def enter_output(self, mesh: MeshImpl, y: Slices) -> Slices:
    """Output or filter, or a gradient of them, as the kernel takes it."""
    return _join(mesh, y, self.join_output)

  def leave_output(self, mesh: MeshImpl, y: Slices) -> Slices:
    """Output or filter, or a gradient of them, as it is laid out."""
    if isinstance(y, PendingSum) and self.join_output is not None:
      y = y.total()
    return _cut(mesh, y, self.join_output)


def channels(
  mesh: MeshImpl, inputs: Dimension, outputs: Dimension, groups: int
) -> Channels:
  """What to do, for channels that may be split."""
  if groups == 1:
    return Channels(1)
  a = mesh.tensor_dimension_to_mesh_axis(inputs)
  b = mesh.tensor_dimension_to_mesh_axis(outputs)
  if b is not None and a in (None, b) and not groups % mesh.shape[b].size:
    local = groups // mesh.shape[b].size
    return Channels(local, cut_input=b if a is None else None)
  return Channels(groups, join_input=a, join_output=b)


def _cut(mesh: MeshImpl, x: Slices, mesh_axis: int | None) -> Slices:
  if mesh_axis is None:
    return x
  return mesh.allsplit(x, mesh_axis, len(mesh.slice_sizes(x)) - 1)


def _join(mesh: MeshImpl, x: Slices, mesh_axis: int | None) -> Slices:
  if mesh_axis is None:
    return x
  return mesh.allconcat(x, mesh_axis, len(mesh.slice_sizes(x)) - 1)
