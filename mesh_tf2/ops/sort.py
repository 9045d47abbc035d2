"""Elements in order along a dimension, and the order itself.

If the dimension is split over a mesh axis, every processor of its group gets
the whole of it (an allconcat), sorts, and keeps its own part. The gradient puts
everything back: allconcats of two tensors, and a local scatter.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .gather import scatter_add
from .linear.reshape import rename_dimension
from .order import First, check_ordered, from_key, to_key


@dataclasses.dataclass(frozen=True)
class Sort(Primitive):
  """The elements in order, and where each of them was."""

  dim: Dimension
  first: First

  def infer(self, x: Aval) -> tuple[Aval, ...]:
    check_ordered("sort", x.dtype)
    x.shape.index(self.dim)
    return x, Aval(x.shape, tf.int32)

  def gradient(self, op: Apply, dy: Tensor, _: Tensor) -> list[Tensor | None]:
    before, after = self.dim.name, "_sorted"
    dy = rename_dimension(dy, before, after)
    origin = rename_dimension(op.outputs[1], before, after)
    return [scatter_add(dy, origin, self.dim, op.inputs[0].shape)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Any:
    shape, dtype = op.inputs[0].shape, op.inputs[0].dtype
    last = Shape([*(shape - self.dim), self.dim])
    back = [last.index(d) for d in shape]
    at, n = shape.index(self.dim), self.dim.size
    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    if axis is not None:
      x = mesh.allconcat(x, axis, at)

    def sort(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      key = to_key(on_slice.align(x, shape, last), self.first)
      found = tf.math.top_k(key, n)  # equal elements keep their order
      values = from_key(found.values, dtype, self.first)
      return (
        on_slice.transpose(values, back),
        on_slice.transpose(found.indices, back),
      )

    values, indices = mesh.map_trailing(sort, x)
    if axis is None:
      return values, indices
    return mesh.allsplit(values, axis, at), mesh.allsplit(indices, axis, at)


def sort(
  x: Tensor, dim: Dimension, descending: bool = False, name: str | None = None
) -> Tensor:
  """The elements in order along a dimension.

  Args:
    x: numbers. NaN is larger than all others: it comes last, or first if
      `descending`. Zeros come back without their sign.
    dim: a dimension of `x`; it may be split.
    descending: whether the largest comes first.
    name: a name for the operation.

  Returns:
    A tensor of the shape and dtype of `x`.

  Raises:
    ShapeError: `x` lacks the dimension.
  """
  values: Tensor = _apply(x, dim, descending, name or "sort")[0]
  return values


def argsort(
  x: Tensor, dim: Dimension, descending: bool = False, name: str | None = None
) -> Tensor:
  """Where the elements stand that `sort` puts in order: int32.

  Equal elements keep their order, in either direction. See `sort` for the
  arguments.
  """
  indices: Tensor = _apply(x, dim, descending, name or "argsort")[1]
  return indices


def _apply(x: Tensor, dim: Dimension, descending: bool, name: str) -> Any:
  first = First.LARGEST if descending else First.SMALLEST
  return apply(Sort(dim, first), x, name=name)
