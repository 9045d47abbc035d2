"""Where values come from: TensorFlow tensors, constants, ranges, one-hots.

None of these communicates: every processor makes or cuts out its own slice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import (
  Apply,
  Aval,
  Mesh,
  Operation,
  Primitive,
  Tensor,
  apply,
)
from ..core.shape import Dimension, Shape, ShapeLike, convert_to_shape, to_shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.lowering import Lowering
from ..spmd.mesh import MeshImpl
from .cast import as_number, check_number


class ImportOperation(Operation):
  """A TensorFlow tensor, cut into slices."""

  def __init__(
    self, mesh: Mesh, tf_tensor: Any, shape: Shape, name: str | None = None
  ) -> None:
    value = tf.convert_to_tensor(tf_tensor)
    if not value.shape.is_compatible_with(shape.to_integer_list):
      raise ShapeError(
        f"import_tf_tensor: the tensor has shape {value.shape}, the "
        f"dimensions [{shape}] want {shape.to_integer_list}"
      )
    super().__init__([], mesh, name or "import")
    if not value.shape.is_fully_defined():
      value = tf.ensure_shape(value, shape.to_integer_list)
    self.tf_tensor = value
    self._outputs = [Tensor(self, shape, value.dtype)]

  def lower(self, lowering: Lowering) -> None:
    """Cuts the tensor."""
    y = self._outputs[0]
    slices = lowering.mesh_impl(self).import_tensor(self.tf_tensor, y.shape)
    lowering.set_tensor_lowering(y, slices)

  def clone(self, inputs: Sequence[Tensor]) -> Operation:
    """The same tensor, imported again."""
    return ImportOperation(self.mesh, self.tf_tensor, self._outputs[0].shape)


class ImportLaidOutTensorOperation(Operation):
  """Slices that are laid out already."""

  def __init__(
    self,
    mesh: Mesh,
    laid_out_tensor: Slices,
    shape: Shape,
    dtype: tf.DType,
    name: str | None = None,
  ) -> None:
    super().__init__([], mesh, name or "import_laid_out")
    self._slices = laid_out_tensor
    self._outputs = [Tensor(self, shape, dtype)]

  def lower(self, lowering: Lowering) -> None:
    """Adopts the slices."""
    lowering.set_tensor_lowering(self._outputs[0], self._slices)

  def clone(self, inputs: Sequence[Tensor]) -> Operation:
    """The same slices, adopted again."""
    y = self._outputs[0]
    return ImportLaidOutTensorOperation(
      self.mesh, self._slices, y.shape, y.dtype
    )


def import_tf_tensor(
  mesh: Mesh,
  tf_tensor: Any,
  shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """A TensorFlow tensor, array or number as a mesh tensor.

  Args:
    mesh: the mesh.
    tf_tensor: anything that `tf.convert_to_tensor` takes.
    shape: the dimensions of its axes; by default it is a scalar.
    name: a name for the operation.

  Raises:
    ShapeError: the sizes of `tf_tensor` are not those of `shape`.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mesh = mtf.Mesh(mtf.Graph(), "mesh")
    >>> mtf.import_tf_tensor(mesh, [[1, 2, 3]], "batch:1 length:3")
    import:0: int32[batch:1 length:3]
  """
  shape = convert_to_shape(shape)
  return ImportOperation(
    mesh, tf_tensor, Shape([]) if shape is None else shape, name
  ).outputs[0]


def import_fully_replicated(
  mesh: Mesh, tf_tensor: Any, shape: ShapeLike, name: str | None = None
) -> Tensor:
  """`import_tf_tensor`: an import cuts replicated values without traffic."""
  return import_tf_tensor(mesh, tf_tensor, shape, name)


def import_laid_out_tensor(
  mesh: Mesh,
  laid_out_tensor: Slices,
  shape: ShapeLike,
  name: str | None = None,
  dtype: Any = tf.float32,
) -> Tensor:
  """Slices that a mesh implementation made, as a mesh tensor."""
  return ImportLaidOutTensorOperation(
    mesh, laid_out_tensor, to_shape(shape), tf.as_dtype(dtype), name
  ).outputs[0]


@dataclasses.dataclass(frozen=True)
class Constant(Primitive):
  """The same number everywhere."""

  value: Any
  shape: Shape
  dtype: tf.DType
  flops_per_point = 0

  def infer(self) -> Aval:
    check_number(self.value, self.dtype)
    return Aval(self.shape, self.dtype)

  def lower(self, mesh: MeshImpl, op: Apply) -> Slices:
    return mesh.full(as_number(self.value, self.dtype), self.shape)


def constant(
  mesh: Mesh, value: Any, shape: ShapeLike = (), dtype: Any = tf.float32
) -> Tensor:
  """A tensor whose elements are all the number `value`."""
  if shape is None:
    shape = ()
  return apply(Constant(value, to_shape(shape), tf.as_dtype(dtype)), mesh=mesh)


def zeros(mesh: Mesh, shape: ShapeLike, dtype: Any = tf.float32) -> Tensor:
  """Zeros."""
  return constant(mesh, 0, shape, dtype)


def zeros_like(t: Tensor) -> Tensor:
  """Zeros with the shape and dtype of `t`."""
  return constant(t.mesh, 0, t.shape, t.dtype)


def ones(mesh: Mesh, shape: ShapeLike, dtype: Any = tf.float32) -> Tensor:
  """Ones."""
  return constant(mesh, 1, shape, dtype)


def ones_like(t: Tensor) -> Tensor:
  """Ones with the shape and dtype of `t`."""
  return constant(t.mesh, 1, t.shape, t.dtype)


@dataclasses.dataclass(frozen=True)
class Range(Primitive):
  """0, 1, ... along one dimension."""

  dim: Dimension
  dtype: tf.DType
  flops_per_point = 0

  def infer(self) -> Aval:
    return Aval(Shape([self.dim]), self.dtype)

  def lower(self, mesh: MeshImpl, op: Apply) -> Slices:
    return mesh.positions(self.dim, self.dtype)


def mtf_range(
  mesh: Mesh, dim: Dimension, dtype: Any, name: str | None = None
) -> Tensor:
  """0, 1, ..., dim.size - 1 along `dim`."""
  return apply(Range(dim, tf.as_dtype(dtype)), mesh=mesh, name=name)


@dataclasses.dataclass(frozen=True)
class OneHot(Primitive):
  """`on_value` where the position along `dim` is the index."""

  dim: Dimension
  on_value: Any
  off_value: Any
  dtype: tf.DType

  def infer(self, indices: Aval) -> Aval:
    if not indices.dtype.is_integer:
      raise ValueError(
        f"one_hot takes integer indices, got {indices.dtype.name}; cast them"
      )
    return Aval(indices.shape + self.dim, self.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [None]

  def lower(self, mesh: MeshImpl, op: Apply, indices: Slices) -> Slices:
    def compare(indices: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
      rank = len(op.inputs[0].shape)
      positions = on_slice.prepend_axes(positions, 1, rank)
      hit = tf.equal(on_slice.append_axes(indices, 1), positions)
      on = as_number(self.on_value, self.dtype)
      return tf.where(hit, on, as_number(self.off_value, self.dtype))

    positions = mesh.positions(self.dim, op.inputs[0].dtype)
    return mesh.map_trailing(compare, indices, positions)


def one_hot(
  indices: Tensor,
  output_dim: Dimension,
  on_value: Any = 1.0,
  off_value: Any = 0.0,
  dtype: Any = tf.float32,
  name: str | None = None,
) -> Tensor:
  """Adds a last dimension that is `on_value` at the index.

  Args:
    indices: integers of any shape. One outside [0, output_dim.size) gives
      `off_value` everywhere.
    output_dim: the new dimension; it may be split.
    on_value: at the index.
    off_value: elsewhere.
    dtype: of the result.
    name: a name for the operation.
  """
  primitive = OneHot(output_dim, on_value, off_value, tf.as_dtype(dtype))
  return apply(primitive, indices, name=name)
