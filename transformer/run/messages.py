"""Lines for the person at the terminal, or for a log."""

from __future__ import annotations

import logging
import pathlib
import sys
import warnings

import absl.logging
import tqdm


class _Lines(logging.Handler):
  """Writes messages to standard error, above a progress bar if there is one.

  Of what TensorFlow logs in Python, only warnings and errors are shown.
  """

  def filter(self, record: logging.LogRecord) -> bool:
    """Whether a message is for the user."""
    chatter = "tensorflow" in pathlib.Path(record.pathname).parts
    return record.levelno >= logging.WARNING or not chatter

  def emit(self, record: logging.LogRecord) -> None:
    """Writes one message, without time and place: those are for debugging."""
    try:
      word = "" if record.levelno < logging.WARNING else "warning: "
      if record.levelno >= logging.ERROR:
        word = "error: "
      tqdm.tqdm.write(f"{word}{self.format(record)}", file=sys.stderr)
    except OSError:  # nobody is listening any more
      pass


def show_messages() -> None:
  """Has what is logged, and warnings, appear as plain lines."""
  logger = absl.logging.get_absl_logger()
  logger.handlers = [_Lines()]
  logger.propagate = False
  logging.getLogger().handlers = [_Lines()]
  logging.getLogger(
    "tensorflow"
  ).handlers = []  # its messages go up to the root
  absl.logging.set_verbosity(absl.logging.INFO)
  warnings.showwarning = _warn


def _warn(message: Warning | str, *place: object, **more: object) -> None:
  """Shows a warning without the place in the code where it was given."""
  del place, more
  absl.logging.warning("%s", message)


def duration(seconds: float) -> str:
  """A length of time, in the two largest units: `"2 h 05 min"`."""
  minutes, rest = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  if hours:
    return f"{hours} h {minutes:02d} min"
  return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
