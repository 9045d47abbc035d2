"""One core's view of a mesh of which there are no cores here.

The program is that of `SimdMeshImpl` with the communication of TPU cores; there
is no strategy to run it, and nothing but shapes to run it on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ..core.layout import LayoutLike
from ..core.shape import Shape, ShapeLike
from ..spmd.communicators.tpu import TpuOps
from ..spmd.laid_out import LaidOutVariable, Slices
from ..spmd.simd import SimdMeshImpl
from ..spmd.state import VariableState


@dataclasses.dataclass(frozen=True)
class Cores:
  """So many replicas: all that a mesh asks of a strategy at first."""

  num_replicas_in_sync: int


class CoreMeshImpl(SimdMeshImpl):
  """A `SimdMeshImpl` whose program is traced, and run by somebody else.

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
    size = Shape(shape).size
    super().__init__(shape, layout, Cores(size), TpuOps())
    self._slices_of = slices_of

  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """The slice that the core was handed, or one cut out of the whole."""
    own = self._slices_of.get(tensor_before_check(value).ref())
    return super().import_tensor(value, shape) if own is None else own


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
    return _Argument(self._slices[op.full_name])


class _Argument(LaidOutVariable):
  """The slice that a core was handed."""

  def __init__(self, value: tf.Tensor) -> None:
    self._value = value

  def read(self) -> Slices:
    """The argument."""
    return self._value

  def assign(self, value: Slices) -> None:
    """Nothing: new values are results of the program."""
