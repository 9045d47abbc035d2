"""Random tensors and dropout.

An element depends on the program's seed, the step, the operation's name and
the element's position: not on the layout. Nothing is communicated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.graph import Apply, Aval, Mesh, Primitive, Tensor, apply
from ..core.names import stream_id
from ..core.shape import Shape, ShapeLike, to_shape
from ..spmd import random_bits
from ..spmd.laid_out import Slices
from ..spmd.lowering import Lowering
from ..spmd.mesh import MeshImpl
from .binary import less, multiply
from .elementwise import cast


@dataclasses.dataclass(frozen=True)
class Random(Primitive):
  """Independent elements, each made by `draw` from 64 random bits."""

  label: str
  draw: Callable[[tf.Tensor], tf.Tensor] = dataclasses.field(repr=False)
  shape: Shape
  dtype: tf.DType
  stream: int
  is_random = True

  @property
  def name(self) -> str:
    return self.label

  def infer(self) -> Aval:
    return Aval(self.shape, self.dtype)

  def lower_in(self, lowering: Lowering, op: Apply, *xs: Slices) -> Slices:
    key = random_bits.fold(lowering.random_key, self.stream)
    mesh = lowering.mesh_impl(op)

    def draw(index: tf.Tensor) -> tf.Tensor:
      return tf.cast(self.draw(random_bits.bits(key, index)), self.dtype)

    return mesh.map_trailing(draw, mesh.global_index(self.shape))

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Slices:
    raise AssertionError("random operations are lowered by lower_in")


def _random(
  mesh: Mesh,
  label: str,
  draw: Callable[[tf.Tensor], tf.Tensor],
  shape: ShapeLike,
  dtype: Any,
) -> Tensor:
  stream = stream_id(mesh.graph.unique_name(f"{label}_stream"))
  primitive = Random(label, draw, to_shape(shape), tf.as_dtype(dtype), stream)
  return apply(primitive, mesh=mesh)


def random_uniform(
  mesh: Mesh,
  shape: ShapeLike,
  minval: float = 0,
  maxval: float | None = None,
  dtype: Any = tf.float32,
) -> Tensor:
  """Evenly distributed in [minval, maxval); integers too.

  Args:
    mesh: the mesh.
    shape: the shape of the result.
    minval: the lower bound.
    maxval: the upper bound, exclusive; 1 by default. Integers need one.
    dtype: of the result.

  Raises:
    ValueError: an integer dtype without `maxval`.
  """
  dtype = tf.as_dtype(dtype)
  if maxval is None:
    if dtype.is_integer:
      raise ValueError("random_uniform of integers needs maxval")
    maxval = 1

  def draw(bits: tf.Tensor) -> tf.Tensor:
    if dtype.is_integer:
      span = tf.constant(int(maxval) - int(minval), tf.uint64)
      return tf.cast(bits % span, tf.int64) + int(minval)
    x = random_bits.uniform(bits) * (maxval - minval) + minval
    return tf.minimum(tf.cast(x, dtype), below)

  below = _next_below(maxval, minval, dtype) if dtype.is_floating else None
  return _random(mesh, "random_uniform", draw, shape, dtype)


def _next_below(maxval: float, minval: float, dtype: tf.DType) -> tf.Tensor:
  """The nearest number to `maxval` on the side of `minval`.

  Without it, what is just below `maxval` may be rounded to it.
  """
  ends = np.asarray([maxval, minval], dtype.as_numpy_dtype)
  return tf.constant(np.nextafter(ends[0], ends[1]), dtype)


def random_normal(
  mesh: Mesh,
  shape: ShapeLike,
  mean: float = 0.0,
  stddev: float = 1.0,
  dtype: Any = tf.float32,
) -> Tensor:
  """Normally distributed."""

  def draw(bits: tf.Tensor) -> tf.Tensor:
    return random_bits.normal(bits) * stddev + mean

  return _random(mesh, "random_normal", draw, shape, dtype)


def random_gumbel(mesh: Mesh, shape: ShapeLike) -> Tensor:
  """float32 with the distribution of -log(-log(u)), u uniform in (0, 1)."""
  return _random(mesh, "random_gumbel", random_bits.gumbel, shape, tf.float32)


def dropout(
  x: Tensor,
  is_training: bool,
  keep_prob: float | Tensor | None = None,
  rate: float | Tensor | None = None,
  noise_shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """Sets elements to zero at random and scales up the others.

  Args:
    x: any shape. Integers are not scaled.
    is_training: otherwise `x` is returned as it is.
    keep_prob: the chance of an element to stay: a number, or a scalar.
    rate: 1 - keep_prob. Exactly one of the two is given.
    noise_shape: the dimensions of `x` along which the decisions differ; along
      the others they are shared. By default all.
    name: a name for the operation.

  Raises:
    ValueError: both or neither of `keep_prob` and `rate` are given, or not in
      [0, 1].
  """
  if (keep_prob is None) == (rate is None):
    raise ValueError("dropout takes exactly one of keep_prob and rate")
  keep = 1.0 - rate if rate is not None else keep_prob
  if isinstance(keep, (int, float)) and not 0 <= keep <= 1:
    raise ValueError(f"dropout: keep_prob is {keep}, it must be in [0, 1]")
  if not is_training or keep == 1.0:
    return x
  shape = x.shape if noise_shape is None else to_shape(noise_shape)
  kept = cast(less(random_uniform(x.mesh, shape), keep), x.dtype)
  if x.dtype.is_floating:
    scale = 1.0 / keep if keep else 0.0
    if isinstance(scale, Tensor):
      scale = cast(scale, x.dtype)
    kept = multiply(kept, scale)
  return multiply(x, kept, name=name)
