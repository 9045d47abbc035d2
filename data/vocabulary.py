"""What a vocabulary is: text to ids and back, with 0 for padding, 1 for EOS.

Subclasses say how many ids there are, and how one string is encoded and
decoded. The TensorFlow side (`encode_tf`, `decode_tf`) works for all of them,
and inside `tf.data` too.
"""

import abc
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import gin
import numpy as np
import tensorflow as tf

PAD_ID = 0
EOS_ID = 1
UNK_ID = 2


class Vocabulary(abc.ABC):
  """Maps text to ids in [0, vocab_size) and back.

  Id 0 is padding and id 1 the end of a sequence. No text encodes to either,
  so neither appears within the ids of a string.
  """

  @property
  @abc.abstractmethod
  def vocab_size(self) -> int:
    """Number of ids, padding and EOS included."""

  @abc.abstractmethod
  def encode(self, text: str) -> list[int]:
    """Ids of `text`, without EOS."""

  @abc.abstractmethod
  def decode(self, ids: Iterable[int]) -> str:
    """Text of `ids` up to the first EOS; padding is skipped."""

  @property
  def pad_id(self) -> int:
    """Id of padding."""
    return PAD_ID

  @property
  def eos_id(self) -> int:
    """Id that ends a sequence."""
    return EOS_ID

  @property
  def unk_id(self) -> int | None:
    """Id of what the vocabulary cannot express; None if there is no such."""
    return UNK_ID

  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    """Ids of each of `texts`, without EOS."""
    return [self.encode(text) for text in texts]

  def until_eos(self, ids: Iterable[int]) -> list[int]:
    """The ids before the first EOS, without padding.

    Raises:
      ValueError: if one of them is not in [0, vocab_size).
    """
    kept = []
    for each in map(int, ids):
      if each == self.eos_id:
        break
      if not 0 <= each < self.vocab_size:
        raise ValueError(
          f"decode: id {each} is not in the vocabulary, whose ids are "
          f"0 to {self.vocab_size - 1}; was the model trained with another one?"
        )
      if each != self.pad_id:
        kept.append(each)
    return kept

  def encode_tf(self, text: tf.Tensor) -> tf.Tensor:
    """Ids of a scalar string: int32 of shape [None], without EOS."""

    def encode(text: bytes | np.ndarray) -> np.ndarray:
      # An array comes from outside of a graph.
      raw: bytes = text.item() if isinstance(text, np.ndarray) else text
      return np.array(self.encode(raw.decode("utf-8", "replace")), np.int32)

    ids = tf.numpy_function(encode, [text], tf.int32, stateful=False)
    return tf.ensure_shape(ids, [None])

  def decode_tf(self, ids: tf.Tensor) -> tf.Tensor:
    """Texts of `ids`, each from a last axis: strings of ids.shape[:-1]."""

    def decode(ids: np.ndarray) -> np.ndarray:
      rows = ids.reshape([-1, ids.shape[-1]]) if ids.size else ()
      texts = [self.decode(row).encode() for row in rows]
      if not ids.size:
        texts = [b""] * int(np.prod(ids.shape[:-1]))
      return np.array(texts, object).reshape(ids.shape[:-1])

    ids = tf.convert_to_tensor(ids)
    texts = tf.numpy_function(decode, [ids], tf.string, stateful=False)
    return tf.ensure_shape(texts, ids.shape[:-1])


# One vocabulary for everything, or one for inputs and one for targets.
Vocabularies: TypeAlias = Vocabulary | tuple[Vocabulary, Vocabulary]


def inputs_vocabulary(vocabulary: Vocabularies) -> Vocabulary:
  """The vocabulary of the inputs: the first of a pair."""
  return vocabulary[0] if isinstance(vocabulary, tuple) else vocabulary


def targets_vocabulary(vocabulary: Vocabularies) -> Vocabulary:
  """The vocabulary of the targets: the second of a pair."""
  return vocabulary[1] if isinstance(vocabulary, tuple) else vocabulary


def vocabulary_of(feature: str, vocabulary: Vocabularies) -> Vocabulary:
  """The vocabulary of a feature, by its name."""
  if feature == "inputs" or feature.startswith("inputs_"):
    return inputs_vocabulary(vocabulary)
  return targets_vocabulary(vocabulary)


@gin.configurable(module="mesh_tf2.transformer.utils")
def separate_vocabularies(
  inputs: Vocabulary = gin.REQUIRED, targets: Vocabulary = gin.REQUIRED
) -> tuple[Vocabulary, Vocabulary]:
  """A pair of vocabularies, for `run.vocabulary` in a gin file."""
  return inputs, targets
