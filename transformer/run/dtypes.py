"""In which types numbers are saved, kept and computed with."""

from __future__ import annotations

from typing import Any

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from .mesh_shapes import MODULE


@gin.configurable(module=MODULE)
def get_variable_dtype(
  master_dtype: Any = "float32",
  slice_dtype: Any = "float32",
  activation_dtype: Any = None,
) -> mtf.VariableDType:
  """The types of all variables of a model.

  Args:
    master_dtype: in checkpoints.
    slice_dtype: in memory, between steps.
    activation_dtype: in the computation; None for bfloat16 on TPUs, and
      float32 elsewhere, where bfloat16 is not fast.

  Returns:
    The three of them.

  Raises:
    ValueError: a name is not that of a floating type.
  """
  if activation_dtype is None:
    on_tpu = tf.config.list_logical_devices("TPU")
    activation_dtype = "bfloat16" if on_tpu else "float32"
  return mtf.VariableDType(
    _floating("master_dtype", master_dtype),
    _floating("slice_dtype", slice_dtype),
    _floating("activation_dtype", activation_dtype),
  )


def _floating(parameter: str, dtype: Any) -> tf.DType:
  try:
    found = tf.as_dtype(dtype)
  except TypeError:
    found = None
  if found is None or not found.is_floating:
    raise ValueError(
      f"get_variable_dtype.{parameter}: {dtype!r} is no floating type; take "
      "'float32' or 'bfloat16'"
    )
  return found
