"""Choices at random: a position, with given probabilities.

The largest of logits + Gumbel noise is distributed like the softmax of the
logits (Gumbel, 1954). A choice costs what `argmax` costs; the noise is neither
communicated nor does it depend on the layout.
"""

from __future__ import annotations

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension, Shape, ShapeLike, to_shape
from .arg_extremes import argmax
from .binary import add
from .cast import cast
from .elementwise import multiply
from .random import random_gumbel


def categorical(
  logits: Tensor,
  dim: Dimension,
  output_shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """Chooses positions at random, with probabilities softmax(logits).

  The same seed, step and operation give the same choices in every layout.

  Args:
    logits: floats; -inf for what is never chosen. If there is a NaN, its
      position is the result.
    dim: the dimension of `logits` along which to choose; it may be split.
    output_shape: the other dimensions of `logits`, in any order, and others:
      along these the choices are independent. By default those of `logits`.
    name: a name for the operation.

  Returns:
    int32 positions of the shape `output_shape`. They have no gradient.

  Raises:
    ShapeError: `logits` lacks `dim`, or `output_shape` has it or lacks another
      dimension of `logits`.
  """
  return _choose(logits, dim, output_shape, 1.0, name or "categorical")


def sample_with_temperature(
  logits: Tensor,
  dim: Dimension,
  temperature: float = 1.0,
  name: str | None = None,
) -> Tensor:
  """Chooses positions at random, with probabilities softmax(logits / T).

  Args:
    logits: floats; see `categorical`.
    dim: the dimension of `logits` along which to choose; it may be split.
    temperature: T. At 0 the largest logit is chosen.
    name: a name for the operation.

  Returns:
    int32 positions, without `dim`.
  """
  if temperature == 0.0:
    return argmax(logits, dim, name)
  return _choose(logits, dim, None, temperature, name)


def _choose(
  logits: Tensor,
  dim: Dimension,
  output_shape: ShapeLike | None,
  temperature: float,
  name: str | None,
) -> Tensor:
  others = logits.shape - dim
  wanted = others if output_shape is None else to_shape(output_shape)
  if dim in wanted or others.drop(wanted):
    raise ShapeError(
      f"{name} along {dim} of logits [{logits.shape}]: output_shape=[{wanted}] "
      f"must have [{others}] and not {dim}"
    )
  full = Shape([*wanted, dim])
  noise = random_gumbel(logits.mesh, full)
  if temperature != 1.0:
    noise = multiply(noise, temperature)
  # T times the noise, and not logits / T, which overflows for a small T.
  return argmax(add(cast(logits, tf.float32), noise, full), dim, name)
