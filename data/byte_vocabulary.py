"""A vocabulary of bytes: nothing to train, nothing it cannot express."""

from collections.abc import Iterable

import gin
import tensorflow as tf

from .vocabulary import Vocabulary

_FIRST_BYTE = 3  # after padding, EOS, and the unknown id that no byte needs


@gin.configurable(module="mesh_tf2.transformer.vocabulary")
class ByteVocabulary(Vocabulary):
  """The bytes of UTF-8 as ids 3 to 258.

  Id 2 is left unused, so that ids mean the same as in the other vocabularies.
  Bytes that are no UTF-8 decode to U+FFFD.
  """

  @property
  def vocab_size(self) -> int:
    """3 + 256."""
    return _FIRST_BYTE + 256

  def encode(self, text: str) -> list[int]:
    """Ids of the UTF-8 bytes of `text`; lone surrogates become `?`."""
    return [byte + _FIRST_BYTE for byte in text.encode("utf-8", "replace")]

  def encode_tf(self, text: tf.Tensor) -> tf.Tensor:
    """Ids of a scalar string's bytes, whatever they are: int32 of [None]."""
    ids = tf.cast(tf.io.decode_raw(text, tf.uint8), tf.int32) + _FIRST_BYTE
    return tf.ensure_shape(ids, [None])

  def decode(self, ids: Iterable[int]) -> str:
    """Text of the bytes before the first EOS.

    Raises:
      ValueError: if an id is not in the vocabulary.
    """
    kept = [each for each in self.until_eos(ids) if each >= _FIRST_BYTE]
    text = bytes(each - _FIRST_BYTE for each in kept)
    return text.decode("utf-8", "replace")
