"""From ids to activations and back; sinusoids."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.vocab.embedding import VocabEmbedding
from mesh_tf2.transformer.vocab.positions import (
  sinusoid_positional_embedding_weights,
)

from tests.support import running, tiny_models

VOCAB, MODEL = mtf.Dimension("vocab", 12), mtf.Dimension("d_model", 16)
IDS = np.array([[3, 11, 0]])


@pytest.mark.parametrize(
  ("mesh", "layout"), [("", ""), ("x:2;y:4", "vocab:x;d_model:y")]
)
@pytest.mark.parametrize("like_classifier", [False, True])
def test_a_table_reads_ids_and_makes_logits(mesh, layout, like_classifier):
  def build(mesh):
    table = VocabEmbedding(
      mesh, VOCAB, MODEL, mtf.VariableDType(), "t", None, like_classifier
    )
    x = table.ids_to_embedding(tiny_models.import_ids(mesh, IDS), None)
    (variable,) = mesh.graph.all_variables
    return [x, table.hidden_to_logits(x, None), variable.value]

  x, logits, table = running.run(build, mesh, layout).values
  up, down = (4.0, 1.0) if like_classifier else (1.0, 0.25)
  np.testing.assert_allclose(x, table[IDS] * up, rtol=1e-6)
  np.testing.assert_allclose(logits, x @ table.T * down, rtol=1e-4, atol=1e-5)
  stddev = 0.25 if like_classifier else 1.0
  np.testing.assert_allclose(table.std(), stddev, rtol=0.2)


@pytest.mark.parametrize(
  ("mesh", "layout"), [("", ""), ("x:5;y:4", "max_length:x;d_model:y")]
)
def test_sinusoids_are_sines_then_cosines(mesh, layout):
  length = mtf.Dimension("max_length", 30)

  def build(mesh):
    return sinusoid_positional_embedding_weights(
      mesh, length, MODEL, tf.float32
    )

  got = running.run(build, mesh, layout).value()
  timescale = 10000 ** (np.arange(8) / 7)
  angle = np.arange(30)[:, None] / timescale
  want = np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)
  np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_sinusoids_need_an_even_width():
  odd = mtf.Dimension("d_model", 7)

  def build(mesh):
    return sinusoid_positional_embedding_weights(mesh, MODEL, odd, tf.float32)

  with pytest.raises(ValueError, match="even d_model, got 7"):
    running.run(build)
