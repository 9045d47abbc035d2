"""SentencePiece vocabularies: trained here or brought along.

Kudo and Richardson, "SentencePiece: A simple and language independent subword
tokenizer and detokenizer for Neural Text Processing", EMNLP 2018.
"""

from collections.abc import Iterable, Sequence

import gin
import sentencepiece

from .files import is_file, open_binary
from .vocabulary import EOS_ID, PAD_ID, UNK_ID, Vocabulary

_MODULE = "mesh_tf2.transformer.vocabulary"


class SentencePieceVocabulary(Vocabulary):
  """The pieces of a SentencePiece model.

  A model with padding, EOS and unknown at ids 0, 1, 2 (as the command
  `mesh_tf2.data.train_sentencepiece` writes them, and T5's) keeps its ids. Any
  other model is renumbered: padding, EOS, unknown, then the other pieces in
  the model's order.
  """

  def __init__(self, model_file: str) -> None:
    """Loads a model.

    Args:
      model_file: path of a `.model` file.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: if it is no SentencePiece model, or one without EOS.
    """
    self._model_file = str(model_file)
    self._model = _load(self._model_file)
    self._to_piece = self._numbering()
    self._to_id = {piece: i for i, piece in enumerate(self._to_piece)}
    self._keeps_ids = all(i == p for i, p in enumerate(self._to_piece))

  def __repr__(self) -> str:
    return f"SentencePieceVocabulary({self._model_file!r})"

  @property
  def model_file(self) -> str:
    """Path that the model was loaded from."""
    return self._model_file

  @property
  def vocab_size(self) -> int:
    """Number of pieces, padding, EOS and unknown included."""
    return len(self._to_piece)

  def encode(self, text: str) -> list[int]:
    """Ids of the pieces of `text`, without EOS."""
    return self.encode_batch([text])[0]

  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    """Ids of the pieces of each text, without EOS."""
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    # One thread: starting several costs more than a window of sentences.
    rows = self._model.encode(texts, out_type=int, num_threads=1)
    if self._keeps_ids:
      return rows
    return [[self._to_id[piece] for piece in row] for row in rows]

  def decode(self, ids: Iterable[int]) -> str:
    """Text of the pieces before the first EOS.

    Raises:
      ValueError: if an id is not in the vocabulary.
    """
    pieces = [self._to_piece[each] for each in self.until_eos(ids)]
    return str(self._model.decode(pieces))

  def _numbering(self) -> list[int]:
    """The model's id of each of our ids; -1 for padding that it lacks."""
    model = self._model
    if model.eos_id() < 0:
      raise ValueError(
        f"{self._model_file}: the SentencePiece model has no end-of-sequence "
        f"piece; train it with --eos_id={EOS_ID} --pad_id={PAD_ID} "
        f"--unk_id={UNK_ID}"
      )
    first = [model.pad_id(), model.eos_id(), model.unk_id()]
    others = set(range(model.get_piece_size())) - set(first)
    return first + sorted(others)


@gin.configurable(module=_MODULE)
def get_sentencepiece_vocabulary(
  model_file: str = gin.REQUIRED,
) -> SentencePieceVocabulary:
  """A vocabulary for `run.vocabulary` in a gin file, from a `.model` file."""
  return SentencePieceVocabulary(model_file)


def _load(model_file: str) -> sentencepiece.SentencePieceProcessor:
  if not is_file(model_file):
    raise FileNotFoundError(
      f"SentencePiece model {model_file}: no such file; train one with "
      "python -m mesh_tf2.data.train_sentencepiece --input=TEXT "
      f"--model={model_file} --vocab_size=8000"
    )
  try:
    with open_binary(model_file) as file:
      return sentencepiece.SentencePieceProcessor(model_proto=file.read())
  except (RuntimeError, OSError) as error:
    raise ValueError(
      f"{model_file} cannot be read as a SentencePiece model: {error}"
    ) from error
