"""Another dtype for the same numbers. No communication."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .operands import check_tensor


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
  """Raises ValueError on what is no number, or none that `dtype` can hold."""
  shape = getattr(value, "shape", None)
  if not (isinstance(value, numbers.Number) or shape in _SCALAR):
    what = repr(value) if shape is None else f"shape {shape}"
    raise ValueError(
      f"a tensor or one number is needed, got {what}; give an array the names "
      "of its dimensions first, with mtf.import_tf_tensor"
    )
  if not dtype.is_integer:
    return
  if _is_fraction(value):
    raise ValueError(
      f"{value} is no {dtype.name}; cast the tensor to a floating dtype, or "
      "take a whole number"
    )
  low = -dtype.max if dtype.is_unsigned else dtype.min  # -1 stands for max
  if isinstance(value, int) and not low <= value <= dtype.max:
    raise ValueError(
      f"{value} is too large for {dtype.name}; cast the tensor first"
    )


_SCALAR = ((), tf.TensorShape([]))


def _is_fraction(value: Any) -> bool:
  """Whether an integer dtype would cut off some of it, or might do so."""
  if isinstance(value, (float, np.floating)):
    return not float(value).is_integer()
  return tf.is_tensor(value) and not value.dtype.is_integer


def as_number(value: Any, dtype: tf.DType) -> tf.Tensor:
  """A number in a dtype; a Python float keeps all the digits it can.

  Raises:
    ValueError: an integer dtype would cut it off.
  """
  check_number(value, dtype)
  if isinstance(value, (bool, int, float)):
    # From float64 or 64-bit integers, as NumPy takes these.
    value = on_slice.constant(np.asarray(value).astype(dtype.as_numpy_dtype))
  return tf.cast(value, dtype)


def cast(x: Tensor, dtype: Any, name: str | None = None) -> Tensor:
  """`x` in another dtype; `x` itself if it has that dtype."""
  check_tensor("cast", x)
  try:
    dtype = tf.as_dtype(dtype)
  except TypeError:
    raise TypeError(
      f"cast: {dtype!r} is no dtype; write for example 'float32' or tf.float32"
    ) from None
  return x if x.dtype == dtype else apply(Cast(dtype), x, name=name)
