"""Features of a data set, as a type of model wants them."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import features


@pytest.mark.parametrize(
  ("names", "model_type", "message"),
  [
    (["inputs"], "lm", "no feature 'targets', only"),
    (["targets"], "bitransformer", "needs a data set with inputs"),
    (["targets"], "aligned", "needs a data set with inputs"),
    (["inputs", "targets"], "lm", "delimited_lm = True"),
    (["inputs", "targets"], "delimited_lm", "delimited_lm = True"),
  ],
)
def test_a_data_set_of_another_kind_is_refused(names, model_type, message):
  specs = {name: tf.TensorSpec([8], tf.int32) for name in names}
  with pytest.raises(ValueError, match=message):
    features.check_features(specs, model_type)


@pytest.mark.parametrize("shape", [None, [None], [8, 2]])
def test_a_feature_without_a_fixed_length_is_refused(shape):
  with pytest.raises(
    ValueError, match="'targets' of the data set has the shap"
  ):
    features.check_features({"targets": tf.TensorSpec(shape, tf.int32)}, "lm")


def test_features_that_no_model_reads_are_dropped():
  examples = tf.data.Dataset.from_tensors({"targets": [1], "weight": 2.0})
  known = features.known_features(examples)
  assert set(known.element_spec) == {"targets"}


def test_segments_and_positions_are_those_of_their_stack():
  names = ["inputs", "targets", "inputs_segmentation", "targets_position"]
  arguments = features.model_arguments({n: n for n in names}, "bitransformer")
  assert {k: v for k, v in arguments.items() if v is not None} == {
    "inputs": "inputs",
    "targets": "targets",
    "encoder_sequence_id": "inputs_segmentation",
    "decoder_position": "targets_position",
  }


def test_the_batch_may_have_an_outer_part():
  ids = np.arange(24, dtype=np.int32).reshape([8, 3])
  program = mtf.Program("outer:2;inner:4", "outer_batch:outer;batch:inner")

  @program.function
  def f(mesh, ids):
    x = features.import_features(mesh, {"targets": ids}, outer_batch=2)
    assert x["targets"].shape == mtf.convert_to_shape(
      "outer_batch:2;batch:4;length:3"
    )
    return x["targets"]

  np.testing.assert_array_equal(np.reshape(f(ids), [8, 3]), ids)
