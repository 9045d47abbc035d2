"""From text to ids."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from .vocabulary import EOS_ID, Vocabularies, Vocabulary, vocabulary_of
from .window import Window, from_parts, ragged

# Enough to make the price of calling Python small.
_EXAMPLES_AT_ONCE = 256


def encode_windows(
  batches: tf.data.Dataset,
  vocabulary: Vocabularies,
  *,
  eos_id: int | None = EOS_ID,
) -> tf.data.Dataset:
  """Windows of ids.

  Args:
    batches: dictionaries of vectors of strings.
    vocabulary: one vocabulary, or a pair: the first for `inputs`.
    eos_id: ends every row; None for rows without end.

  Returns:
    A dataset of windows, as large as the batches.
  """
  return batches.map(lambda texts: _encode_window(texts, vocabulary, eos_id))


def encode_dataset(
  dataset: tf.data.Dataset, vocabulary: Vocabularies
) -> tf.data.Dataset:
  """Ids of every string feature, without EOS; other features are dropped."""
  return _encode_examples(dataset, vocabulary, None)


def encode_all_features(
  dataset: tf.data.Dataset, vocabulary: Vocabularies
) -> tf.data.Dataset:
  """Ids of every string feature, ended by EOS; other features are dropped.

  Args:
    dataset: dictionaries whose strings are scalars.
    vocabulary: one vocabulary, or a pair: the first for `inputs`.

  Returns:
    A dataset of dictionaries of int32 vectors.
  """
  return _encode_examples(dataset, vocabulary, EOS_ID)


def _encode_examples(
  dataset: tf.data.Dataset, vocabulary: Vocabularies, eos_id: int | None
) -> tf.data.Dataset:
  strings = [
    key for key, spec in dataset.element_spec.items() if spec.dtype == tf.string
  ]
  return (
    dataset.map(lambda example: {key: example[key] for key in strings})
    .batch(_EXAMPLES_AT_ONCE)
    .map(lambda texts: _encode_window(texts, vocabulary, eos_id))
    .unbatch()
    .map(lambda ids: ids)  # from ragged tensors of rank 1 to plain vectors
  )


def _encode_window(
  texts: Mapping[str, tf.Tensor], vocabulary: Vocabularies, eos_id: int | None
) -> Window:
  return {
    key: _encode_column(text, vocabulary_of(key, vocabulary), eos_id)
    for key, text in texts.items()
  }


def _encode_column(
  texts: tf.Tensor, vocabulary: Vocabulary, eos_id: int | None
) -> tf.RaggedTensor:
  """Ids of a vector of strings, a row for each."""
  end = [] if eos_id is None else [eos_id]

  def encode(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = vocabulary.encode_batch(
      [t.decode("utf-8", "replace") for t in texts]
    )
    return ragged(list(row) + end for row in rows)

  types = [tf.int32, tf.int64]
  return from_parts(*tf.numpy_function(encode, [texts], types, stateful=False))
