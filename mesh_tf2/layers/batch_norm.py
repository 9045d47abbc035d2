"""Batch normalisation. Statistics are taken in float32.

Where a normalised dimension is split, each statistic costs an allreduce of one
number for each feature: the statistics are those of the whole batch.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Shape
from ..ops import initializers
from ..ops.binary import add, multiply, sub
from ..ops.cast import cast
from ..ops.reductions import reduce_mean
from ..ops.unary import rsqrt, square
from ..ops.variables import Assign, VariableDType, assign, get_variable
from .precision import at_least_float32


def batch_norm(
  x: Tensor,
  is_training: bool,
  momentum: float,
  epsilon: float = 1e-9,
  dims_idx_start: int = 0,
  dims_idx_end: int = -1,
  init_zero: bool = False,
  name: str | None = None,
) -> tuple[Tensor, list[Assign]]:
  """Mean 0 and variance 1 over a batch, then a learned scale and bias.

  Ioffe and Szegedy, Batch normalization, 2015.

  Args:
    x: any shape.
    is_training: whether the statistics are those of `x`, and the moving ones
      follow; otherwise the moving ones are used.
    momentum: how much of the moving statistics stays from step to step.
    epsilon: added to the variance.
    dims_idx_start: the first dimension to normalise over, by number.
    dims_idx_end: the one after the last; by default the last dimension of `x`
      is the only one that is kept.
    init_zero: whether the scale begins as 0 instead of 1.
    name: the scope of the variables `batch_norm_scale`, `batch_norm_bias`,
      `bn_moving_mean` (which begins as 0) and `bn_moving_variance` (as 1).

  Returns:
    The shape of `x`; and the assignments to the moving statistics, which are
    carried out like all others: nothing needs to be done with them.
  """
  features = x.shape.drop(x.shape.dims[dims_idx_start:dims_idx_end])
  wide = at_least_float32(x)

  def variable(label: str, dtype: Any, value: float, trainable: bool) -> Tensor:
    return get_variable(
      x.mesh,
      label,
      features,
      VariableDType(tf.float32, tf.float32, dtype),
      initializer=initializers.Constant(value),
      trainable=trainable,
    )

  with layer_scope(x.graph, name, "batch_norm"):
    scale = variable("batch_norm_scale", x.dtype, 0 if init_zero else 1, True)
    bias = variable("batch_norm_bias", x.dtype, 0, True)
    moving_mean = variable("bn_moving_mean", wide.dtype, 0, False)
    moving_variance = variable("bn_moving_variance", wide.dtype, 1, False)
  updates = []
  mean, variance = moving_mean, moving_variance
  if is_training:
    mean, variance = _moments(wide, features)
    updates = [
      _follow(moving_mean, mean, momentum),
      _follow(moving_variance, variance, momentum),
    ]
  centred = sub(wide, mean, x.shape)
  normal = multiply(centred, rsqrt(add(variance, epsilon)), x.shape)
  y = multiply(cast(normal, x.dtype), scale, x.shape)
  return add(y, bias, x.shape), updates


def _moments(x: Tensor, features: Shape) -> tuple[Tensor, Tensor]:
  """Mean and variance of each feature."""
  mean = reduce_mean(x, output_shape=features)
  centred = sub(x, mean, x.shape)
  return mean, reduce_mean(square(centred), output_shape=features)


def _follow(moving: Tensor, now: Tensor, momentum: float) -> Assign:
  """Has a moving statistic be momentum * moving + (1 - momentum) * now."""
  kept = multiply(moving, momentum)
  return assign(moving, add(kept, multiply(now, 1 - momentum)))
