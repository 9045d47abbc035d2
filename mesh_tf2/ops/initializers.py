"""Initial values of variables, made slice by slice.

The value of an element is a function of the seed, the variable's full name and
the element's position: it is the same under every layout, and no device ever
holds more than its slices.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any

import tensorflow as tf

from ..core.shape import Shape
from ..spmd import random_bits
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl


class Initializer(abc.ABC):
  """Makes the slices of an initial value."""

  @abc.abstractmethod
  def slices(
    self, mesh: MeshImpl, shape: Shape, dtype: tf.DType, key: tf.Tensor
  ) -> Slices:
    """The slices of a tensor of `shape`; `key` seeds its random numbers."""


@dataclasses.dataclass(frozen=True)
class Constant(Initializer):
  """The same number everywhere."""

  value: float = 0.0

  def slices(
    self, mesh: MeshImpl, shape: Shape, dtype: tf.DType, key: tf.Tensor
  ) -> Slices:
    return mesh.full(tf.cast(self.value, dtype), shape)


@dataclasses.dataclass(frozen=True)
class RandomUniform(Initializer):
  """Evenly distributed in [minval, maxval)."""

  minval: float = -0.05
  maxval: float = 0.05

  def slices(
    self, mesh: MeshImpl, shape: Shape, dtype: tf.DType, key: tf.Tensor
  ) -> Slices:
    def draw(index: tf.Tensor) -> tf.Tensor:
      u = random_bits.uniform(random_bits.bits(key, index))
      return tf.cast(u * (self.maxval - self.minval) + self.minval, dtype)

    return mesh.map_trailing(draw, mesh.global_index(shape))


@dataclasses.dataclass(frozen=True)
class RandomNormal(Initializer):
  """Normal, or truncated at `cut` standard deviations."""

  mean: float = 0.0
  stddev: float = 0.05
  cut: float | None = None

  def slices(
    self, mesh: MeshImpl, shape: Shape, dtype: tf.DType, key: tf.Tensor
  ) -> Slices:
    def draw(index: tf.Tensor) -> tf.Tensor:
      z = random_bits.normal(random_bits.bits(key, index), self.cut)
      return tf.cast(z * self.stddev + self.mean, dtype)

    return mesh.map_trailing(draw, mesh.global_index(shape))


@dataclasses.dataclass(frozen=True)
class VarianceScaling(Initializer):
  """Random numbers of variance scale / n, n being a number of inputs.

  The last dimension counts the outputs, the one before it the inputs, and any
  dimension before those multiplies both, as in TensorFlow. For named fans, see
  `mtf.layers.VarianceScalingInitializer`.

  Args:
    scale: the variance times n.
    mode: n: fan_in, fan_out or fan_avg.
    distribution: uniform, normal, or truncated_normal (at two standard
      deviations, with the variance corrected).
  """

  scale: float = 1.0
  mode: str = "fan_avg"
  distribution: str = "uniform"

  def slices(
    self, mesh: MeshImpl, shape: Shape, dtype: tf.DType, key: tf.Tensor
  ) -> Slices:
    variance = self.scale / max(1.0, self._fan(shape.to_integer_list))
    if self.distribution == "uniform":
      limit = math.sqrt(3.0 * variance)
      chosen: Initializer = RandomUniform(-limit, limit)
    elif self.distribution == "truncated_normal":
      chosen = RandomNormal(0.0, math.sqrt(variance) / _KEPT_STDDEV, 2.0)
    else:
      chosen = RandomNormal(0.0, math.sqrt(variance))
    return chosen.slices(mesh, shape, dtype, key)

  def _fan(self, sizes: list[int]) -> float:
    if len(sizes) < 2:
      sizes = [1] * (2 - len(sizes)) + sizes if sizes else [1, 1]
      sizes = [sizes[-1], sizes[-1]]
    field = math.prod(sizes[:-2])
    inputs, outputs = sizes[-2] * field, sizes[-1] * field
    fans = {
      "fan_in": inputs,
      "fan_out": outputs,
      "fan_avg": (inputs + outputs) / 2,
    }
    return fans[self.mode]


# The standard deviation of a normal variable truncated to [-2, 2].
_KEPT_STDDEV = 0.87962566103423978


@dataclasses.dataclass(frozen=True)
class FromFunction(Initializer):
  """What a TensorFlow initializer makes of the whole shape, then cut."""

  fn: Any

  def slices(
    self, mesh: MeshImpl, shape: Shape, dtype: tf.DType, key: tf.Tensor
  ) -> Slices:
    value = self.fn(shape.to_integer_list, dtype=dtype)
    return mesh.import_tensor(tf.cast(value, dtype), shape)


def convert_to_initializer(x: Any) -> Initializer:
  """An initializer of ours for one of TensorFlow's, or for a number.

  TensorFlow's constant, uniform, normal, truncated normal and variance scaling
  initializers are drawn with our random numbers, so that a layout does not
  change them. None is Glorot's uniform distribution. Any other callable is
  asked for the whole value.
  """
  if x is None:
    return VarianceScaling()
  if isinstance(x, Initializer):
    return x
  if isinstance(x, (int, float)):
    return Constant(x)
  if isinstance(x, type):
    x = x()
  for kinds, convert in _conversions():
    if isinstance(x, kinds):
      return convert(x)
  if callable(x):
    return FromFunction(x)
  raise ValueError(f"not an initializer: {x!r}")


def _conversions() -> list[tuple[tuple[type, ...], Any]]:
  v1, v2 = tf.compat.v1, tf
  return [
    ((v1.zeros_initializer, v2.zeros_initializer), lambda x: Constant(0.0)),
    ((v1.ones_initializer, v2.ones_initializer), lambda x: Constant(1.0)),
    (
      (v1.constant_initializer, v2.constant_initializer),
      lambda x: Constant(x.value) if _is_number(x.value) else FromFunction(x),
    ),
    (
      (v1.truncated_normal_initializer,),
      lambda x: RandomNormal(x.mean, x.stddev, 2.0),
    ),
    (
      (v1.random_normal_initializer, v2.random_normal_initializer),
      lambda x: RandomNormal(x.mean, x.stddev),
    ),
    (
      (v1.random_uniform_initializer, v2.random_uniform_initializer),
      # TensorFlow's None stands for 1.
      lambda x: RandomUniform(x.minval, 1.0 if x.maxval is None else x.maxval),
    ),
    (
      (v1.variance_scaling_initializer,),
      lambda x: VarianceScaling(
        x.scale, x.mode, x.distribution.replace("untruncated_", "")
      ),
    ),
  ]


def _is_number(x: Any) -> bool:
  return isinstance(x, (int, float))
