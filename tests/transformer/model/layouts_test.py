"""A layout changes neither the loss nor the gradient of any variable."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running, tiny_models
from tests.support.meshes import PLACEMENT, VIRTUAL

INPUTS = np.array([[8, 2, 1, 6, 1, 0], [2, 3, 4, 5, 6, 1]])
TARGETS = np.array([[3, 4, 1, 7, 1, 0], [5, 9, 10, 2, 3, 1]])
SEGMENTS = np.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1]])
WIDE = mtf.VariableDType(tf.float64)

LAYOUTS = [
  (VIRTUAL, "x:2;y:4", "batch:x;vocab:y;d_ff:y;heads:y"),
  (VIRTUAL, "x:2;y:2", "d_model:x;vocab:y;d_ff:y;heads:y"),
  (VIRTUAL, "x:2;y:3", "length:x;memory_length:y"),
  (VIRTUAL, "x:2;y:2", "batch:x;memory_length:y;d_ff:y;vocab:y"),
  (VIRTUAL, "x:2;y:2", "max_length:x;d_kv:y;buckets:y"),
  (PLACEMENT, "x:2;y:2", "batch:x;vocab:y;d_ff:y;heads:y"),
]


def loss_and_gradients(model, packed, mesh):
  inputs = tiny_models.import_ids(mesh, INPUTS)
  targets = tiny_models.import_ids(mesh, TARGETS)
  segments = tiny_models.import_ids(mesh, SEGMENTS) if packed else None
  if isinstance(model, tiny_models.Bitransformer):
    _, loss = model.call_simple(
      inputs,
      targets,
      True,
      variable_dtype=WIDE,
      encoder_sequence_id=segments,
      decoder_sequence_id=segments,
    )
  else:
    _, loss = model.call_simple(
      None, targets, True, variable_dtype=WIDE, sequence_id=segments
    )
  variables = mesh.graph.trainable_variables
  return [loss, *mtf.gradients([loss], [v.value for v in variables])]


def make_model(kind):
  stack = {"dropout": 0.3, "attention": {"relative_attention_type": "bias"}}
  if kind == "lm":
    return tiny_models.language_model(
      stack,
      label_smoothing=0.1,
      token_dropout_rate=0.2,
      vocab_divisor=12,
      shared_embedding_and_softmax_weights=True,
    )
  return tiny_models.encoder_decoder(stack, vocab_divisor=12)


@functools.lru_cache
def on_one_processor(kind):
  build = functools.partial(loss_and_gradients, make_model(kind), True)
  result = running.run(build)
  names = list(result.mesh.graph.name_to_variable)
  return names, result.values


@pytest.mark.parametrize("kind", ["lm", "encoder_decoder"])
@pytest.mark.parametrize(("where", "mesh", "layout"), LAYOUTS)
def test_loss_and_gradients_with_dropout_are_those_of_one_processor(
  where, mesh, layout, kind
):
  names, wanted = on_one_processor(kind)
  build = functools.partial(loss_and_gradients, make_model(kind), True)
  result = running.run(build, mesh, layout, where)
  result.check_variation()
  assert list(result.mesh.graph.name_to_variable) == names
  for name, x, y in zip(["loss", *names], wanted, result.values, strict=True):
    np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-12, err_msg=name)
