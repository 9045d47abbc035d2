"""The newest whole checkpoint is found, and only the newest are kept."""

import logging
import os
import pathlib
import re
import tempfile

import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2.checkpoint import (
  CheckpointDirectory,
  DamagedCheckpointError,
  Reader,
  directory,
  staging,
  step_of,
  write,
)

from tests.checkpoint import slicing


def save(checkpoints, step, value=1.0, side=()):
  with checkpoints.saving(step) as prefix:
    for name in side:
      pathlib.Path(f"{prefix}.{name}").write_text(name)
    write(
      prefix,
      [
        slicing.whole("w", [value] * 20),
        slicing.whole("global_step", step, tf.int64),
      ],
    )
  return prefix


def steps_on_disk(folder):
  return {
    int(m[1])
    for name in slicing.names(folder)
    if (m := re.match(r"model\.ckpt-(\d+)\.", name))
  }


def cut(path):
  data = path.read_bytes()
  path.write_bytes(data[: len(data) // 2])


def data_file(prefix):
  return pathlib.Path(f"{prefix}.data-00000-of-00001")


def index_file(prefix):
  return pathlib.Path(f"{prefix}.index")


@pytest.fixture
def folder(tmp_path):
  return tmp_path / "run"


def test_a_directory_that_does_not_exist_has_no_checkpoints(folder):
  checkpoints = CheckpointDirectory(folder, keep=2)
  assert checkpoints.steps() == []
  assert checkpoints.latest() is None
  assert checkpoints.closest(3) is None
  checkpoints.prune()
  assert not folder.exists()
  save(checkpoints, 0)
  assert checkpoints.latest() == f"{folder}/model.ckpt-0"


def test_a_file_in_place_of_the_directory_is_said_to_be_one(folder):
  folder.write_text("")
  checkpoints = CheckpointDirectory(folder, keep=1)
  message = f"a file, where a folder of checkpoints .*{re.escape(str(folder))}"
  for use in (
    checkpoints.latest,
    checkpoints.steps,
    lambda: save(checkpoints, 1),
  ):
    with pytest.raises(NotADirectoryError, match=message):
      use()
  with pytest.raises(NotADirectoryError, match=r"[Nn]ot a directory"):
    write(f"{folder}/model.ckpt-1", [slicing.whole("w", 1.0)])


@pytest.fixture
def ordinary_user():
  """Root may write anywhere; then act as a user who may not."""
  root = os.geteuid() == 0
  if root:
    os.seteuid(65534)
  yield
  if root:
    os.seteuid(0)


@pytest.fixture
def read_only():
  """A folder that everybody may read, with checkpoint 1."""
  with tempfile.TemporaryDirectory() as name:
    path = pathlib.Path(name)
    save(CheckpointDirectory(path), 1)
    path.chmod(0o555)
    yield name
    path.chmod(0o755)


def test_a_directory_that_is_read_only_is_read(read_only, ordinary_user):
  latest = CheckpointDirectory(read_only, keep=1).latest()
  assert latest == f"{read_only}/model.ckpt-1"
  assert step_of(latest) == 1
  with pytest.raises(PermissionError, match=re.escape(read_only)):
    save(CheckpointDirectory(read_only), 2)
  assert CheckpointDirectory(read_only).steps() == [1]


@pytest.mark.parametrize("keep", [0, -1])
def test_keeping_none_is_refused(folder, keep):
  with pytest.raises(ValueError, match=f"keep is {keep}; it is at least 1"):
    CheckpointDirectory(folder, keep=keep)


def test_only_the_newest_are_kept_with_all_that_belongs_to_them(folder):
  checkpoints = CheckpointDirectory(folder, keep=2)
  for step in (1, 2, 10):
    save(checkpoints, step, side=["input-00000", "input.index.txt"])
  assert checkpoints.steps() == [2, 10]
  assert slicing.names(folder) == [
    "checkpoint",
    *(
      f"model.ckpt-{step}.{rest}"
      for step in (10, 2)
      for rest in (
        "data-00000-of-00001",
        "index",
        "input-00000",
        "input.index.txt",
      )
    ),
  ]


def test_all_are_kept_without_a_number(folder):
  checkpoints = CheckpointDirectory(folder)
  for step in range(4):
    save(checkpoints, step)
  assert CheckpointDirectory(folder).steps() == [0, 1, 2, 3]


def test_other_files_are_left_alone(folder):
  checkpoints = CheckpointDirectory(folder, keep=1)
  folder.mkdir()
  others = [
    "model.ckpt-best.index",
    "model.ckpt-01.index",
    "model.ckpt-1",
    "xmodel.ckpt-1.index",
    "model.ckpt--1.index",
    "events.out",
  ]
  for name in others:
    (folder / name).write_text("")
  for step in (1, 2):
    save(checkpoints, step)
  assert checkpoints.steps() == [2]
  assert set(others) <= set(slicing.names(folder))


def test_tensorflow_finds_the_newest_and_the_folder_may_be_moved(folder):
  checkpoints = CheckpointDirectory(folder, keep=2)
  for step in (1, 9, 10):
    save(checkpoints, step, value=step)
  assert tf.train.latest_checkpoint(folder) == f"{folder}/model.ckpt-10"
  folder.rename(f"{folder}-moved")
  state = tf.train.get_checkpoint_state(f"{folder}-moved")
  assert list(state.all_model_checkpoint_paths) == [
    f"{folder}-moved/model.ckpt-9",
    f"{folder}-moved/model.ckpt-10",
  ]
  newest = tf.train.latest_checkpoint(f"{folder}-moved")
  assert tf.train.load_variable(newest, "w")[0] == 10


def test_the_closest_step_is_found_and_of_two_the_earlier(folder):
  checkpoints = CheckpointDirectory(folder)
  for step in (0, 10, 20):
    save(checkpoints, step)
  closest = {s: checkpoints.closest(s) for s in (-5, 4, 5, 6, 15, 16, 99)}
  wanted = {-5: 0, 4: 0, 5: 0, 6: 10, 15: 10, 16: 20, 99: 20}
  assert closest == {s: checkpoints.path(w) for s, w in wanted.items()}


DAMAGES = {
  "data cut": lambda prefix: cut(data_file(prefix)),
  "index cut": lambda prefix: cut(index_file(prefix)),
  "data missing": lambda prefix: data_file(prefix).unlink(),
  "data changed": lambda prefix: flip(data_file(prefix)),
  "index changed": lambda prefix: flip(index_file(prefix)),
}


def flip(path):
  data = bytearray(path.read_bytes())
  data[5] ^= 1
  path.write_bytes(data)
  later = path.stat().st_mtime + 1
  os.utime(path, (later, later))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_is_passed_over_with_a_warning(folder, damage, caplog):
  checkpoints = CheckpointDirectory(folder)
  for step in (1, 2, 3):
    save(checkpoints, step)
  DAMAGES[damage](checkpoints.path(3))
  with caplog.at_level(logging.WARNING):
    assert CheckpointDirectory(folder).latest() == checkpoints.path(2)
    assert checkpoints.latest() == checkpoints.path(2)
  name = "index" if "index" in damage else "data-00000-of-00001"
  for record in caplog.records:
    text = record.getMessage()
    assert text.startswith(f"{folder}/model.ckpt-3.{name} is ")
    assert text.endswith(f"; going back to {folder}/model.ckpt-2")
  assert len(caplog.records) == 2


def test_it_is_an_error_if_all_are_damaged(folder):
  checkpoints = CheckpointDirectory(folder)
  for step in (1, 2):
    cut(data_file(save(checkpoints, step)))
  message = "no checkpoint in .* is whole; move them away .*ckpt-2.*ckpt-1"
  with pytest.raises(DamagedCheckpointError, match=message):
    checkpoints.latest()


def test_a_damaged_checkpoint_does_not_displace_a_whole_one(folder):
  save(CheckpointDirectory(folder), 1)
  cut(data_file(save(CheckpointDirectory(folder), 9)))
  checkpoints = CheckpointDirectory(folder, keep=1)
  checkpoints.prune()
  assert checkpoints.latest() == checkpoints.path(1)
  save(checkpoints, 2)
  assert checkpoints.steps() == [2, 9]
  assert checkpoints.latest() == checkpoints.path(2)
  assert tf.train.latest_checkpoint(folder) == checkpoints.path(2)
  save(checkpoints, 9)
  assert checkpoints.steps() == [9]
  assert checkpoints.latest() == checkpoints.path(9)
  save(checkpoints, 10)
  assert steps_on_disk(folder) == {10}


def test_data_is_read_once_to_find_the_newest(folder, monkeypatch):
  save(CheckpointDirectory(folder), 1)
  contents = []
  real = Reader.verify

  def verify(self, contents_too):
    contents.append(contents_too)
    real(self, contents_too)

  monkeypatch.setattr(Reader, "verify", verify)
  checkpoints = CheckpointDirectory(folder, keep=2)
  for _ in range(3):
    checkpoints.latest()
  assert contents == [True]
  save(checkpoints, 2)
  assert checkpoints.latest() == checkpoints.path(2)
  assert contents == [True]  # it is known to be what was written
  CheckpointDirectory(folder, keep=2).prune()
  assert contents == [True, False, False]


def test_the_state_of_a_data_iterator_belongs_to_its_checkpoint(folder):
  dataset = tf.data.Dataset.range(30).shuffle(8, seed=1)
  iterator = iter(dataset)
  checkpoints = CheckpointDirectory(folder)
  for step in (1, 2):
    next(iterator)
    with checkpoints.saving(step) as prefix:
      tf.train.Checkpoint(iterator=iterator).write(f"{prefix}.input")
      write(prefix, [slicing.whole("w", 1.0)])
  expected = [int(x) for x in iterator]
  again = iter(dataset)
  assert CheckpointDirectory(folder).steps() == [1, 2]
  newest = CheckpointDirectory(folder).latest()
  tf.train.Checkpoint(iterator=again).read(f"{newest}.input").assert_consumed()
  assert [int(x) for x in again] == expected
  cut(data_file(f"{newest}.input"))
  assert CheckpointDirectory(folder).latest() == checkpoints.path(1)


def test_a_failed_save_leaves_nothing(folder):
  checkpoints = CheckpointDirectory(folder, keep=1)
  save(checkpoints, 1)
  before = slicing.names(folder)
  with pytest.raises(KeyboardInterrupt), checkpoints.saving(2) as prefix:
    pathlib.Path(f"{prefix}.input").write_text("")
    raise KeyboardInterrupt
  assert slicing.names(folder) == before
  with pytest.raises(ValueError, match="overlap"), checkpoints.saving(2) as p:
    write(p, [slicing.whole("w", 1.0), slicing.whole("w", 1.0)])
  assert slicing.names(folder) == before
  nothing = pytest.raises(RuntimeError, match=r"nothing has written .*ckpt-2$")
  with nothing, checkpoints.saving(2):
    pass
  assert checkpoints.latest() == checkpoints.path(1)


def test_a_step_is_saved_again_in_place(folder):
  checkpoints = CheckpointDirectory(folder, keep=1)
  for value in (1.0, 2.0, 3.0):
    save(checkpoints, 5, value=value)
    latest = CheckpointDirectory(folder).latest()
    assert tf.train.load_variable(latest, "w")[0] == value


def test_what_a_crash_left_is_removed_by_a_later_process(folder, monkeypatch):
  checkpoints = CheckpointDirectory(folder, keep=3)
  save(checkpoints, 5)
  for name in ("4.input", "4.data-00000-of-00001", "6.input"):
    (folder / f"model.ckpt-{name}").write_text("")
  save(checkpoints, 6)  # what this process may have written is left
  assert steps_on_disk(folder) == {4, 5, 6}
  assert not (folder / "model.ckpt-6.input").exists()
  (folder / "model.ckpt-8.input").write_text("")
  monkeypatch.setattr(staging, "STARTED", staging.STARTED + 1e6)
  save(checkpoints, 7)
  assert steps_on_disk(folder) == {5, 6, 7, 8}


def test_the_step_inside_counts_not_the_name(tmp_path):
  prefix = tmp_path / "model.ckpt-9"
  write(prefix, [slicing.whole("global_step", 5, tf.int64)])
  assert step_of(prefix) == 5
  write(prefix, [slicing.whole("w", np.zeros(3))])
  assert step_of(prefix) is None
  write(prefix, [slicing.whole("global_step", [5], tf.int64)])
  assert step_of(prefix) is None
  assert directory.STEP_NAME == "global_step"


def test_checkpoints_are_kept_where_only_tensorflow_can_write():
  folder = "ram://runs/one"  # stands for cloud storage
  checkpoints = CheckpointDirectory(folder, keep=1)
  for step in (1, 2, 2):
    with checkpoints.saving(step) as prefix:
      write(prefix, slicing.slices("w", np.full((2, 2), step), (2, 1)))
  assert CheckpointDirectory(folder).steps() == [2]
  newest = CheckpointDirectory(folder).latest()
  assert (
    newest == f"{folder}/model.ckpt-2" == tf.train.latest_checkpoint(folder)
  )
  got = Reader(newest).read("w", (2, 2), (0, 1), (2, 1), tf.int64)
  np.testing.assert_array_equal(got, [[2], [2]])
  names = tf.io.gfile.listdir(folder)
  assert {name.split(".")[1].rstrip("/") for name in names if "." in name} == {
    "ckpt-2"
  }
