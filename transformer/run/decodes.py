"""What comes out of a decoder, cleaned and made text."""

from __future__ import annotations

import gin
import tensorflow as tf

from .mesh_shapes import MODULE


@gin.configurable(module=MODULE)
def clean_decodes(
  ids: tf.Tensor, eos_id: int = 1, pad_id: int = 0, length_axis: int = -1
) -> tf.Tensor:
  """Replaces everything behind the first EOS by padding.

  Args:
    ids: integers of any shape.
    eos_id: ends a sequence; it stays.
    pad_id: what is put behind it.
    length_axis: the axis along which a sequence runs.

  Returns:
    Integers of the same shape.
  """
  ends = tf.cast(tf.equal(ids, eos_id), tf.int32)
  ended = tf.cumsum(ends, axis=length_axis, exclusive=True) > 0
  return tf.where(ended, tf.cast(pad_id, ids.dtype), ids)
