"""Sequences packed into one row do not know of each other."""

import functools

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support import tiny_models

SENTENCES = [([8, 2, 1], [3, 4, 1]), ([6, 5, 1], [7, 1])]
DTYPE = mtf.VariableDType("float64")


def pack(sentences, which, length=6):
  """Rows of ids, segments and positions, for inputs (0) or targets (1)."""
  ids, segments, positions = [], [], []
  for i, sentence in enumerate(sentences):
    ids += sentence[which]
    segments += [i + 1] * len(sentence[which])
    positions += range(len(sentence[which]))
  pad = [0] * (length - len(ids))
  return [np.array([x + pad]) for x in (ids, segments, positions)]


def logits_fn(model, is_encoder_decoder):
  def build(mesh, *features):
    x, x_seg, x_pos, y, y_seg, y_pos = (
      mtf.import_tf_tensor(mesh, f, [("batch", 1), ("length", 6)])
      for f in features
    )
    if is_encoder_decoder:
      return model.call_simple(
        x, y, True, "eval", DTYPE, x_seg, y_seg, None, x_pos, y_pos
      )
    return model.call_simple(
      None, y, True, "eval", DTYPE, sequence_id=y_seg, position=y_pos
    )

  return build


@functools.lru_cache
def compiled(kind):
  program = mtf.Program()
  if kind == "lm":
    model = tiny_models.language_model()
  elif kind == "relative lm":
    stack = {"attention": {"relative_attention_type": "bias"}}
    model = tiny_models.language_model(stack, positional_embedding=False)
  elif kind == "sinusoids":
    model = tiny_models.language_model(sinusoid_positional_embedding=True)
  else:
    model = tiny_models.encoder_decoder()
  function = program.function(logits_fn(model, kind == "encoder_decoder"))
  zeros = np.zeros([1, 6], np.int32)
  function(*[zeros] * 6)
  tiny_models.randomize(program)
  return lambda *features: function(*[f.astype(np.int32) for f in features])


KINDS = ["lm", "relative lm", "sinusoids", "encoder_decoder"]


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences_give_the_logits_of_single_ones(kind):
  function = compiled(kind)
  packed, loss = function(*pack(SENTENCES, 0), *pack(SENTENCES, 1))
  begin, losses = 0, 0
  for sentence in SENTENCES:
    alone, its_loss = function(*pack([sentence], 0), *pack([sentence], 1))
    count = len(sentence[1])
    np.testing.assert_allclose(
      packed[0, begin : begin + count], alone[0, :count], rtol=1e-9
    )
    begin += count
    losses += float(its_loss)
  np.testing.assert_allclose(float(loss), losses, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leaks_from_one_segment_to_another(kind):
  function = compiled(kind)
  before, _ = function(*pack(SENTENCES, 0), *pack(SENTENCES, 1))
  for other, unchanged in ((0, slice(3, 5)), (1, slice(0, 3))):
    changed = [list(map(list, s)) for s in SENTENCES]
    changed[other] = [[9] * len(ids) for ids in SENTENCES[other]]
    after, _ = function(*pack(changed, 0), *pack(changed, 1))
    np.testing.assert_array_equal(before[0, unchanged], after[0, unchanged])
    assert np.abs(before - after).max() > 1e-3


def test_a_future_target_does_not_change_a_logit():
  function = compiled("lm")
  ids, segments, positions = pack([([], [3, 4, 5, 6, 7, 1])], 1)
  empty = pack([([], [])], 0)
  before, _ = function(*empty, ids, segments, positions)
  for i in range(6):
    changed = ids.copy()
    changed[0, i] = 10
    after, _ = function(*empty, changed, segments, positions)
    np.testing.assert_array_equal(before[0, : i + 1], after[0, : i + 1])


def test_padding_changes_no_logit_of_a_longer_row():
  function = compiled("encoder_decoder")
  one = [([8, 2, 1], [3, 4, 1])]
  features = [*pack(one, 0), *pack(one, 1)]
  before, _ = function(*features)
  # Segment 0 is padding whatever the ids are.
  features[0] = features[0] + 7 * (features[1] == 0)
  after, _ = function(*features)
  np.testing.assert_array_equal(before[0, :3], after[0, :3])
