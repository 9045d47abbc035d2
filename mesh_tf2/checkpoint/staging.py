"""Where a checkpoint is written before it is one.

A folder beside the checkpoint, on the same disk, with its owner in its name. A
process that is killed leaves it behind; the next one that writes a checkpoint
there removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator

from . import files

STARTED = time.time()
TOKEN = secrets.token_hex(4)  # tells us from an older process of our number
OTHER_HOST_SECONDS = 24 * 60 * 60  # until what another host left is nobody's

_NAME = re.compile(r".+\.temp-(?P<host>.+)-(?P<pid>\d+)-(?P<token>[0-9a-f]{8})")


def temporary(path: str) -> str:
  """A name beside `path` that belongs to this process."""
  return f"{path}.temp-{socket.gethostname()}-{os.getpid()}-{TOKEN}"


def is_temporary(name: str) -> bool:
  """Whether it is a name from `temporary`."""
  return _NAME.fullmatch(name) is not None


@contextlib.contextmanager
def staging(prefix: str) -> Iterator[str]:
  """A folder beside a checkpoint's files, which is gone afterwards.

  Raises:
    ValueError: the checkpoint has no name, or one that cannot be read again.
  """
  files.check_literal(prefix)
  beside, name = files.split(prefix)
  if not name:
    raise ValueError(
      f"{prefix!r} is no path of a checkpoint: the name is missing, as in "
      f"{files.join(beside, 'model.ckpt-100')!r}"
    )
  files.make_folder(beside)
  remove_abandoned(beside)
  folder = temporary(prefix)
  files.remove(folder)
  files.make_folder(folder)
  try:
    yield folder
  finally:
    files.remove(folder)


def replace(path: str, data: bytes) -> None:
  """Writes a file so that a crash leaves the old one or the new one."""
  new = temporary(path)
  files.write(new, data)
  files.rename(new, path)
  files.sync(files.split(path)[0])


def is_older_than_this_process(path: str) -> bool:
  """Whether it was last changed before this process began, or is gone."""
  try:
    return files.size_and_time(path)[1] < int(STARTED) * 10**9
  except FileNotFoundError:
    return True


def remove_abandoned(folder: str) -> None:
  """Removes what killed processes left in a folder."""
  for name in files.names(folder):
    path = files.join(folder, name)
    if (owner := _NAME.fullmatch(name)) and _is_abandoned(path, owner):
      files.remove(path)


def _is_abandoned(path: str, owner: re.Match[str]) -> bool:
  """Whether it is older than this process, and its owner is no more."""
  if not is_older_than_this_process(path):
    return False
  if owner["host"] != socket.gethostname():
    with contextlib.suppress(FileNotFoundError):
      age = time.time() - files.size_and_time(path)[1] / 1e9
      return age > OTHER_HOST_SECONDS
    return False
  pid = int(owner["pid"])
  if pid == os.getpid():
    return owner["token"] != TOKEN
  try:
    os.kill(pid, 0)  # no signal: only whether there is such a process
  except ProcessLookupError:
    return True
  except PermissionError:  # it is another user's
    pass
  return False
