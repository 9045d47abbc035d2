"""The built-in corpus: 20,000 sentences to train on, 500 and 500 to test on.

    python -m mesh_tf2.data.builtin.corpus --directory=/tmp/corpus

writes them as text files. No sentence is in two splits, and every word of the
test set is in the training set. The corpus is a function of the seed (for one
version of Babel, whose tables it uses).
"""

import argparse
import functools
import pathlib
import random
import re
from collections.abc import Sequence

import gin

from ..text_source import MemoryText
from .cldr import BABEL_VERSION, Phrase
from .grammar import sentence

SIZES = {"train": 20_000, "validation": 500, "test": 500}
LANGUAGES = ("en", "de", "fr")


def pairs(
  split: str, seed: int = 0, languages: Sequence[str] = ("en", "de")
) -> list[tuple[str, ...]]:
  """The sentences of a split, in each of some languages.

  Args:
    split: "train", "validation" or "test".
    seed: of the sentences.
    languages: some of "en", "de" and "fr".

  Raises:
    ValueError: there is no such split or language.
  """
  if split not in SIZES:
    raise ValueError(
      f"the built-in corpus has no split {split!r}; it has {', '.join(SIZES)}"
    )
  if unknown := [x for x in languages if x not in LANGUAGES]:
    raise ValueError(
      f"the built-in corpus has no language {unknown[0]!r}; it has "
      f"{', '.join(LANGUAGES)}"
    )
  phrases = _generate(seed)[split]
  return [tuple(getattr(p, x) for x in languages) for p in phrases]


def sentences(split: str, language: str = "en", seed: int = 0) -> list[str]:
  """The sentences of a split in one language."""
  return [text for (text,) in pairs(split, seed, (language,))]


@functools.lru_cache(maxsize=2)
def _generate(seed: int) -> dict[str, list[Phrase]]:
  """Distinct sentences: first those to train on, then those to test on.

  A word that is only in the test set could not be learned: a sentence with one
  is passed over. Numbers in digits are another matter, being read digit by
  digit; most prices of the test set are new.
  """
  rng = random.Random(seed)
  seen: set[str] = set()
  known: set[str] = set()
  found: dict[str, list[Phrase]] = {split: [] for split in SIZES}
  for split, size in SIZES.items():
    while len(found[split]) < size:
      new = sentence(rng)
      texts = {new.en, new.de, new.fr}
      if texts & seen:
        continue
      if split == "train":
        known |= words(new)
      elif not words(new) <= known:
        continue
      seen |= texts
      found[split].append(new)
  return found


def words(phrase: Phrase) -> set[str]:
  """The words of a sentence in all languages, without numbers in digits."""
  return set(_WORD.findall(f"{phrase.en} {phrase.de} {phrase.fr}"))


_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['-])*")


@gin.configurable(module="mesh_tf2.transformer.dataset")
def builtin_text(
  inputs: str | None = "en", targets: str = "de", seed: int = 0
) -> MemoryText:
  """The built-in corpus as a source of text.

  Args:
    inputs: the language to translate from; None for a language model.
    targets: the language to translate to.
    seed: of the sentences.
  """
  names = {"targets": targets}
  if inputs is not None:
    names = {"inputs": inputs, **names}
  return MemoryText(
    {
      split: [
        dict(zip(names, row, strict=True))
        for row in pairs(split, seed, tuple(names.values()))
      ]
      for split in SIZES
    }
  )


def write(
  directory: str, languages: Sequence[str] = LANGUAGES, seed: int = 0
) -> list[str]:
  """Writes `train.en` and so on, a sentence a line; returns the paths."""
  folder = pathlib.Path(directory)
  folder.mkdir(parents=True, exist_ok=True)
  paths = []
  for split in SIZES:
    for language in languages:
      path = folder / f"{split}.{language}"
      lines = sentences(split, language, seed)
      path.write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
      paths.append(str(path))
  return paths


def description(seed: int = 0) -> str:
  """What the corpus is a function of, and how large it is."""
  sizes = ", ".join(f"{split} {size:,}" for split, size in SIZES.items())
  return f"built-in corpus, seed {seed}, Babel {BABEL_VERSION}: {sizes}"


def main(arguments: Sequence[str] | None = None) -> None:
  """The command."""
  parser = argparse.ArgumentParser(
    prog="python -m mesh_tf2.data.builtin.corpus",
    description="Writes the built-in corpus as text files.",
  )
  parser.add_argument("--directory", required=True)
  parser.add_argument("--languages", default=",".join(LANGUAGES))
  parser.add_argument("--seed", type=int, default=0)
  flags = parser.parse_args(arguments)
  for path in write(flags.directory, flags.languages.split(","), flags.seed):
    print(path)
  print(description(flags.seed))


if __name__ == "__main__":
  main()
