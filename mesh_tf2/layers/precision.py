"""Where narrow floats are not enough: softmax, losses, norms' statistics."""

from __future__ import annotations

import tensorflow as tf

from ..core.graph import Tensor
from ..ops.cast import cast


def at_least_float32(x: Tensor) -> Tensor:
  """`x` in float32, or as it is where its dtype is wider."""
  return x if x.dtype == tf.float64 else cast(x, tf.float32)
