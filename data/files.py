"""From what a user names to files that exist, or an error naming what lacks."""

import gzip
import pathlib
from collections.abc import Sequence
from typing import BinaryIO, cast

import tensorflow as tf


def resolve_files(
  names: str | Sequence[str], *, data_dir: str = ""
) -> list[str]:
  """Paths of the files that `names` stand for.

  Args:
    names: a path, a glob pattern, several of either separated by commas, or a
      list of them. Order is kept; what one pattern matches is sorted.
    data_dir: directory of names that are not absolute.

  Returns:
    Paths of existing files, at least one.

  Raises:
    FileNotFoundError: if a file is missing or a pattern matches nothing.
    IsADirectoryError: if a name is that of a directory.
    ValueError: if there is no name at all.
  """
  given = names.split(",") if isinstance(names, str) else list(names)
  wanted = [name.strip() for name in given if name.strip()]
  if not wanted:
    raise ValueError(f"no file was named: got {names!r}")
  paths = []
  for name in wanted:
    paths += _resolve(str(pathlib.Path(data_dir, name).expanduser()))
  return paths


def open_binary(path: str) -> BinaryIO:
  """Opens a file for reading bytes; one named `*.gz` is decompressed."""
  if path.endswith(".gz"):
    return cast(BinaryIO, gzip.open(path, "rb"))
  return pathlib.Path(path).open("rb")


def _resolve(pattern: str) -> list[str]:
  path = pathlib.Path(pattern)
  if path.is_dir():
    raise IsADirectoryError(
      f"{pattern} is a directory, where a file was wanted; name its files, "
      f"for example {path / '*'}"
    )
  if path.is_file():
    return [pattern]
  if not any(character in pattern for character in "*?["):
    raise FileNotFoundError(f"{pattern}: no such file")
  found = sorted(p for p in tf.io.gfile.glob(pattern) if _is_file(p))
  if not found:
    raise FileNotFoundError(f"{pattern}: no file matches this pattern")
  return found


def _is_file(path: str) -> bool:
  return not pathlib.Path(path).is_dir()
