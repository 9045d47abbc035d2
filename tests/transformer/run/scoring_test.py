"""Perplexity: each example once, padding never, whatever batch and mesh."""

import dataclasses
import math

import gin
import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2.data import byte_vocabulary
from mesh_tf2.transformer.run import evaluation_data, perplexity, scoring

from tests.support import small_runs


@pytest.fixture(autouse=True)
def tiny_model():
  small_runs.bind("transformer.Unitransformer.z_loss = 0.0")
  yield
  gin.clear_config()


def score(context):
  (task,) = evaluation_data.evaluation_tasks(context.settings)
  row = context.settings.sequence_length
  scorer = scoring.Scorer(context, task.dataset_fn(sequence_length=row))
  return scorer.score()


def test_scores_do_not_depend_on_the_batch_or_the_mesh(tmp_path):
  """Eleven examples, so that most last batches are not full."""
  found = [
    score(small_runs.make_context(tmp_path, **kwargs))
    for kwargs in (
      {"batch_size": 11, "mesh": "", "layout": ""},
      {"batch_size": 4},
      {"batch_size": 32, "mesh": "all:8", "layout": "batch:all"},
      {
        "batch_size": 8,
        "mesh": "outer:2;inner:2",
        "layout": "outer_batch:outer;batch:inner",
      },
    )
  ]
  first = found[0]
  texts = small_runs.sentences(11, seed=1)
  assert first.examples == 11
  assert first.tokens == sum(len(text) + 1 for text in texts)
  assert first.words == sum(len(text.split()) + 1 for text in texts)
  for other in found[1:]:
    assert (
      dataclasses.replace(other, neg_log_likelihood=first.neg_log_likelihood)
      == first
    )
    assert other.neg_log_likelihood == pytest.approx(
      first.neg_log_likelihood, rel=1e-6
    )


def test_the_score_is_the_loss_of_the_model(tmp_path):
  context = small_runs.make_context(tmp_path, batch_size=12)
  found = score(context)
  rows = [
    [b + 3 for b in text.encode()] + [1]
    for text in small_runs.sentences(11, seed=1)
  ]
  batch = np.array([row + [0] * (32 - len(row)) for row in [*rows, []]])

  @context.program.function
  def loss(mesh, targets):
    tensors = scoring.import_features(mesh, {"targets": targets})
    return context.model.call_simple(
      None, tensors["targets"], compute_loss=True, mode="eval"
    )[1]

  mean = float(loss(tf.cast(batch, tf.int32)))
  assert mean * batch.size == pytest.approx(found.neg_log_likelihood, rel=1e-5)


def test_a_translation_is_scored_on_its_targets(tmp_path):
  context = small_runs.make_context(tmp_path, model_type="bitransformer")
  found = score(context)
  texts = small_runs.sentences(11, seed=1)
  assert found.tokens == sum(len(text) + 1 for text in texts)
  assert 0 <= found.whole <= found.examples == 11


@pytest.mark.parametrize(
  ("ids", "words"),
  [
    ("two words", 2),
    ("two words|", 3),
    ("in put|tar get s|", 7),
    ("|", 1),
    ("", 0),
  ],
)
def test_ends_of_sequences_count_as_words(ids, words):
  vocabulary = byte_vocabulary.ByteVocabulary()
  row = [1 if c == "|" else vocabulary.encode(c)[0] for c in ids]
  assert scoring.num_words([*row, 0, 0], vocabulary) == words


def test_perplexity_is_told_per_token_and_per_word():
  found = scoring.Score(2, 6, 4, 3, 1, 6 * math.log(8.0))
  metrics = found.metrics()
  assert metrics["perplexity_per_token"] == pytest.approx(8.0)
  assert metrics["perplexity_per_word"] == pytest.approx(8.0**1.5)
  assert metrics["neg_log_perplexity"] == pytest.approx(-math.log(8.0))
  text = perplexity.describe(found)
  assert "8.000 per token, 22.627 per word; 50.0% of the tokens right" in text
  worse = dataclasses.replace(found, neg_log_likelihood=1e9)
  assert worse.perplexity(worse.tokens) == math.inf


def test_scoring_may_end_after_some_batches(tmp_path):
  context = small_runs.make_context(tmp_path, batch_size=4)
  (task,) = evaluation_data.evaluation_tasks(context.settings)
  row = context.settings.sequence_length
  scorer = scoring.Scorer(context, task.dataset_fn(sequence_length=row))
  assert scorer.score(max_batches=2).examples == 8
