"""Names of devices, in any usual spelling, and whether they are there."""

from __future__ import annotations

import re
from collections.abc import Sequence

import tensorflow as tf

from ..core.errors import LayoutError

_NAME = re.compile(
  r"/?"
  r"(?:job:(?P<job>[a-z][a-z0-9_.-]*)/)?"
  r"(?:replica:(?P<replica>\d+)/)?"
  r"(?:task:(?P<task>\d+)/)?"
  r"(?:device:)?(?P<kind>[a-z][a-z_]*)(?::(?P<index>\d+))?",
  re.IGNORECASE,
)


def normalized(name: str) -> str:
  """The one spelling of a device name: `/device:GPU:0`.

  Args:
    name: `gpu:0`, `GPU:0`, `/gpu:0`, `/device:GPU:0`, `gpu` for the first one,
      or all of it: `/job:worker/replica:0/task:1/device:GPU:0`. The job
      `localhost` is this process, and is left out.

  Returns:
    The name; with `/job:.../replica:.../task:...` before it if that says more.

  Raises:
    ValueError: this is no name of a device.
  """
  match = _NAME.fullmatch(name.strip())
  if match is None or match["kind"].lower() in ("job", "replica", "task"):
    raise ValueError(f"{name!r} is no name of a device, such as 'gpu:0'")
  where = ""
  if (match["job"] or "localhost").lower() != "localhost":
    replica, task = int(match["replica"] or 0), int(match["task"] or 0)
    where = f"/job:{match['job']}/replica:{replica}/task:{task}"
  return f"{where}/device:{match['kind'].upper()}:{int(match['index'] or 0)}"


def short(name: str) -> str:
  """What people call a device: `GPU:0`, or all of the name if it is remote."""
  return normalized(name).removeprefix("/device:")


def existing(name: str, here: Sequence[str] | None = None) -> str:
  """The normalized name of a device that is there.

  TensorFlow would quietly take another one in place of one that is missing.

  Args:
    name: in any spelling; the empty one leaves the choice to TensorFlow.
    here: the names of the devices; None for those of this process.

  Raises:
    LayoutError: there is no such device.
  """
  if not name:
    return name
  if here is None:
    here = [device.name for device in tf.config.list_logical_devices()]
  known = [normalized(x) for x in here]
  try:
    wanted = normalized(name)
  except ValueError:
    wanted = ""
  if wanted in known or wanted.startswith("/job:"):
    return wanted
  names = ", ".join(x.removeprefix("/device:") for x in known)
  raise LayoutError(f"there is no device {name!r}; this process has {names}")
