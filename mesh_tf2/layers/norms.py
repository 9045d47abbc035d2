"""Normalisation. Statistics are taken in float32, whatever the input is.

Where the normalised dimension is split, each statistic costs an allreduce of
one number per vector.
"""

from __future__ import annotations

import tensorflow as tf

from ..core.graph import Tensor
from ..core.shape import Dimension, Shape
from ..ops import initializers
from ..ops.binary import add, multiply, sub
from ..ops.cast import cast
from ..ops.reductions import reduce_mean
from ..ops.unary import rsqrt, square
from ..ops.variables import VariableDType, get_variable
from .precision import at_least_float32


def layer_norm(
  x: Tensor,
  dim: Dimension,
  epsilon: float = 1e-6,
  name: str = "layer_prepostprocess",
) -> Tensor:
  """Mean 0 and variance 1 along a dimension, then a learned scale and bias.

  Ba et al., Layer normalization, 2016.

  Args:
    x: any shape with `dim`.
    dim: the dimension to normalise over.
    epsilon: added to the variance.
    name: the variables are `<name>/layer_norm/layer_norm_scale` and `_bias`.
  """
  dtype = VariableDType(tf.float32, tf.float32, x.dtype)
  with tf.compat.v1.variable_scope(f"{name}/layer_norm"):
    scale = get_variable(
      x.mesh,
      "layer_norm_scale",
      Shape([dim]),
      dtype,
      initializer=initializers.Constant(1.0),
    )
    bias = get_variable(
      x.mesh,
      "layer_norm_bias",
      Shape([dim]),
      dtype,
      initializer=initializers.Constant(0.0),
    )
  kept = x.shape - dim
  wide = at_least_float32(x)
  centred = sub(wide, reduce_mean(wide, output_shape=kept), x.shape)
  variance = reduce_mean(square(centred), output_shape=kept)
  normal = multiply(centred, rsqrt(add(variance, epsilon)), x.shape)
  return add(multiply(cast(normal, x.dtype), scale, x.shape), bias, x.shape)


def rms_norm(
  x: Tensor, scale: Tensor, dim: Dimension, epsilon: float
) -> Tensor:
  """Divides by the root mean square: x / sqrt(mean(x^2) + epsilon) * scale.

  Zhang and Sennrich, Root mean square layer normalization, 2019.

  Args:
    x: any shape with `dim`.
    scale: some of the dimensions of `x`, in its dtype.
    dim: the dimension of the mean.
    epsilon: added to the mean.
  """
  return multiply(rms_normalize(x, x, dim, epsilon), scale, x.shape)


def rms_normalize(
  x: Tensor, sample: Tensor, dim: Dimension, epsilon: float
) -> Tensor:
  """Gives x / sqrt(mean(sample^2) + epsilon), in the dtype of `x`.

  Args:
    x: any shape.
    sample: `x`, or a part of it.
    dim: the dimension of `sample` to take the mean over.
    epsilon: added to the mean.
  """
  mean = reduce_mean(
    square(at_least_float32(sample)), output_shape=sample.shape - dim
  )
  normal = multiply(at_least_float32(x), rsqrt(add(mean, epsilon)), x.shape)
  return cast(normal, x.dtype)
