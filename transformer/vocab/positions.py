"""What is added to the activations of a token for its position."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

import mesh_tf2 as mtf


def sinusoid_positional_embedding_weights(
  mesh: mtf.Mesh,
  max_length_dim: mtf.Dimension,
  model_dim: mtf.Dimension,
  dtype: Any,
  min_timescale: float = 1.0,
  max_timescale: float = 10000.0,
) -> mtf.Tensor:
  """`sinusoid_positional_embedding` of the positions 0, 1, 2, ...

  Args:
    mesh: the mesh.
    max_length_dim: the positions.
    model_dim: d_model, of even size.
    dtype: of the result.
    min_timescale: the shortest period is 2 pi times this.
    max_timescale: the longest period is 2 pi times this.

  Returns:
    `max_length_dim`, `model_dim`.

  Raises:
    ValueError: the size of d_model is odd.
  """
  position = mtf.range(mesh, max_length_dim, tf.int32)
  return sinusoid_positional_embedding(
    position, model_dim, dtype, min_timescale, max_timescale
  )


def sinusoid_positional_embedding(
  position: mtf.Tensor,
  model_dim: mtf.Dimension,
  dtype: Any,
  min_timescale: float = 1.0,
  max_timescale: float = 10000.0,
) -> mtf.Tensor:
  """Sines of the position in the first half of d_model, cosines in the second.

  Vaswani et al., 2017, section 3.5. Periods grow geometrically.

  Args:
    position: int32, any shape.
    model_dim: d_model, of even size.
    dtype: of the result.
    min_timescale: the shortest period is 2 pi times this.
    max_timescale: the longest period is 2 pi times this.

  Returns:
    The dimensions of `position`, then `model_dim`.

  Raises:
    ValueError: the size of d_model is odd.
  """
  half, odd = divmod(model_dim.size, 2)
  if odd:
    raise ValueError(
      f"sinusoid positions need an even d_model, got {model_dim.size}"
    )
  step = math.log(max_timescale / min_timescale) / max(half - 1, 1)
  channel = mtf.range(position.mesh, model_dim, tf.int32)
  number = mtf.cast(mtf.mod(channel, half), tf.float32)
  # 1 / timescale = exp(-number * step) / min_timescale
  rate = mtf.multiply(mtf.exp(mtf.multiply(number, -step)), 1 / min_timescale)
  shape = mtf.Shape([*position.shape, model_dim])
  angle = mtf.multiply(mtf.cast(position, tf.float32), rate, shape)
  is_sine = mtf.less(channel, half)
  wave = mtf.where(is_sine, mtf.sin(angle), mtf.cos(angle), shape)
  return mtf.cast(wave, dtype)


def learned_positional_embedding(
  table: mtf.Tensor, position: mtf.Tensor, max_length_dim: mtf.Dimension
) -> mtf.Tensor:
  """Rows of a table; zeros for positions behind its end.

  Args:
    table: `max_length_dim`, d_model.
    position: int32, any shape.
    max_length_dim: the positions that the table has.
  """
  return mtf.gather(table, position, max_length_dim)
