"""Which checkpoints are looked at."""

import itertools

import pytest
import tensorflow as tf

from mesh_tf2 import checkpoint
from mesh_tf2.transformer.run import checkpoint_steps

iterate = checkpoint_steps.get_checkpoint_iterator


def add(folder, *steps):
  for step in steps:
    number = checkpoint.Slice("global_step", (), (), tf.constant(step))
    checkpoint.write(folder / f"model.ckpt-{step}", [number])


@pytest.mark.parametrize(
  ("which", "steps"),
  [
    (-1, [300]),
    (200, [200]),
    (190, [200]),
    ("all", [100, 200, 300]),
    ([290, 100, 299], [300, 100]),
    ((100, -1), [100, 300]),
  ],
)
def test_checkpoints_are_chosen_by_step(tmp_path, which, steps):
  add(tmp_path, 100, 200, 300)
  assert list(iterate(which, str(tmp_path))) == steps


def test_the_latest_is_the_newest_that_is_whole(tmp_path, caplog):
  add(tmp_path, 100, 200)
  (tmp_path / "model.ckpt-200.data-00000-of-00001").write_bytes(b"")
  assert list(iterate(-1, str(tmp_path))) == [100]
  assert "model.ckpt-200" in caplog.text


def test_all_may_be_limited(tmp_path):
  add(tmp_path, 100, 200, 300, 400)
  found = iterate("all", str(tmp_path), skip_until=200, stop_after=300)
  assert list(found) == [200, 300]


def test_an_exact_step_has_to_be_there(tmp_path):
  add(tmp_path, 100, 200)
  with pytest.raises(ValueError, match=r"of step 190 in .*, only of 100, 200"):
    iterate(190, str(tmp_path), find_closest=False)


@pytest.mark.parametrize("which", ["latest", [], [1.5]])
def test_what_is_no_choice_is_refused(tmp_path, which):
  add(tmp_path, 100)
  with pytest.raises(ValueError, match="it is a step, a list of steps, -1"):
    iterate(which, str(tmp_path))


def test_a_folder_without_checkpoints_is_named(tmp_path):
  with pytest.raises(FileNotFoundError, match=f"no checkpoint in {tmp_path}"):
    iterate(-1, str(tmp_path))


def test_new_checkpoints_are_waited_for(tmp_path, monkeypatch):
  add(tmp_path, 100)
  news = iter([(), (300, 200), ()])
  clock = itertools.count()
  monkeypatch.setattr(checkpoint_steps.time, "monotonic", lambda: next(clock))
  monkeypatch.setattr(
    checkpoint_steps.time, "sleep", lambda seconds: add(tmp_path, *next(news))
  )
  found = iterate(None, str(tmp_path), skip_until=150, stop_after=300)
  assert list(found) == [200, 300]


def test_waiting_ends_when_nothing_comes(tmp_path, monkeypatch):
  add(tmp_path, 100)
  clock = itertools.count()
  monkeypatch.setattr(checkpoint_steps.time, "monotonic", lambda: next(clock))
  monkeypatch.setattr(checkpoint_steps.time, "sleep", lambda seconds: None)
  assert list(iterate(None, str(tmp_path), timeout_seconds=5)) == [100]
