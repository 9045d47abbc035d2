"""Plain text files for a language model: every line is an example."""

import dataclasses
from collections.abc import Mapping, Sequence

import gin
import tensorflow as tf

from .files import resolve_files
from .text_file import TextFile, lines_dataset
from .text_source import TextSource, pick_split


@gin.configurable(module="mesh_tf2.transformer.dataset")
@dataclasses.dataclass(frozen=True)
class TextLineFiles(TextSource):
  """Lines of text files, plain or `.gz`, as `targets`.

  Attributes:
    files: for each split a name, a glob pattern, several with commas, or a
      list of names.
    data_dir: directory of names that are not absolute.
  """

  files: Mapping[str, str | Sequence[str]]
  data_dir: str = ""

  def examples(
    self,
    dataset_split: str,
    *,
    shard: tuple[int, int] = (1, 0),
    seed: int | None = None,
  ) -> tf.data.Dataset:
    """One pass over the lines of a split, in order.

    Raises:
      ValueError: if the split is unknown.
      FileNotFoundError: if a file is missing or a pattern matches nothing.
    """
    del seed
    names = pick_split(self.files, dataset_split, "TextLineFiles.files")
    lines = text_lines(names, data_dir=self.data_dir)
    return lines.map(lambda line: {"targets": line}).shard(*shard)


def text_lines(
  names: str | Sequence[str], *, data_dir: str = ""
) -> tf.data.Dataset:
  r"""The lines of one file or several, in order, ended by \n only.

  Args:
    names: a path, a glob pattern, several with commas, or a list of them;
      `*.gz` is decompressed.
    data_dir: directory of names that are not absolute.

  Returns:
    A dataset of scalar strings, valid UTF-8.

  Raises:
    FileNotFoundError: if a file is missing or a pattern matches nothing.
    IsADirectoryError: if a name is that of a directory.
  """
  paths = resolve_files(names, data_dir=data_dir)
  return lines_dataset([TextFile(path) for path in paths])
