"""Two aligned text files, or one with tabs, as pairs of a translation task."""

import dataclasses
from collections.abc import Mapping

import gin
import tensorflow as tf

from .files import resolve_files
from .text_file import TextFile, lines_dataset
from .text_source import TextSource, pick_split

FilePair = tuple[str, str]


@gin.configurable(module="mesh_tf2.transformer.dataset")
@dataclasses.dataclass(frozen=True)
class TextPairFiles(TextSource):
  r"""Sentence pairs from text files, a sentence a line, plain or `.gz`.

  Attributes:
    files: for each split either two names, of the inputs and of the targets,
      whose lines belong together, or one name, of a file of lines
      `inputs TAB targets`. A name may be a glob pattern or a list with commas.
    data_dir: directory of names that are not absolute.

  Example, in a gin file:
    TextPairFiles.data_dir = "/data/multi30k"
    TextPairFiles.files = {
        "train": ("train.en.gz", "train.de.gz"),
        "validation": ("val.en.gz", "val.de.gz"),
    }
  """

  files: Mapping[str, FilePair | str]
  data_dir: str = ""

  def examples(
    self,
    dataset_split: str,
    *,
    shard: tuple[int, int] = (1, 0),
    seed: int | None = None,
  ) -> tf.data.Dataset:
    """One pass over the pairs of a split, in order.

    Raises:
      ValueError: if the split is unknown, two files differ in their number of
        lines, or a line of a file with tabs has not exactly one.
      FileNotFoundError: if a file is missing or a pattern matches nothing.
    """
    del seed
    names = pick_split(self.files, dataset_split, "TextPairFiles.files")
    if isinstance(names, str):
      pairs = _tab_separated(resolve_files(names, data_dir=self.data_dir))
    else:
      pairs = self._aligned(names)
    return pairs.shard(*shard)

  def _aligned(self, names: FilePair) -> tf.data.Dataset:
    if len(names) != 2:
      raise ValueError(
        "TextPairFiles.files: wanted a pair of names, of the inputs and of the "
        f"targets, or one name of a file with tabs; got {names!r}"
      )
    left, right = (resolve_files(n, data_dir=self.data_dir) for n in names)
    if len(left) != len(right):
      raise ValueError(
        f"TextPairFiles.files: {names[0]} stands for {len(left)} files and "
        f"{names[1]} for {len(right)}; they must come in pairs"
      )
    inputs, targets = ([TextFile(p) for p in paths] for paths in (left, right))
    for pair in zip(inputs, targets, strict=True):
      _check_lines(*pair)
    return tf.data.Dataset.zip(
      {"inputs": lines_dataset(inputs), "targets": lines_dataset(targets)}
    )


def _check_lines(inputs: TextFile, targets: TextFile) -> None:
  if inputs.num_lines != targets.num_lines:
    raise ValueError(
      "two aligned files must have the same number of lines (ended by \\n "
      f"only): {inputs.path} has {inputs.num_lines} and {targets.path} has "
      f"{targets.num_lines}"
    )


def _tab_separated(paths: list[str]) -> tf.data.Dataset:
  files = [TextFile(path) for path in paths]
  for file in files:
    _check_tabs(file)
  return lines_dataset(files).map(split_at_tab)


def split_at_tab(line: tf.Tensor) -> dict[str, tf.Tensor]:
  """Splits a scalar string `inputs TAB targets`; other tabs are an error."""
  parts = tf.strings.split(line, "\t")
  right = tf.debugging.Assert(
    tf.equal(tf.size(parts), 2),
    ["a line must be `inputs TAB targets`, with one tab; got", line],
  )
  with tf.control_dependencies([right]):
    parts = tf.identity(parts)
  return {"inputs": parts[0], "targets": parts[1]}


def _check_tabs(file: TextFile) -> None:
  for number, line in enumerate(file.lines(), start=1):
    if line.count("\t") != 1:
      raise ValueError(
        f"{file.path}, line {number}: wanted `inputs TAB targets`, with one "
        f"tab; got {line.count(chr(9))} tabs in {line!r}"
      )
