"""Keeps TensorFlow's start-up chatter off the terminal.

TensorFlow's libraries write to standard error while they are loaded and when
the first device is made, before anybody can set a log level. Two lines that
matter would be lost among twenty that do not.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

LEVEL = "TF_CPP_MIN_LOG_LEVEL"


@contextlib.contextmanager
def native_messages_hidden() -> Iterator[None]:
  """Within it, what native code writes to standard error is held back.

  It is thrown away at the end, or shown after all if there was an exception.
  Nothing is held back where the environment variable `TF_CPP_MIN_LOG_LEVEL` is
  0 or 1, or where there is no standard error.
  """
  os.environ.setdefault(LEVEL, "2")
  try:
    terminal = os.dup(2)
  except OSError:
    terminal = None
  if terminal is None or os.environ[LEVEL] in ("0", "1"):
    yield
    return
  with tempfile.TemporaryFile() as held:
    sys.stderr.flush()
    os.dup2(held.fileno(), 2)
    try:
      yield
    except BaseException:
      os.dup2(terminal, 2)
      held.seek(0)
      os.write(2, held.read())
      raise
    finally:
      os.dup2(terminal, 2)
      os.close(terminal)
