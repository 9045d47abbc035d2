"""Step t of decoding with a cache gives the teacher-forced logits of step t."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.model.reader import Memory, Reader

from tests.support import running, tiny_models

INPUTS = np.array([[8, 2, 1, 0, 0, 0], [2, 3, 4, 5, 6, 1]])
TARGETS = np.array([[3, 4, 2, 7, 5, 1], [5, 9, 10, 2, 3, 1]])
GIVEN = np.array([2, 3])  # how many ids of each row the first part reads
DTYPE = mtf.VariableDType(tf.float64)

VARIANTS = {
  "multi-head": {},
  "multi-query": {"num_memory_heads": 1},
  "grouped": {"num_memory_heads": 2},
  "one head": {"num_heads": 1},
  "shared keys and values": {"shared_kv": True},
  "relative bias": {"relative_attention_type": "bias"},
  "shared relative bias": {"relative_attention_type": "bias_shared"},
  "contextual bias": {"relative_attention_type": "contextual"},
}


def steps(model, mesh, memory, beam=None):
  """Logits of every position from the first one that is not given."""
  given = np.where(np.arange(6) < GIVEN[:, None], TARGETS, 0)
  prompt = tiny_models.import_ids(mesh, given)
  ids = tiny_models.import_ids(mesh, TARGETS)
  if beam:
    prompt, ids = (
      mtf.broadcast(x, mtf.Shape([x.shape[0], beam, x.shape[1]]))
      for x in (prompt, ids)
    )
  reader = Reader(model, prompt, DTYPE, memory, beam)
  states, logits = reader.states, []
  begin = mtf.import_tf_tensor(mesh, GIVEN.astype(np.int32), [("batch", 2)])
  for i in range(4):
    step_logits, states = reader.logits(begin + i, ids, states)
    logits.append(step_logits)
  return logits


def check(result):
  whole, *logits = result.values
  for i, got in enumerate(logits):
    for row in range(2):
      if GIVEN[row] + i < 6:
        np.testing.assert_allclose(
          got[row], whole[row, GIVEN[row] + i], rtol=1e-9
        )


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_language_model_continues_each_row_from_its_own_end(variant):
  stack = {"attention": VARIANTS[variant], "blocks": 2}
  model = tiny_models.language_model(
    stack, positional_embedding="relative" not in variant
  )

  def build(mesh):
    targets = tiny_models.import_ids(mesh, TARGETS)
    whole, _ = model.call_simple(None, targets, False, "eval", DTYPE)
    return [whole, *steps(model, mesh, Memory())]

  check(running.run(build))


def test_layers_that_training_computes_again_decode_with_a_cache():
  model = tiny_models.language_model({"blocks": 2, "recompute_grads": True})

  def build(mesh):
    targets = tiny_models.import_ids(mesh, TARGETS)
    whole, loss = model.call_simple(None, targets, True, "train", DTYPE)
    again = len(mesh.graph.operations)
    variables = [v.value for v in mesh.graph.trainable_variables]
    mtf.gradients([loss], variables)
    assert any("barrier" in op.name for op in mesh.graph.operations[again:]), (
      "nothing is computed again"
    )
    return [whole, *steps(model, mesh, Memory())]

  check(running.run(build))


@pytest.mark.parametrize(
  ("mesh", "layout"), [("", ""), ("x:2;y:4", "batch:x;heads:y;vocab:y")]
)
def test_a_decoder_keeps_keys_and_values_of_the_encoder(mesh, layout):
  model = tiny_models.encoder_decoder({"blocks": 2})

  def build(mesh):
    inputs = tiny_models.import_ids(mesh, INPUTS)
    targets = tiny_models.import_ids(mesh, TARGETS)
    whole, _ = model.call_simple(inputs, targets, False, "eval", DTYPE)
    memory = model.encode(inputs, DTYPE)
    return [whole, *steps(model.decoder, mesh, memory)]

  check(running.run(build, mesh, layout))


def test_the_inputs_of_a_delimited_model_see_each_other_when_they_are_given():
  targets = np.array([[5, 1, 7, 8, 9, 1], [6, 4, 1, 2, 3, 1]])
  model = tiny_models.language_model(input_full_attention=True)

  def build(mesh):
    ids = tiny_models.import_ids(mesh, targets)
    whole, _ = model.call_simple(None, ids, False, "eval", DTYPE)
    given = np.where(np.arange(6) < GIVEN[:, None], targets, 0)
    prompt = tiny_models.import_ids(mesh, given)
    reader = Reader(model, prompt, DTYPE, Memory())
    begin = mtf.import_tf_tensor(mesh, GIVEN.astype(np.int32), [("batch", 2)])
    logits, _ = reader.logits(begin, ids, reader.states)
    return [whole, logits]

  check(running.run(build))


def test_beams_may_be_added_to_the_states():
  model = tiny_models.encoder_decoder()
  beam = mtf.Dimension("beam", 3)

  def build(mesh):
    inputs = tiny_models.import_ids(mesh, INPUTS)
    targets = tiny_models.import_ids(mesh, TARGETS)
    whole, _ = model.call_simple(inputs, targets, False, "eval", DTYPE)
    memory = model.encode(inputs, DTYPE)
    logits = steps(model.decoder, mesh, memory, beam)
    return [whole, *(mtf.gather(x, 2, beam) for x in logits)]

  check(running.run(build))


def test_a_layer_that_finds_no_state_says_so():
  model = tiny_models.language_model()

  def build(mesh):
    prompt = tiny_models.import_ids(mesh, TARGETS)
    reader = Reader(model, prompt, DTYPE, Memory())
    return reader.logits(mtf.constant(mesh, 1, dtype=tf.int32), prompt, [])[0]

  with pytest.raises(ValueError, match="states 0 to 2, there are 0"):
    running.run(build)
