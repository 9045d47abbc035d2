"""Biases by distance: buckets, tables, and spans."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.layers.enc_dec_attention import (
  enc_dec_attention_bias,
)
from mesh_tf2.transformer.layers.relative_bias import relative_position_bucket
from mesh_tf2.transformer.layers.self_attention import SelfAttention
from mesh_tf2.transformer.layers.span_positions import relative_position_spans
from mesh_tf2.transformer.model.context import Context

from tests.support import running, tiny_models

# Observed of the original.
RELATIVE = [-300, -128, -64, -20, -16, -9, -8, -1, 0, 1, 7, 8, 16, 64, 300]
BOTH_WAYS = [15, 15, 14, 10, 10, 8, 8, 1, 0, 17, 23, 24, 26, 30, 31]
ONE_WAY = [31, 31, 26, 17, 16, 9, 8, 1, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
  ("bidirectional", "want"), [(True, BOTH_WAYS), (False, ONE_WAY)]
)
@pytest.mark.parametrize(("mesh", "layout"), [("", ""), ("x:5", "a:x")])
def test_distances_fall_into_the_buckets_of_the_original(
  bidirectional, want, mesh, layout
):
  def build(mesh):
    relative = running.tensor(mesh, "a:15", RELATIVE, np.int32)
    return relative_position_bucket(relative, bidirectional, 32)

  got = running.run(build, mesh, layout).value()
  np.testing.assert_array_equal(got, want)


def test_buckets_grow_with_the_logarithm_of_the_distance():
  distance = np.arange(200)

  def build(mesh):
    relative = running.tensor(mesh, "a:200", -distance, np.int32)
    return relative_position_bucket(relative, False, 20, 100)

  got = running.run(build).value()
  np.testing.assert_array_equal(got[:10], np.arange(10))
  logarithm = np.log(np.maximum(distance, 1) / 10) / np.log(10) * 10
  want = np.minimum(10 + np.floor(logarithm + 1e-9), 19)
  np.testing.assert_array_equal(got[10:], want[10:])


def context_of(model, mesh, **kwargs):
  return Context(
    model=model,
    mesh=mesh,
    batch_dims=[mtf.Dimension("batch", 1)],
    length_dim=mtf.Dimension("length", 6),
    variable_dtype=mtf.VariableDType(),
    **kwargs,
  )


def test_the_bias_is_that_of_the_bucket_and_the_mask_is_added():
  model = tiny_models.language_model()
  layer = SelfAttention(num_heads=4, relative_attention_type="bias")
  heads = [mtf.Dimension("heads", 4)]

  def build(mesh):
    position = mtf.range(mesh, mtf.Dimension("length", 6), tf.int32)
    context = context_of(
      model, mesh, read_priority=position, write_priority=position
    )
    bias = layer.compute_bias(context, None, heads)
    (table,) = mesh.graph.all_variables
    return [bias, table.value]

  bias, table = running.run(build).values
  assert bias.shape == (4, 6, 6)
  for query in range(6):
    for memory in range(6):
      want = table[:, max(query - memory, 0)]
      got = bias[:, query, memory]
      if memory > query:
        assert np.all(got < -1e8)
      else:
        np.testing.assert_array_equal(got, want)


def test_an_unknown_type_is_named():
  model = tiny_models.language_model(
    {"attention": {"relative_attention_type": "biased"}}
  )

  def build(mesh):
    ids = tiny_models.import_ids(mesh, [[3, 4, 1]])
    return model.call_simple(None, ids, True)[1]

  with pytest.raises(ValueError, match="relative_attention_type is 'biased'"):
    running.run(build)


# Sentinels are 9 and 10: "a 9 b c 10" and "9 d e 10 f".
ENCODER_IDS = [[2, 9, 3, 4, 10]]
DECODER_IDS = [[0, 9, 5, 6, 10, 7]]


def spans(mesh, **kwargs):
  model = tiny_models.encoder_decoder().decoder
  memory = mtf.Dimension("memory_length", 5)
  output = mtf.zeros(mesh, [("batch", 1), memory, ("d_model", 8)])
  return context_of(
    model,
    mesh,
    encoder_output=output,
    encoder_inputs=tiny_models.import_ids(mesh, ENCODER_IDS, "memory_length"),
    **kwargs,
  )


def test_targets_stand_where_their_gap_is():
  def build(mesh):
    inputs = tiny_models.import_ids(mesh, DECODER_IDS)
    return relative_position_spans(spans(mesh, inputs=inputs), 2)

  got = running.run(build).value()
  gap = np.array([0, 1, 1, 1, 4, 4])
  np.testing.assert_array_equal(got[0], np.arange(5) - gap[:, None])


def test_a_cross_attention_bias_reads_its_own_table():
  layer = SelfAttention(num_heads=4, relative_attention_type="bias")

  def build(mesh):
    inputs = tiny_models.import_ids(mesh, DECODER_IDS)
    bias = enc_dec_attention_bias(
      layer,
      spans(mesh, inputs=inputs),
      [mtf.Dimension("heads", 4)],
      lambda context: relative_position_spans(context, 2),
    )
    (table,) = mesh.graph.all_variables
    assert table.full_name == "enc_dec_relative_attention_bias"
    return [bias, table.value]

  bias, table = running.run(build).values
  # The last target belongs to the gap at 4; memory 2 is 2 before it.
  np.testing.assert_array_equal(bias[:, 0, 5, 2], table[:, 2])
  # The first sentinel stands at 1; memory 3 is 2 behind it.
  np.testing.assert_array_equal(bias[:, 0, 1, 3], table[:, 16 + 2])


def test_spans_cannot_be_decoded_step_by_step():
  with pytest.raises(ValueError, match="cannot decode step by step"):
    running.run(lambda mesh: relative_position_spans(spans(mesh), 2))


def test_cross_attention_has_no_contextual_bias():
  layer = SelfAttention(num_heads=4, relative_attention_type="contextual")
  with pytest.raises(ValueError, match="must be None, 'bias' or 'bias_shared'"):
    running.run(lambda mesh: enc_dec_attention_bias(layer, spans(mesh), []))


@pytest.mark.parametrize(("bidirectional", "least"), [(True, 4), (False, 2)])
def test_too_few_buckets_are_an_error(bidirectional, least):
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  x = mtf.zeros(mesh, "length:3", tf.int32)
  with pytest.raises(ValueError, match=f"set it to at least {least}"):
    relative_position_bucket(x, bidirectional, least - 1)
