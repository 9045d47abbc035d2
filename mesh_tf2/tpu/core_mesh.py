"""One core's view of a mesh of which there are no cores here.

The program is that of every processor, with the communication of TPU cores;
there is no strategy to run it, and nothing but shapes to run it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from ..core.layout import LayoutLike
from ..core.shape import Shape, ShapeLike
from ..spmd.communicators.tpu import TpuOps
from ..spmd.laid_out import LaidOutVariable, Slices
from ..spmd.own_slice import OwnSliceMeshImpl
from ..spmd.state import VariableState


class CoreMeshImpl(OwnSliceMeshImpl):
  """A mesh whose program is traced, and run by somebody else.

  Args:
    shape: the mesh dimensions.
    layout: the layout rules.
    slices_of: for whole tensors without a value, what to use in their place:
      the slice that each core is handed.
  """

  def __init__(
    self,
    shape: ShapeLike,
    layout: LayoutLike,
    slices_of: Mapping[Any, tf.Tensor],
  ) -> None:
    super().__init__(shape, layout, TpuOps())
    self._slices_of = slices_of

  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """The slice that the core was handed, or one cut out of the whole."""
    own = self._slices_of.get(tensor_before_check(value).ref())
    return super().import_tensor(value, shape) if own is None else own

  def create_variable(
    self, name: str, value: Slices, trainable: bool
  ) -> LaidOutVariable:
    """A variable that begins as an argument of the program."""
    return _Argument(value)

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


def tensor_before_check(x: tf.Tensor) -> tf.Tensor:
  """What an import was handed, before it made sure of the shape."""
  if not tf.is_symbolic_tensor(x):
    return x
  return x.op.inputs[0] if x.op.type == "EnsureShape" else x


class ArgumentState(VariableState):
  """Variables whose slices are arguments of the program.

  Args:
    slices: the arguments, by full name.
  """

  def __init__(self, slices: Mapping[str, tf.Tensor]) -> None:
    super().__init__({})
    self._slices = slices

  def variable(self, op: Any, mesh_impl: Any) -> LaidOutVariable:
    """A variable that begins as the argument of its name."""
    return mesh_impl.create_variable(
      op.full_name, self._slices[op.full_name], op.trainable
    )


class _Argument(LaidOutVariable):
  """The slice that a core was handed."""

  def __init__(self, value: tf.Tensor) -> None:
    self._value = value

  def read(self) -> Slices:
    """The argument."""
    return self._value

  def assign(self, value: Slices) -> None:
    """Nothing: new values are results of the program."""
