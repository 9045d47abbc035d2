"""From what a user names to files that exist, or an error naming what lacks.

A file is on a disk, or in a bucket: `gs://bucket/folder/file`.
"""

import gzip
import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

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
    path = joined(data_dir, name)
    if not is_in_bucket(path):
      path = str(pathlib.Path(path).expanduser())
    paths += _resolve(path)
  return paths


def joined(folder: str, name: str) -> str:
  """The path of a name: as it stands if it is absolute, else in a folder."""
  if is_in_bucket(name):
    return name
  if is_in_bucket(folder) and not pathlib.PurePath(name).is_absolute():
    return f"{folder.rstrip('/')}/{name}"
  return str(pathlib.Path(folder, name))


def is_in_bucket(path: str) -> bool:
  """Whether a path is that of an object store."""
  return "://" in path


def is_file(path: str) -> bool:
  """Whether there is a file at a path."""
  if is_in_bucket(path):
    return tf.io.gfile.exists(path) and not tf.io.gfile.isdir(path)
  return pathlib.Path(path).is_file()


def open_binary(path: str) -> BinaryIO:
  """Opens a file for reading bytes; one named `*.gz` is decompressed."""
  stream = _opened(path)
  if path.endswith(".gz"):
    return cast(BinaryIO, _Unzipped(fileobj=stream, mode="rb"))
  return stream


def _opened(path: str) -> BinaryIO:
  if not is_in_bucket(path):
    return pathlib.Path(path).open("rb")
  if not is_file(path):
    raise FileNotFoundError(f"{path}: no such file")
  return cast(BinaryIO, tf.io.gfile.GFile(path, "rb"))


class _Unzipped(gzip.GzipFile):
  """Closes the file below it, too."""

  def close(self) -> None:
    below: Any = self.fileobj
    super().close()
    if below is not None:
      below.close()


def write_binary(path: str, content: bytes) -> None:
  """Writes a file, and its folder; no half of it is ever seen."""
  if is_in_bucket(path):  # an object is there once it is whole
    with tf.io.gfile.GFile(path, "wb") as file:
      file.write(content)
    return
  folder = pathlib.Path(path).parent
  folder.mkdir(parents=True, exist_ok=True)
  with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
  temporary = pathlib.Path(file.name)
  temporary.chmod(0o644)
  temporary.replace(path)


def _resolve(pattern: str) -> list[str]:
  if tf.io.gfile.isdir(pattern):
    raise IsADirectoryError(
      f"{pattern} is a directory, where a file was wanted; name its files, "
      f"for example {joined(pattern, '*')}"
    )
  if is_file(pattern):
    return [pattern]
  if not any(character in pattern for character in "*?["):
    raise FileNotFoundError(f"{pattern}: no such file")
  found = sorted(p for p in tf.io.gfile.glob(pattern) if is_file(p))
  if not found:
    raise FileNotFoundError(f"{pattern}: no file matches this pattern")
  return found
