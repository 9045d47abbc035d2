"""What is saved of a run, and how a run begins where another one ended.

A checkpoint holds the variables, the step and the seed. Two files beside it
hold the rest of a run: the position in the data, and how many steps were left
out. They are written first, so that a checkpoint that is there is whole.
"""

from __future__ import annotations

import json
import re

import tensorflow as tf
from absl import logging

import mesh_tf2 as mtf
from mesh_tf2.checkpoint import CheckpointDirectory, Reader
from mesh_tf2.checkpoint.compare import compare
from mesh_tf2.checkpoint.state import SLOT

from .training_data import TrainingData


class Checkpoints:
  """The checkpoints of a model.

  Args:
    model_dir: the folder that they are in.
    keep: how many of the newest to keep; None for all.
  """

  def __init__(self, model_dir: str, keep: int | None = None) -> None:
    self._directory = CheckpointDirectory(model_dir, keep)

  def steps(self) -> list[int]:
    """The steps of which there are checkpoints, rising."""
    return self._directory.steps()

  def newest(self) -> str | None:
    """The prefix of the newest checkpoint that is whole, or None.

    Raises:
      DamagedCheckpointError: there are some, and all are damaged.
    """
    return self._directory.latest()

  def newest_step(self) -> int | None:
    """The step of that checkpoint."""
    newest = self.newest()
    found = [step for step in self.steps() if self.path(step) == newest]
    return found[0] if found else None

  def path(self, step: int) -> str:
    """The prefix of the files of that step's checkpoint."""
    return self._directory.path(step)

  def save(
    self, program: mtf.Program, data: TrainingData, skipped: int
  ) -> None:
    """Saves all that a run needs to go on, and removes what is not to be kept.

    All processes that run the program must call it.

    Args:
      program: has the variables, the step and the seed.
      data: has the position in the data.
      skipped: how many steps have been left out.
    """
    if not program.processes.is_first:
      program.save(self._directory.path(int(program.step)))
      return
    with self._directory.saving(int(program.step)) as prefix:
      data.save(_data(prefix))
      with tf.io.gfile.GFile(_notes(prefix), "w") as file:
        json.dump({"skipped_steps": skipped}, file)
      program.save(prefix)
    logging.info("saved %s", prefix)


def restore_run(path: str, data: TrainingData) -> int:
  """Puts the position in the data back.

  Args:
    path: the prefix of a checkpoint. If it was made elsewhere and has no
      position, the data begin anew.
    data: where to put the position.

  Returns:
    How many steps had been left out.
  """
  if tf.io.gfile.exists(f"{_data(path)}.index"):
    data.restore(_data(path))
  else:
    logging.warning("%s has no position in the data; beginning anew.", path)
  if not tf.io.gfile.exists(_notes(path)):
    return 0
  with tf.io.gfile.GFile(_notes(path)) as file:
    return int(json.load(file)["skipped_steps"])


def check_all_used(program: mtf.Program, path: str) -> None:
  """Checks that a checkpoint holds nothing that the program has not taken.

  What an optimizer remembers may be left: a model that is not trained, or of
  which some variables are not, does without.

  Args:
    program: has restored the checkpoint, and made its variables.
    path: the prefix of the checkpoint's files.

  Raises:
    CheckpointMismatchError: lists the names of what was left.
  """
  left = set(program.unused_checkpoint_names())
  if not all(re.fullmatch(SLOT, name) for name in left):
    found = Reader(path).inventory()
    compare({}, {n: found[n] for n in left}, optional=[SLOT], checkpoint=path)


def _data(prefix: str) -> str:
  return f"{prefix}.input"


def _notes(prefix: str) -> str:
  return f"{prefix}.run.json"
