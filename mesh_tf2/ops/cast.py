"""Another dtype for the same numbers. No communication."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl


@dataclasses.dataclass(frozen=True)
class Cast(Primitive):
  """Another dtype."""

  dtype: tf.DType

  def infer(self, x: Aval) -> Aval:
    return Aval(x.shape, self.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    x = op.inputs[0]
    return [cast(dy, x.dtype) if x.dtype.is_floating else None]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    return mesh.map_trailing(lambda x: tf.cast(x, self.dtype), x)


def check_number(value: Any, dtype: tf.DType) -> None:
  """Raises ValueError on a float that an integer dtype would cut off."""
  if isinstance(value, float) and dtype.is_integer and not value.is_integer():
    raise ValueError(
      f"{value} is no {dtype.name}; cast the tensor to a floating dtype, or "
      "take a whole number"
    )


def as_number(value: Any, dtype: tf.DType) -> tf.Tensor:
  """A number in a dtype; a Python float keeps all the digits it can.

  Raises:
    ValueError: an integer dtype would cut it off.
  """
  check_number(value, dtype)
  if isinstance(value, float):
    value = tf.constant(value, tf.float64)  # not float32, the default
  return tf.cast(value, dtype)


def cast(x: Tensor, dtype: Any, name: str | None = None) -> Tensor:
  """`x` in another dtype; `x` itself if it has that dtype."""
  dtype = tf.as_dtype(dtype)
  return x if x.dtype == dtype else apply(Cast(dtype), x, name=name)
