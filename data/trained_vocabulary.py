"""A SentencePiece vocabulary that is trained when it is first asked for."""

from collections.abc import Iterator

import gin

from .files import is_file, joined
from .sentencepiece_vocabulary import SentencePieceVocabulary
from .text_source import TextSource
from .train_sentencepiece import train_sentencepiece

FILE_NAME = "vocabulary.model"


@gin.configurable(module="mesh_tf2.transformer.vocabulary")
def trained_sentencepiece_vocabulary(
  directory: str = gin.REQUIRED,
  source: TextSource = gin.REQUIRED,
  vocab_size: int = gin.REQUIRED,
  dataset_split: str = "train",
  split_digits: bool = False,
  max_sentences: int | None = None,
) -> SentencePieceVocabulary:
  """The vocabulary in a directory; it is trained if it is not there yet.

  Inputs and targets share it. The same text gives the same vocabulary.

  Args:
    directory: where `vocabulary.model` is, or will be: that of the run.
    source: the text to train on.
    vocab_size: number of pieces, padding, EOS and unknown included.
    dataset_split: the split of `source` to train on.
    split_digits: makes every digit a piece of its own.
    max_sentences: trains on the first so many sentences only.

  Raises:
    ValueError: there is a vocabulary of another size in the directory; or the
      text is too small for `vocab_size`.
  """
  path = joined(directory, FILE_NAME)
  if not is_file(path):
    sentences = _sentences(source, dataset_split)
    train_sentencepiece(
      sentences,
      path,
      vocab_size,
      split_digits=split_digits,
      max_sentences=max_sentences,
    )
  vocabulary = SentencePieceVocabulary(path)
  if vocabulary.vocab_size != vocab_size:
    raise ValueError(
      f"{path} has {vocabulary.vocab_size} pieces, vocab_size is {vocab_size}; "
      "set vocab_size to that, or take another directory"
    )
  return vocabulary


def _sentences(source: TextSource, dataset_split: str) -> Iterator[str]:
  for example in source.examples(dataset_split).as_numpy_iterator():
    for text in example.values():
      yield text.decode()
