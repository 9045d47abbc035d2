"""A mesh that computes nothing: one processor's slices, as shapes.

Lowering onto it inside a TensorFlow graph records what a processor would do
and send. Whatever depends on values is a placeholder, so that no array is ever
made, however large the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from ..core.shape import Shape
from .laid_out import LaidOutVariable, Slices
from .mesh import MeshImpl
from .state import VariableState


def unknown(dtype: tf.DType, sizes: Sequence[int]) -> tf.Tensor:
  """A tensor without a value."""
  return tf.compat.v1.placeholder(dtype, sizes)


class CountingMeshImpl(MeshImpl):
  """What any one processor of a mesh does. Slices are tensors of a graph."""

  def slicewise(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Calls `fn` once."""
    return fn(*xs)

  def map_trailing(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Calls `fn` once."""
    return fn(*xs)

  def einsum(self, equation: str, *xs: Slices) -> Slices:
    """`tf.einsum` on the slices of one processor."""
    return tf.einsum(equation, *xs)

  def processor_coordinate(self, mesh_axis: int) -> Slices:
    """Unknown: it is no processor in particular."""
    return unknown(tf.int32, [])

  def slice_sizes(self, x: Slices) -> list[int]:
    """The sizes of the tensor."""
    return x.shape.as_list()

  def dtype(self, x: Slices) -> tf.DType:
    """The dtype of the tensor."""
    return x.dtype

  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """The tensor itself where nothing splits it."""
    value = tf.convert_to_tensor(value)
    return self._resized(value, self.slice_shape(shape))

  def export_tensor(self, x: Slices, shape: Shape) -> tf.Tensor:
    """The slice itself where nothing splits it."""
    return self._resized(x, shape.to_integer_list)

  def create_variable(
    self, name: str, value: Slices, trainable: bool
  ) -> LaidOutVariable:
    """A variable whose value is always `value`."""
    return _UnknownVariable(value)

  def distinct_slices(
    self, x: Slices, shape: Shape
  ) -> Iterator[tuple[list[int], tf.Tensor]]:
    """The one slice."""
    yield [0] * len(shape), x

  def assemble(
    self, shape: Shape, read: Callable[[list[int], list[int]], tf.Tensor]
  ) -> Slices:
    """The one slice."""
    return read([0] * len(shape), self.slice_shape(shape))

  def flatten(self, x: Slices) -> list[tf.Tensor]:
    """The one tensor."""
    return [x]

  def unflatten(self, like: Slices, tensors: Sequence[tf.Tensor]) -> Slices:
    """The one tensor."""
    return tensors[0]

  def _resized(self, x: tf.Tensor, sizes: Sequence[int]) -> tf.Tensor:
    return x if self.slice_sizes(x) == list(sizes) else unknown(x.dtype, sizes)

  def _allreduce(
    self, x: Slices, mesh_axes: tuple[int, ...], reduction: str
  ) -> Slices:
    return unknown(x.dtype, self.slice_sizes(x))

  def _allconcat(self, x: Slices, mesh_axis: int, concat_axis: int) -> Slices:
    sizes = self.slice_sizes(x)
    sizes[concat_axis] *= self.shape[mesh_axis].size
    return unknown(x.dtype, sizes)

  def _alltoall(
    self, x: Slices, mesh_axis: int, split_axis: int, concat_axis: int
  ) -> Slices:
    sizes = self.slice_sizes(x)
    sizes[split_axis] //= self.shape[mesh_axis].size
    sizes[concat_axis] *= self.shape[mesh_axis].size
    return unknown(x.dtype, sizes)

  def _permute(
    self,
    x: Slices,
    sources: Sequence[int],
    parts: Sequence[int],
    varies: Sequence[int],
  ) -> Slices:
    return unknown(x.dtype, [1, *self.slice_sizes(x)[1:]])

  def _shift(
    self, x: Slices, mesh_axis: int, offset: int, wrap: bool
  ) -> Slices:
    return unknown(x.dtype, self.slice_sizes(x))


class _UnknownVariable(LaidOutVariable):
  """A variable that nobody has given a value."""

  def __init__(self, value: tf.Tensor) -> None:
    self._value = value

  def read(self) -> Slices:
    """The placeholder."""
    return self._value

  def assign(self, value: Slices) -> None:
    """Makes no difference: the value stays unknown."""


class UnknownState(VariableState):
  """Variables without values; no initializer is ever run."""

  def __init__(self) -> None:
    super().__init__({})

  def variable(self, op: Any, mesh_impl: MeshImpl) -> LaidOutVariable:
    """A placeholder of the shape of one slice."""
    return mesh_impl.create_variable(
      op.full_name,
      unknown(op.slice_dtype, mesh_impl.slice_shape(op.shape)),
      op.trainable,
    )
