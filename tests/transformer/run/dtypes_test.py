"""The types of variables and activations."""

import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import dtypes


def test_everything_is_float32_where_there_is_no_tpu():
  assert dtypes.get_variable_dtype() == mtf.VariableDType(tf.float32)


def test_activations_are_bfloat16_on_a_tpu(monkeypatch):
  monkeypatch.setattr(
    dtypes.tf.config, "list_logical_devices", lambda kind: [kind]
  )
  got = dtypes.get_variable_dtype()
  assert got == mtf.VariableDType(tf.float32, tf.float32, tf.bfloat16)


def test_types_are_named_in_gin_files():
  got = dtypes.get_variable_dtype("bfloat16", tf.float32, "bfloat16")
  assert got == mtf.VariableDType(tf.bfloat16, tf.float32, tf.bfloat16)


@pytest.mark.parametrize("name", ["int32", "float23"])
def test_what_is_no_floating_type_is_refused(name):
  with pytest.raises(ValueError, match=f"slice_dtype: '{name}' is no floating"):
    dtypes.get_variable_dtype(slice_dtype=name)
