"""The program of one core, as it is traced. No compiler for TPUs is needed."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import tiny_models

LAYOUT = "batch:batch;vocab:model;d_ff:model;heads:model"


def training_step(mesh, ids):
  model = tiny_models.language_model(
    {
      "attention": {"num_heads": 64},
      "feed_forward": {"hidden_size": 128},
      "dropout": 0.1,
    },
    vocab_divisor=64,
  )
  ids = mtf.import_tf_tensor(mesh, ids, "batch:32 length:6")
  _, loss = model.call_simple(
    inputs=None, targets=ids, compute_loss=True, mode="train"
  )
  variables = mesh.graph.trainable_variables
  grads = mtf.gradients([loss], [v.outputs[0] for v in variables])
  mtf.optimize.AdafactorOptimizer().apply_grads(grads, variables)
  return loss


def core(mesh, fn=training_step, layout=LAYOUT, sizes=(32, 6)):
  spec = tf.TensorSpec(sizes, tf.int32)
  return mtf.tpu.core_program(mesh, layout, fn, [spec])


def test_the_program_is_as_large_for_512_cores_as_for_eight():
  few, many = core("batch:2;model:4"), core("batch:16;model:32")
  assert few.operation_count == many.operation_count > 1000
  assert [v.name for v in few.variables] == [v.name for v in many.variables]


def test_a_core_is_handed_its_slice_of_what_is_imported_as_it_comes():
  def whole_too(mesh, ids):
    x = mtf.import_tf_tensor(mesh, ids, "batch:32 length:6")
    return mtf.reduce_sum(x), tf.reduce_max(ids)

  def reshaped(mesh, ids):
    x = mtf.import_tf_tensor(mesh, tf.reshape(ids, [192]), "batch:192")
    return mtf.reduce_sum(x)

  (own,) = core("batch:2;model:4").inputs
  assert (own.sizes, str(own.shape)) == ((16, 6), "batch:32 length:6")
  for fn in (whole_too, reshaped):
    (whole,) = core("batch:2", fn, "batch:batch").inputs
    assert (whole.sizes, whole.shape) == ((32, 6), None)


def test_two_imports_of_an_input_in_one_layout_share_a_slice():
  def twice(mesh, ids):
    x = mtf.import_tf_tensor(mesh, ids, "batch:32 length:6")
    y = mtf.import_tf_tensor(mesh, ids, "batch:32 other:6")
    return mtf.reduce_sum(x) + mtf.reduce_sum(y)

  (own,) = core("batch:2", twice, "batch:batch").inputs
  assert own.sizes == (16, 6)
  (whole,) = core("batch:2", twice, "other:batch").inputs
  assert whole.sizes == (32, 6)


def test_variables_are_slices_that_nobody_makes():
  def enormous(mesh, ids):
    x = mtf.import_tf_tensor(mesh, ids, "batch:32 length:6")
    w = mtf.get_variable(mesh, "w", [("length", 6), ("d", 2**40)], tf.bfloat16)
    mtf.assign(w, w + 1)
    return mtf.reduce_sum(mtf.cast(x, tf.bfloat16))

  program = core("model:512", enormous, "d:model")
  (w,) = program.variables
  assert w.sizes == (6, 2**31) and program.assigned == ("w",)
  assert w.bytes == 6 * 2**32


def test_values_from_outside_are_captured():
  outside = tf.Variable(3)

  def add(mesh, ids):
    x = mtf.import_tf_tensor(mesh, ids, "batch:32 length:6")
    return x + mtf.import_tf_tensor(mesh, outside.read_value())

  (value,) = core("batch:2", add, "batch:batch").captured
  assert value.numpy() == 3


def test_a_layout_that_is_impossible_is_refused():
  with pytest.raises(mtf.LayoutError, match="not divisible"):
    core("batch:3;model:4")


def test_an_array_counts_by_its_shape():
  def total(mesh, x):
    return mtf.reduce_sum(mtf.import_tf_tensor(mesh, x["a"], "batch:16"))

  program = mtf.tpu.core_program(
    "batch:2", "batch:batch", total, [{"a": np.zeros(16, np.float32)}]
  )
  assert program.inputs[0].sizes == (8,)
  assert program.results[0].shape == mtf.Shape([])
