"""Where an evaluation leaves its files and curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import tensorflow as tf

from .events import Scalars
from .settings import Settings


class Results:
  """Files and curves of one task.

      <directory>/<task>_inputs, <task>_targets, <task>_<step>_predictions
      <directory>/events...      curves eval/<task>/<metric>

  Args:
    settings: name the directory.
    task: a name for what is evaluated.
    writes: whether anything is written; of several processes the first does.
  """

  def __init__(self, settings: Settings, task: str, writes: bool) -> None:
    self.directory = settings.evaluation.directory
    self._task, self._writes = task, writes
    self._scalars = Scalars(self.directory if writes else None)

  def write_lines(self, name: str, lines: Iterable[str]) -> None:
    """Writes `<task>_<name>`."""
    if not self._writes:
      return
    tf.io.gfile.makedirs(self.directory)
    write_lines(f"{self.directory}/{self._task}_{name}", lines)

  def write_metrics(self, step: int, values: Mapping[str, float]) -> None:
    """Adds a point to the curve of each metric."""
    self._scalars.write(
      step, {f"eval/{self._task}/{name}": x for name, x in values.items()}
    )
    self._scalars.flush()


def write_lines(path: str, lines: Iterable[str]) -> None:
  r"""Writes a line for each string; a \n or \r within it becomes a space.

  The file is there when it is complete, and not before.
  """
  flat = [line.replace("\n", " ").replace("\r", " ") for line in lines]
  with tf.io.gfile.GFile(f"{path}.partial", "w") as file:
    file.write("".join(f"{line}\n" for line in flat))
  tf.io.gfile.rename(f"{path}.partial", path, overwrite=True)
