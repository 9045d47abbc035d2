"""Which exceptions are a user's mistakes, and what to say of them."""

from __future__ import annotations

import re
import traceback

import tensorflow as tf

# Where a ValueError is raised that is about what somebody asked for. One from
# the depths of another library is a fault of ours that wants its stack trace.
_OURS = ("mesh_tf2", "gin", "__main__")
_MISSING_BINDINGS = "Required bindings for"
_DISK = (
  tf.errors.NotFoundError,
  tf.errors.PermissionDeniedError,
  tf.errors.ResourceExhaustedError,
)
# What the others see when one of several processes is gone.
_GONE = (
  tf.errors.AbortedError,
  tf.errors.DeadlineExceededError,
  tf.errors.InternalError,
  tf.errors.UnavailableError,
)


def mistake(error: BaseException) -> str | None:
  """What to tell the user; None if the stack trace is worth more.

  Args:
    error: what a run raised.

  Returns:
    A message of a few lines, or None.
  """
  if isinstance(error, OSError):
    if error.filename is not None and error.strerror:
      return f"{error.filename}: {error.strerror}"
    return _without_gin(str(error))
  if isinstance(error, _DISK):
    return error.message.partition("\n")[0]
  if isinstance(error, _GONE):
    return _lost_process(error.message)
  if isinstance(error, tf.errors.InvalidArgumentError):
    return _broken_data(error.message)
  text = str(error)
  if isinstance(error, RuntimeError) and _MISSING_BINDINGS in text:
    return _missing_bindings(text)
  if isinstance(error, ValueError) and _raised_by_us(error):
    return _without_gin(text)
  return None


def _lost_process(message: str) -> str | None:
  """Which process does not answer any more; None for any other error."""
  reason = re.search(
    r"aborted by: ([^\n\\]*)|(Socket closed|Connection re\w+"
    r"|heartbeat\w* timeout|Collective has timed out)",
    message,
  )
  if reason is None:
    return None
  # Each process hands on what it has heard; the last one named is the cause.
  tasks = re.findall(r"/job:(\w+)/replica:\d+/task:(\d+)", message)
  who = " ".join(tasks[-1]) if tasks else "one of the processes"
  return (
    f"{who} does not answer any more ({reason.group(1) or reason.group(2)}), "
    "so this process stops, too; start the same command again for all of them: "
    "it goes on from the last checkpoint"
  )


def _broken_data(message: str) -> str | None:
  """What a check inside the reading of data found; None for any other error."""
  match = re.search(
    r"assertion failed: \[(.*?)\] \[(.*?)\]", message, re.DOTALL
  )
  return match and f"{match.group(1)} {match.group(2)}"


def _raised_by_us(error: BaseException) -> bool:
  frames = list(traceback.walk_tb(error.__traceback__))
  if not frames:
    return False
  name = str(frames[-1][0].f_globals.get("__name__", ""))
  return name.partition(".")[0] in _OURS


def _without_gin(text: str) -> str:
  """A message without the names of the functions on the way to it."""
  lines = text.strip().splitlines()
  kept = [x for x in lines if not x.lstrip().startswith("In call to configu")]
  return "\n".join(kept).strip()


def _missing_bindings(text: str) -> str:
  match = re.search(r"`(\S+)` not provided in config: \[(.*?)\]", text)
  if match is None:
    return _without_gin(text)
  function = match.group(1)
  names = [x.strip("' ") for x in match.group(2).split(",")]
  bindings = ", ".join(f"{function}.{name}" for name in names)
  hint = ""
  if set(names) & {"mesh_shape", "tpu_topology"}:
    hint = (
      "; to choose a mesh, name one of the files in layouts/, for example "
      "--gin_file=layouts/single.gin"
    )
  if "model_dir" in names:
    hint = "; name the folder with --model_dir"
  return f"no gin file or --gin_param sets {bindings}{hint}"
