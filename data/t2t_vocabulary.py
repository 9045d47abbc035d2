r"""Subword vocabularies of Tensor2Tensor, read from their files.

A file lists subwords, a quoted one a line; the number of the line is the id.
Text is cut where letters and digits meet other characters, and one space
between two words is left out. Each piece ends with `_` and has `\` and `_`
escaped as `\\` and `\u`, and characters that the file does not know as `\N;`,
N being the code point. Then the longest subword is taken, again and again.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterable

import gin

from .files import is_file, joined, open_binary
from .vocabulary import Vocabulary

_ESCAPED = re.compile(r"\\u|\\\\|\\([0-9]+);")
_ESCAPE_CHARACTERS = set("\\_u;0123456789")


class T2tVocabulary(Vocabulary):
  """The subwords of a Tensor2Tensor vocabulary file."""

  def __init__(self, filepath: str) -> None:
    """Reads the file.

    Args:
      filepath: path of a file such as `vocab.translate_ende_wmt32k.*.subwords`.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: if it lists no subwords.
    """
    if not is_file(filepath):
      raise FileNotFoundError(f"Tensor2Tensor vocabulary {filepath}: no file")
    with open_binary(filepath) as file:
      text = file.read().decode("utf-8").removesuffix("\n")
    self._subwords = [_unquoted(line) for line in text.split("\n")]
    if len(self._subwords) < 3:
      raise ValueError(
        f"Tensor2Tensor vocabulary {filepath}: wanted a quoted subword a line, "
        f"<pad> and <EOS> first; got {len(self._subwords)} lines"
      )
    self._ids = {s: i for i, s in enumerate(self._subwords) if i > 1 and s}
    self._longest = max(map(len, self._ids))
    self._alphabet = set("".join(self._ids)) | _ESCAPE_CHARACTERS

  @property
  def vocab_size(self) -> int:
    """Number of subwords, padding and EOS included."""
    return len(self._subwords)

  @property
  def unk_id(self) -> int | None:
    """None: what the file does not know is spelled by code points."""
    return None

  def encode(self, text: str) -> list[int]:
    """Ids of the subwords of `text`, without EOS.

    Raises:
      ValueError: if the file lacks a character that escaping needs.
    """
    return [i for word in _words(text) for i in self._subword_ids(word)]

  def decode(self, ids: Iterable[int]) -> str:
    """Text of the subwords before the first EOS.

    Raises:
      ValueError: if an id is not in the vocabulary.
    """
    subwords = [self._subwords[each] for each in self.until_eos(ids)]
    escaped = "".join(subwords).split("_")
    words = [_ESCAPED.sub(_unescape, word) for word in escaped if word]
    text = words[:1]
    for before, word in itertools.pairwise(words):
      both_words = _is_word(before[0]) and _is_word(word[0])
      text += [" ", word] if both_words else [word]
    return "".join(text)

  def _subword_ids(self, word: str) -> list[int]:
    escaped = word.replace("\\", "\\\\").replace("_", "\\u")
    known = self._alphabet - {"\n"}
    rest = "".join(c if c in known else f"\\{ord(c)};" for c in escaped) + "_"
    ids = []
    while rest:
      for size in range(min(self._longest, len(rest)), 0, -1):
        if rest[:size] in self._ids:
          ids.append(self._ids[rest[:size]])
          rest = rest[size:]
          break
      else:
        raise ValueError(
          f"the Tensor2Tensor vocabulary has no subword for {rest[0]!r}"
        )
    return ids


@gin.configurable(module="mesh_tf2.transformer.t2t_vocabulary")
def get_t2t_vocabulary(
  data_dir: str = gin.REQUIRED, vocabulary_filename: str = gin.REQUIRED
) -> T2tVocabulary:
  """A vocabulary for `run.vocabulary` in a gin file, from a T2T file."""
  return T2tVocabulary(joined(data_dir, vocabulary_filename))


def _unquoted(line: str) -> str:
  if len(line) > 1 and line[0] == line[-1] and line[0] in "'\"":
    return line[1:-1]
  return line


def _words(text: str) -> list[str]:
  """Runs of letters and digits, and what is between; not single spaces."""
  runs = ["".join(run) for _, run in itertools.groupby(text, _is_word)]
  last = len(runs) - 1
  return [r for i, r in enumerate(runs) if r != " " or i in (0, last)]


def _is_word(character: str) -> bool:
  return unicodedata.category(character)[0] in "LN"


def _unescape(match: re.Match[str]) -> str:
  if match[1] is None:
    return "_" if match[0] == "\\u" else "\\"
  code = int(match[1])
  return chr(code) if code < 0x110000 else "\N{GETA MARK}"
