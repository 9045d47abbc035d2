"""What a virtual mesh keeps: tensors whose leading axes are mesh axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.shape import Shape
from . import slices as on_slice
from .laid_out import LaidOutVariable


@dataclasses.dataclass(frozen=True)
class VirtualSlices:
  """One tensor, and the mesh axes that its leading axes stand for."""

  value: tf.Tensor
  axes: tuple[int, ...]

  @property
  def slice_shape(self) -> list[int]:
    """The sizes of a slice; all are alike."""
    return self.value.shape.as_list()[len(self.axes) :]

  def __repr__(self) -> str:
    return f"VirtualSlices({self.value.shape}, mesh axes {self.axes})"


class VirtualVariable(LaidOutVariable):
  """All slices of a variable in one `tf.Variable`."""

  def __init__(self, name: str, value: VirtualSlices, trainable: bool) -> None:
    self._axes = value.axes
    # Not lifted: it is made outside the function that is being traced, which
    # then need not be traced a second time.
    self.tf_variable = tf.Variable(
      value.value,
      trainable=trainable,
      name=name.replace(":", "_"),
      experimental_enable_variable_lifting=False,
    )

  def read(self) -> VirtualSlices:
    """The current slices."""
    return VirtualSlices(self.tf_variable.read_value(), self._axes)

  def assign(self, value: VirtualSlices) -> None:
    """Overwrites the slices."""
    self.tf_variable.assign(value.value)


def union(xs: Sequence[VirtualSlices]) -> tuple[int, ...]:
  """The mesh axes along which any of these varies, ascending."""
  return tuple(sorted({a for x in xs for a in x.axes}))


def with_axes(x: VirtualSlices, axes: Sequence[int]) -> tf.Tensor:
  """The tensor with leading axes of size 1 for the mesh axes it lacks."""
  if len(x.axes) == len(axes):
    return x.value
  sizes = x.value.shape.as_list()
  own = iter(sizes)
  lead = [next(own) if a in x.axes else 1 for a in axes]
  full = [*lead, *sizes[len(x.axes) :]]
  return tf.reshape(x.value, on_slice.constant(full))


def aligned(
  x: VirtualSlices,
  shape: Shape,
  target: Shape,
  axes: Sequence[int],
  may_be_short: bool,
) -> tf.Tensor:
  """The tensor with axes of size 1 for what it lacks.

  If it may be short, those that would be in front of all others are left out.
  """
  kept = target.keep(shape)
  y = on_slice.transpose(x.value, [shape.index(d) for d in kept])
  sizes = y.shape.as_list()
  lead = dict(zip(x.axes, sizes, strict=False))
  rest = iter(sizes[len(x.axes) :])
  full = [lead.get(a, 1) for a in axes]
  full += [next(rest) if d in shape else 1 for d in target]
  missing = len(full) - len(sizes)
  if full == sizes or (may_be_short and full == [1] * missing + sizes):
    return y
  return tf.reshape(y, on_slice.constant(full))


def to_tensor(x: np.ndarray) -> tf.Tensor:
  """A constant of the current graph."""
  return tf.convert_to_tensor(on_slice.constant(x))


def wrap(ys: Any, axes: tuple[int, ...]) -> Any:
  """Tensors, in any structure, as slices that vary along `axes`."""
  return tf.nest.map_structure(lambda y: VirtualSlices(y, axes), ys)


def move(x: tf.Tensor, source: int, target: int) -> tf.Tensor:
  """Puts one axis in another place, and leaves the others in order."""
  if source == target:
    return x
  order = [i for i in range(x.shape.rank) if i != source]
  order.insert(target, source)
  return tf.transpose(x, on_slice.constant(order))
