"""The built-in corpus: 20,000 sentences to train on, 500 and 500 to test on.

    python -m mesh_tf2.data.builtin.corpus --directory=/tmp/corpus

writes them as text files. No sentence is in two splits. The corpus is a
function of the seed (for one version of Babel, whose tables it uses).
"""

import argparse
import functools
import pathlib
import random
from collections.abc import Sequence

import gin

from ..text_source import MemoryText
from .cldr import Phrase
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
  """Distinct sentences, dealt to the splits in the order of generation."""
  rng = random.Random(seed)
  found: dict[str, Phrase] = {}
  taken: set[str] = set()
  while len(found) < sum(SIZES.values()):
    new = sentence(rng)
    if new.en not in found and new.de not in taken and new.fr not in taken:
      found[new.en] = new
      taken |= {new.de, new.fr}
  rest = iter(found.values())
  return {split: [next(rest) for _ in range(n)] for split, n in SIZES.items()}


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
  names = (
    {"targets": targets}
    if inputs is None
    else {
      "inputs": inputs,
      "targets": targets,
    }
  )
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


if __name__ == "__main__":
  main()
