"""From one mesh to another: the parts of a model may be on different meshes."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.graph import Mesh, Operation, Tensor
from ..spmd.lowering import Lowering


class CopyToMesh(Operation):
  """The same tensor, laid out as another mesh of the graph lays it out."""

  def __init__(self, x: Tensor, mesh: Mesh) -> None:
    super().__init__([x], mesh, "copy_to_mesh")
    self._outputs = [Tensor(self, x.shape, x.dtype)]

  def gradient(self, grad_ys: Sequence[Tensor]) -> list[Tensor | None]:
    """Goes back to where the tensor came from."""
    return [copy_to_mesh(grad_ys[0], self._inputs[0].mesh)]

  def lower(self, lowering: Lowering) -> None:
    """Puts the slices together, and cuts the whole tensor anew."""
    (x,), (y,) = self._inputs, self._outputs
    whole = lowering.export_to_tf_tensor(x)
    slices = lowering.mesh_impl(self).import_tensor(whole, y.shape)
    lowering.set_tensor_lowering(y, slices)

  def clone(self, inputs: Sequence[Tensor]) -> Operation:
    """The same for another tensor."""
    return CopyToMesh(inputs[0], self._mesh)


def copy_to_mesh(x: Tensor, mesh: Mesh) -> Tensor:
  """`x` on another mesh of the same graph.

  So one part of a model can be on some devices and the next part on others.
  The gradient is copied back.

  Args:
    x: any shape, on any mesh.
    mesh: where it shall be.

  Raises:
    ValueError: the mesh belongs to another graph.
  """
  return x if x.mesh is mesh else CopyToMesh(x, mesh).outputs[0]
