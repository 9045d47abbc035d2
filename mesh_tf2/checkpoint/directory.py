"""A folder of checkpoints: which there are, which is newest, which to keep."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator

from . import files
from .bundle import Reader
from .errors import DamagedCheckpointError
from .index import index_path
from .staging import is_older_than_this_process, is_temporary, replace

STEP_NAME = "global_step"
STATE_FILE = "checkpoint"  # names the newest; `tf.train.latest_checkpoint`

_FILE = re.compile(r"model\.ckpt-(?P<step>\d+)\.(?P<rest>.+)")

_log = logging.getLogger(__name__)


class CheckpointDirectory:
  """Checkpoints named `model.ckpt-<step>`, and the files that belong to them.

  All files of a checkpoint begin with `model.ckpt-<step>.`; it exists while
  `model.ckpt-<step>.index` does. Other names are left alone.

    checkpoints = CheckpointDirectory(model_dir, keep=3)
    with checkpoints.saving(step) as prefix:
      save_data_position(f"{prefix}.input")  # first what belongs to it,
      program.save(prefix)                   # then the checkpoint itself

  Args:
    directory: the folder; it is made when the first checkpoint is saved.
    keep: how many of the newest to keep; None for all.

  Raises:
    ValueError: `keep` is not at least 1, or checkpoints could not be read again
      from a folder of this name.
  """

  def __init__(
    self, directory: str | os.PathLike[str], keep: int | None = None
  ) -> None:
    if keep is not None and keep < 1:
      raise ValueError(f"keep is {keep}; it is at least 1, or None to keep all")
    self.directory = os.fspath(directory)
    files.check_literal(self.directory)
    self.keep = keep
    # What is known to be whole: its files, and whether their data was read.
    self._whole: dict[int, tuple[object, bool]] = {}

  def path(self, step: int) -> str:
    """The prefix of the files of that step's checkpoint."""
    return files.join(self.directory, f"model.ckpt-{step}")

  def steps(self) -> list[int]:
    """The steps of which there are checkpoints, damaged or not; rising.

    Raises:
      NotADirectoryError: the directory is a file.
    """
    return sorted(
      step for step, rests in self._files().items() if "index" in rests
    )

  def closest(self, step: int) -> str | None:
    """The prefix of the checkpoint nearest to a step; of two, the earlier."""
    steps = self.steps()
    if not steps:
      return None
    return self.path(min(steps, key=lambda s: abs(s - step)))

  def latest(self) -> str | None:
    """The prefix of the newest checkpoint whose files are all whole.

    Damaged ones are passed over with a warning. All data of it is read, once.

    Returns:
      The prefix, or None if there are no checkpoints.

    Raises:
      DamagedCheckpointError: there are checkpoints, but all are damaged.
    """
    damages: list[OSError] = []
    for step in reversed(self.steps()):
      damage = self._damage(step, contents=True)
      if damage is None:
        for other in damages:
          _log.warning("%s; going back to %s", other, self.path(step))
        return self.path(step)
      if step in self.steps():  # else it has been removed since
        damages.append(damage)
    if damages:
      raise DamagedCheckpointError(
        f"no checkpoint in {self.directory} is whole; move them away to begin "
        f"anew: {'; '.join(map(str, damages))}"
      )
    return None

  @contextlib.contextmanager
  def saving(self, step: int) -> Iterator[str]:
    """Saves a checkpoint, and removes those that are not to be kept.

    Within the context, write first the files that belong to it, under names
    that begin with `<prefix>.`, and then the checkpoint itself, whose index
    makes all of them valid at once. If it fails, what was written is removed.

    Args:
      step: what step it is of.

    Yields:
      The prefix of its files.

    Raises:
      RuntimeError: no checkpoint was written within the context.
      OSError: the folder cannot be written to.
    """
    files.names(self.directory)
    files.make_folder(self.directory)
    if step not in self.steps():  # what was left of it, if anything, is no use
      self._remove(step)
    try:
      yield self.path(step)
    except BaseException:
      if step not in self.steps():
        self._remove(step)
      raise
    if step not in self.steps():
      raise RuntimeError(f"nothing has written a checkpoint {self.path(step)}")
    self._whole[step] = (self._fingerprint(step), True)
    self.prune()

  def prune(self) -> None:
    """Removes all but the newest `keep`, and what crashed writes have left.

    Damaged checkpoints do not count among those to keep; they are removed when
    they are older than those. Of older ones, only sizes are looked at.
    """
    steps = self.steps()
    kept: list[int] = []
    damaged: list[int] = []
    for step in reversed(steps):
      if self.keep is not None and len(kept) == self.keep:
        break
      whole = self._damage(step, contents=False) is None
      (kept if whole else damaged).append(step)
    if kept:
      self._write_state(sorted(kept))
    for step in set(steps) - {*kept, *damaged}:
      self._remove(step)
    for step in self._files().keys() - set(steps):
      if kept and step < kept[0] and self._is_left_over(step):
        self._remove(step)

  def _files(self) -> dict[int, list[str]]:
    """What follows `model.ckpt-<step>.` in the names of files, by step."""
    found: dict[int, list[str]] = {}
    for name in files.names(self.directory):
      match = _FILE.fullmatch(name)
      # A step with a zero in front is not our naming.
      if match and not is_temporary(name) and str(int(match[1])) == match[1]:
        found.setdefault(int(match[1]), []).append(match[2])
    return found

  def _paths(self, step: int) -> list[str]:
    """All files of a step, the index first."""
    rests = self._files().get(step, [])
    return [
      f"{self.path(step)}.{rest}"
      for rest in sorted(rests, key=lambda rest: rest != "index")
    ]

  def _damage(
    self, step: int, contents: bool
  ) -> DamagedCheckpointError | FileNotFoundError | None:
    """What is wrong with a checkpoint or those that belong to it."""
    try:
      fingerprint = self._fingerprint(step)
      known, was_read = self._whole.get(step, (None, False))
      if known == fingerprint and (was_read or not contents):
        return None
      for path in self._paths(step):
        if path.endswith(suffix := index_path("")):
          Reader(path.removesuffix(suffix)).verify(contents)
    except (DamagedCheckpointError, FileNotFoundError) as error:
      return error
    self._whole[step] = (fingerprint, contents)
    return None

  def _fingerprint(self, step: int) -> object:
    return [(p, *files.size_and_time(p)) for p in self._paths(step)]

  def _is_left_over(self, step: int) -> bool:
    return all(is_older_than_this_process(p) for p in self._paths(step))

  def _remove(self, step: int) -> None:
    for path in self._paths(step):
      files.remove(path)
    self._whole.pop(step, None)

  def _write_state(self, steps: list[int]) -> None:
    """Names the newest and all others, relative to the folder."""
    names = [f'"{files.split(self.path(step))[1]}"' for step in steps]
    lines = [f"model_checkpoint_path: {names[-1]}"]
    lines += [f"all_model_checkpoint_paths: {name}" for name in names]
    path = files.join(self.directory, STATE_FILE)
    replace(path, "".join(f"{line}\n" for line in lines).encode())


def step_of(prefix: str | os.PathLike[str]) -> int | None:
  """The step that a checkpoint holds; None, if it holds none.

  The name of the file is not looked at: it may have been renamed.
  """
  reader = Reader(prefix)
  shape, dtype = reader.inventory().get(STEP_NAME, ((1,), None))
  if shape or not dtype.is_integer:
    return None
  return int(reader.read(STEP_NAME, (), (), (), dtype))
