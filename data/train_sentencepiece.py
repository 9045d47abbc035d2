r"""Trains a SentencePiece vocabulary, for several languages together if wanted.

python -m mesh_tf2.data.train_sentencepiece \
        --input=train.en.gz,train.de.gz --model=joint.model --vocab_size=8000
"""

import argparse
import io
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence

import sentencepiece

from .files import resolve_files, write_binary
from .text_file import TextFile
from .vocabulary import EOS_ID, PAD_ID, UNK_ID


def train_sentencepiece(  # noqa: PLR0913
  files_or_iterator: str | Sequence[str] | Iterator[str],
  model_prefix: str,
  vocab_size: int,
  *,
  model_type: str = "unigram",
  character_coverage: float = 1.0,
  byte_fallback: bool = False,
  split_digits: bool = False,
  max_sentences: int | None = None,
  num_threads: int = 4,
) -> str:
  """Trains a model and writes `<model_prefix>.model` and `.vocab`.

  The same text and arguments give the same bytes. Files are written whole or
  not at all.

  Args:
    files_or_iterator: text files (names, patterns, `.gz` too), or an iterator
      over sentences.
    model_prefix: path without, or with, its ending `.model`.
    vocab_size: number of pieces, padding, EOS and unknown included.
    model_type: "unigram" or "bpe".
    character_coverage: share of the text's characters that get a piece.
    byte_fallback: spells what has no piece in bytes, 256 pieces, rather than
      as unknown.
    split_digits: makes every digit a piece of its own.
    max_sentences: uses the first so many sentences of the text only.
    num_threads: is a part of the result, since it orders sums.

  Returns:
    Path of the model.

  Raises:
    FileNotFoundError: if a file is missing.
    ValueError: if the text is empty, too small for `vocab_size`, or has more
      characters than `vocab_size` has room for.
    KeyboardInterrupt: Ctrl-C was pressed.
  """
  sentences = itertools.islice(_sentences(files_or_iterator), max_sentences)
  model = io.BytesIO()
  try:
    sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=_not_empty(sentences),
      model_writer=model,
      vocab_size=vocab_size,
      model_type=model_type,
      character_coverage=character_coverage,
      byte_fallback=byte_fallback,
      split_digits=split_digits,
      num_threads=num_threads,
      pad_id=PAD_ID,
      eos_id=EOS_ID,
      unk_id=UNK_ID,
      bos_id=-1,
      minloglevel=2,  # errors
    )
  except RuntimeError as error:
    if "KeyboardInterrupt" in str(error):  # came while it asked for a sentence
      raise KeyboardInterrupt from None
    raise ValueError(_explain(str(error), vocab_size)) from error
  prefix = model_prefix.removesuffix(".model")
  write_binary(f"{prefix}.vocab", _list_of_pieces(model.getvalue()))
  write_binary(f"{prefix}.model", model.getvalue())
  return f"{prefix}.model"


def main(arguments: Sequence[str] | None = None) -> int:
  """The command; returns its exit code."""
  parser = argparse.ArgumentParser(
    prog="python -m mesh_tf2.data.train_sentencepiece",
    description="Trains a SentencePiece vocabulary from text files.",
  )
  parser.add_argument(
    "--input", required=True, help="files, with commas; patterns; .gz too"
  )
  parser.add_argument("--model", required=True, help="file to write")
  parser.add_argument("--vocab_size", required=True, type=int)
  parser.add_argument(
    "--model_type", default="unigram", choices=["unigram", "bpe"]
  )
  parser.add_argument("--character_coverage", type=float, default=1.0)
  parser.add_argument("--byte_fallback", action="store_true")
  parser.add_argument("--split_digits", action="store_true")
  parser.add_argument("--max_sentences", type=int)
  flags = parser.parse_args(arguments)
  try:
    path = train_sentencepiece(
      flags.input,
      flags.model,
      flags.vocab_size,
      model_type=flags.model_type,
      character_coverage=flags.character_coverage,
      byte_fallback=flags.byte_fallback,
      split_digits=flags.split_digits,
      max_sentences=flags.max_sentences,
    )
  except (OSError, ValueError) as error:
    print(f"train_sentencepiece: {error}", file=sys.stderr)
    return 1
  print(f"wrote {path}, a vocabulary of {flags.vocab_size}")
  return 0


def _sentences(given: str | Sequence[str] | Iterator[str]) -> Iterator[str]:
  if isinstance(given, Iterator):
    yield from given
    return
  for path in resolve_files(given):
    yield from TextFile(path).lines()


def _not_empty(sentences: Iterable[str]) -> Iterator[str]:
  """The sentences; sentencepiece's own message for none says nothing."""
  found = False
  for sentence in sentences:
    found = found or bool(sentence.strip())
    yield sentence
  if not found:
    raise ValueError("train_sentencepiece: the text has no sentence")


def _explain(message: str, vocab_size: int) -> str:
  if most := re.search(r"Vocabulary size too high .* <= (\d+)", message):
    return (
      f"vocab_size {vocab_size} is too large for this text: it yields at most "
      f"{most[1]} pieces; lower vocab_size or give more text"
    )
  if needed := re.search(r"required_chars\. \d+ vs (\d+)", message):
    return (
      f"vocab_size {vocab_size} is too small for this text: its characters "
      f"alone need {needed[1]}; raise vocab_size or lower character_coverage"
    )
  return f"sentencepiece cannot train a vocabulary of {vocab_size}: {message}"


def _list_of_pieces(model: bytes) -> bytes:
  """Pieces and scores, a line each, as sentencepiece writes them."""
  processor = sentencepiece.SentencePieceProcessor(model_proto=model)
  lines = [
    f"{processor.id_to_piece(i)}\t{processor.get_score(i):g}\n"
    for i in range(processor.get_piece_size())
  ]
  return "".join(lines).encode()


if __name__ == "__main__":
  sys.exit(main())
