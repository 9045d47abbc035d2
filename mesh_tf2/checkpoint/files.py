"""The few file operations of checkpoints, on disks and on cloud storage.

They raise Python's own errors, which name the file, not TensorFlow's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator

import tensorflow as tf

ERRORS = {
  tf.errors.NotFoundError: (FileNotFoundError, errno.ENOENT),
  tf.errors.PermissionDeniedError: (PermissionError, errno.EACCES),
  tf.errors.FailedPreconditionError: (NotADirectoryError, errno.ENOTDIR),
  tf.errors.ResourceExhaustedError: (OSError, errno.ENOSPC),
}


@contextlib.contextmanager
def python_errors(path: str) -> Iterator[None]:
  """Turns TensorFlow's errors about files into Python's, about `path`."""
  try:
    yield
  except tuple(ERRORS) as error:
    kind, number = ERRORS[type(error)]
    raise kind(number, message(error), path) from None


def message(error: tf.errors.OpError) -> str:
  """What an error of an operation says, without the operation."""
  return re.sub(r"^\{\{.*?\}\} | \[Op:\w+\].*$", "", error.message, flags=re.S)


def split(path: str) -> tuple[str, str]:
  """The folder that holds `path`, and the name within it."""
  folder, slash, name = path.rpartition("/")
  return folder or slash or ".", name


def join(folder: str, name: str) -> str:
  """The path of `name` in a folder."""
  return f"{folder.rstrip('/')}/{name}"


def check_literal(path: str) -> None:
  """Checks that TensorFlow will find a checkpoint of this path again.

  It looks for one by a pattern, in which these characters are not themselves.

  Raises:
    ValueError: the path holds one of them.
  """
  for character in "[\\":
    if character in path:
      raise ValueError(
        f"{path}: TensorFlow cannot read checkpoints from a path with "
        f"{character!r} in it; take another name"
      )


def names(folder: str) -> list[str]:
  """What is in a folder; nothing, if there is no such folder.

  Raises:
    NotADirectoryError: it is a file.
  """
  if not tf.io.gfile.isdir(folder):
    if tf.io.gfile.exists(folder):
      raise NotADirectoryError(
        errno.ENOTDIR, "a file, where a folder of checkpoints is wanted", folder
      )
    return []
  with python_errors(folder):
    return sorted(name.rstrip("/") for name in tf.io.gfile.listdir(folder))


def make_folder(folder: str) -> None:
  """Makes a folder, and those it is in, unless it is there."""
  with python_errors(folder):
    tf.io.gfile.makedirs(folder)


def read(path: str) -> bytes:
  """All bytes of a file."""
  with python_errors(path), tf.io.gfile.GFile(path, "rb") as file:
    return bytes(file.read())


def write(path: str, data: bytes) -> None:
  """Writes a file, down to the disk."""
  with python_errors(path), tf.io.gfile.GFile(path, "wb") as file:
    file.write(data)
  sync(path)


def size_and_time(path: str) -> tuple[int, int]:
  """Its length in bytes, and when it was last changed, in ns since 1970."""
  if _is_local(path):  # TensorFlow only knows the second
    local = os.stat(path)  # noqa: PTH116
    return local.st_size, local.st_mtime_ns
  with python_errors(path):
    stat = tf.io.gfile.stat(path)
    return stat.length, stat.mtime_nsec


def rename(source: str, target: str) -> None:
  """Renames a file at once, over one that is there."""
  with python_errors(target):
    tf.io.gfile.rename(source, target, overwrite=True)


def remove(path: str) -> None:
  """Removes a file, or a folder and all in it; or nothing, if none is there."""
  with contextlib.suppress(FileNotFoundError), python_errors(path):
    if tf.io.gfile.isdir(path):
      tf.io.gfile.rmtree(path)
    else:
      tf.io.gfile.remove(path)


def sync(path: str) -> None:
  """Waits until a file, or the names in a folder, have reached the disk.

  Cloud storage has a file only once it is complete, so there it does nothing.
  """
  if not _is_local(path):
    return
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def _is_local(path: str) -> bool:
  return "://" not in path
