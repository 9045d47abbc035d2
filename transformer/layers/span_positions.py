"""Where the tokens of a decoder stand among those of an encoder, by spans.

For models that fill gaps (Raffel et al., 2020): each gap in the input is marked
by a sentinel, one of the last ids of the vocabulary, and the target repeats the
sentinels, each before the tokens of its gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gin
import tensorflow as tf

import mesh_tf2 as mtf

if TYPE_CHECKING:
  from ..model.context import Context

configurable = gin.configurable(
  module="mesh_tf2.transformer.transformer_layers"
)


@configurable
def relative_position_spans(
  context: Context, num_sentinels: int = gin.REQUIRED
) -> mtf.Tensor:
  """The distance from the gap that a target belongs to, in the input.

  A token before the first sentinel counts as one of a gap at position 0, and
  so does one whose sentinel the input lacks.

  Args:
    context: of the call; has `inputs` and `encoder_inputs`.
    num_sentinels: how many ids at the end of the vocabulary are sentinels.

  Returns:
    Int32: batch, length, memory_length.

  Raises:
    ValueError: in decoding, where the targets are not known as a whole.
  """
  if context.inputs is None or context.encoder_inputs is None:
    raise ValueError(
      "relative_position_spans needs the ids that encoder and decoder read, "
      "as whole sequences; a model that uses it cannot decode step by step"
    )
  memory_length = context.encoder_length_dim
  first = context.model.input_vocab_size - num_sentinels
  gap = _count(context.inputs, first, context.length_dim)
  memory_gap = _count(context.encoder_inputs, first, memory_length)
  is_sentinel = mtf.greater_equal(context.encoder_inputs, first)
  position = mtf.range(context.mesh, memory_length, tf.int32)
  dims = mtf.Shape([*gap.shape, memory_length])
  same = mtf.logical_and(mtf.equal(gap, memory_gap, dims), is_sentinel, dims)
  at = mtf.multiply(mtf.cast(same, tf.int32), position, dims)
  gap_position = mtf.reduce_sum(at, output_shape=gap.shape)
  return mtf.sub(position, gap_position, dims)


def _count(
  ids: mtf.Tensor, first: int, length_dim: mtf.Dimension
) -> mtf.Tensor:
  """How many sentinels there are up to each token."""
  is_sentinel = mtf.cast(mtf.greater_equal(ids, first), tf.int32)
  return mtf.cumsum(is_sentinel, length_dim)
