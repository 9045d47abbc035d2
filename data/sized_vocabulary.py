"""A vocabulary of which nothing but the size is known."""

from collections.abc import Iterable

import gin

from .vocabulary import Vocabulary


@gin.configurable(module="mesh_tf2.transformer.vocabulary")
class SizedVocabulary(Vocabulary):
  """Says how many ids a model has, where no text is read or written.

  Args:
    size: number of ids, padding and EOS included.

  Raises:
    ValueError: there is no id but those two.
  """

  def __init__(self, size: int) -> None:
    if size < 3:
      raise ValueError(
        f"SizedVocabulary: size {size} leaves no id for text; make it 3 or more"
      )
    self._size = size

  @property
  def vocab_size(self) -> int:
    """Number of ids, padding and EOS included."""
    return self._size

  def encode(self, text: str) -> list[int]:
    """There is no text.

    Raises:
      ValueError: always.
    """
    raise self._no_text()

  def decode(self, ids: Iterable[int]) -> str:
    """There is no text.

    Raises:
      ValueError: always.
    """
    raise self._no_text()

  def _no_text(self) -> ValueError:
    return ValueError(
      f"a vocabulary of {self._size} ids, of which no more is known, has no "
      "text; set run.vocabulary to another one"
    )
