"""Training up to a step, stopping, and going on exactly from there."""

import dataclasses
import json
import logging
import os
import re
import signal

import gin
import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.checkpoint import CheckpointMismatchError, Reader
from mesh_tf2.transformer.run import checkpoints, stops, train

from tests.support import small_runs


@pytest.fixture(autouse=True)
def tiny_model():
  small_runs.bind("dropout_rate = 0.1")
  yield
  gin.clear_config()


def tensors(path):
  """All that a checkpoint holds, by name."""
  reader = Reader(path)
  found = {}
  for name, (shape, dtype) in reader.inventory().items():
    zeros = [0] * len(shape)
    found[name] = reader.read(name, shape, zeros, shape, dtype).numpy()
  return found


def assert_same(path, other):
  mine, others = tensors(path), tensors(other)
  assert mine.keys() == others.keys()
  for name, value in mine.items():
    np.testing.assert_array_equal(value, others[name], err_msg=name)


def run(folder, **kwargs):
  train.train(small_runs.make_settings(folder, **kwargs))


@pytest.fixture
def log(caplog):
  caplog.set_level(logging.INFO, "absl")
  return caplog


def test_six_steps_are_three_steps_and_three_steps(tmp_path, log):
  """With slots, dropout, packing and shuffling; across the end of a pass."""
  kwargs = {"optimizer": mtf.optimize.AdafactorOptimizer, "total_steps": 6}
  run(tmp_path / "whole", steps=6, **kwargs)
  run(tmp_path / "parts", steps=3, **kwargs)
  run(tmp_path / "parts", steps=6, **kwargs)
  assert_same(tmp_path / "whole/model.ckpt-6", tmp_path / "parts/model.ckpt-6")
  assert "step 3 is reached already" not in log.text
  run(tmp_path / "parts", steps=6, **kwargs)
  assert "step 6 is reached already, run.train_steps is 6" in log.text


def test_the_seed_of_a_checkpoint_is_kept(tmp_path, log):
  run(tmp_path, steps=1, seed=5)
  run(tmp_path, steps=2, seed=6)
  assert "run.seed is 6, and the checkpoint is of a run with seed 5" in log.text
  assert tensors(tmp_path / "model.ckpt-2")["mesh_tf2/seed"] == 5


def test_checkpoints_are_written_on_time_and_only_the_newest_are_kept(tmp_path):
  run(tmp_path, steps=7, save_steps=2, keep_checkpoints=2)
  assert checkpoints.Checkpoints(str(tmp_path)).steps() == [6, 7]
  names = {path.name for path in tmp_path.iterdir()}
  assert "model.ckpt-7.run.json" in names
  assert "operative_config.gin" in names
  assert not any(name.startswith("model.ckpt-2") for name in names)
  config = (tmp_path / "operative_config.gin").read_text()
  assert "DenseReluDense.hidden_size = %d_ff" in config


def with_a_signal(rows_before):
  """A data set that sends SIGTERM when some rows have been read."""
  plain = small_runs.make_settings("unused").training.dataset_fn

  def send(i):
    if i == rows_before:
      os.kill(os.getpid(), signal.SIGTERM)
    return i

  def look(i, row):
    seen = tf.numpy_function(send, [i], tf.int64, stateful=False)
    nothing = 0 * tf.ensure_shape(tf.cast(seen, tf.int32), [])
    return {name: x + nothing for name, x in row.items()}

  return lambda **kwargs: plain(**kwargs).enumerate().map(look)


def test_sigterm_leaves_a_checkpoint_from_which_the_run_goes_on(tmp_path, log):
  kwargs = {"iterations_per_loop": 1, "steps": 1000}
  run(tmp_path, dataset_fn=with_a_signal(rows_before=40), **kwargs)
  assert "stopped by SIGTERM at step" in log.text
  (step,) = checkpoints.Checkpoints(str(tmp_path)).steps()
  assert step < 100
  kwargs["steps"] = step + 2
  run(tmp_path, dataset_fn=with_a_signal(rows_before=-1), **kwargs)
  run(tmp_path / "whole", dataset_fn=with_a_signal(rows_before=-1), **kwargs)
  name = f"model.ckpt-{step + 2}"
  assert_same(tmp_path / "whole" / name, tmp_path / name)


def test_a_checkpoint_of_another_model_is_refused_with_all_names(tmp_path):
  small_runs.bind("num_layers = 2")
  run(tmp_path, steps=1)
  small_runs.bind("num_layers = 3", "d_ff = 64")
  with pytest.raises(CheckpointMismatchError) as error:
    run(tmp_path, steps=2)
  text = str(error.value)
  assert "block_002/layer_000/SelfAttention/q" in text  # missing
  assert "block_000/layer_001/DenseReluDense/wi/kernel" in text  # mis-shaped
  small_runs.bind("num_layers = 1")
  with pytest.raises(CheckpointMismatchError, match="in it, but not in the pr"):
    run(tmp_path, steps=2)


def test_slots_of_variables_that_are_not_trained_any_more_are_left(tmp_path):
  kwargs = {"optimizer": mtf.optimize.AdafactorOptimizer}
  run(tmp_path, steps=1, **kwargs)
  run(tmp_path, steps=2, variable_filter=".*rms_norm", **kwargs)
  before, after = (tensors(tmp_path / f"model.ckpt-{n}") for n in (1, 2))
  name = "transformer/embedding"
  np.testing.assert_array_equal(before[name], after[name])
  assert {n for n in after if "_slot_" in n} == {
    f"{n}_slot_v" for n in after if n.endswith("scale")
  }


def test_a_truncated_checkpoint_is_passed_over_with_a_warning(tmp_path, log):
  run(tmp_path, steps=4, save_steps=2)
  bad = tmp_path / "model.ckpt-4.data-00000-of-00001"
  bad.write_bytes(bad.read_bytes()[:-100])
  run(tmp_path, steps=5)
  assert str(bad) in log.text
  assert f"going back to {tmp_path / 'model.ckpt-2'}" in log.text
  assert checkpoints.Checkpoints(str(tmp_path)).steps()[-1] == 5


def test_a_run_can_begin_with_the_variables_of_another(tmp_path, log):
  run(tmp_path / "old", steps=2)
  small_runs.bind("num_layers = 2")
  old = str(tmp_path / "old/model.ckpt-2")
  run(
    tmp_path / "new",
    steps=1,
    init_checkpoint=old,
    learning_rate=lambda step, total: tf.constant(0.0),
  )
  before, after = tensors(old), tensors(tmp_path / "new/model.ckpt-1")
  name = "transformer/block_000/layer_000/SelfAttention/q"
  np.testing.assert_array_equal(before[name], after[name])
  assert after["global_step"] == 1
  assert "variables begin with the values in" in log.text


def test_without_data_there_is_no_training(tmp_path):
  settings = small_runs.make_settings(tmp_path)
  training = dataclasses.replace(settings.training, dataset_fn=None)
  with pytest.raises(ValueError, match="train_dataset_fn is not set"):
    train.train(dataclasses.replace(settings, training=training))


class Explodes(mtf.optimize.SgdOptimizer):
  """Steps so large that the loss is soon no number."""

  def __init__(self, learning_rate):
    super().__init__(learning_rate=1e30)


@pytest.mark.parametrize("saved", [False, True])
def test_a_loss_that_is_no_number_ends_the_run(tmp_path, saved):
  kwargs = {"save_steps": 1} if saved else {}
  with pytest.raises(stops.NonFiniteLossError) as error:
    run(tmp_path, steps=8, optimizer=Explodes, **kwargs)
  bad = int(re.match(r"step (\d+): the loss or a", str(error.value))[1])
  assert 2 <= bad <= 4
  if saved:
    good = tmp_path / f"model.ckpt-{bad - 1}"
    assert f"go back to the checkpoint {good}, and" in str(error.value)
    assert all(np.isfinite(x).all() for x in tensors(good).values())
  else:
    assert "no checkpoint yet to go back to" in str(error.value)


def test_bad_steps_can_be_left_out_and_are_counted(tmp_path, log):
  run(tmp_path, steps=5, optimizer=Explodes, skip_nonfinite=True)
  notes = json.loads((tmp_path / "model.ckpt-5.run.json").read_text())
  assert notes["skipped_steps"] > 0
  assert f"({notes['skipped_steps']} in all)" in log.text
  for name, value in tensors(tmp_path / "model.ckpt-5").items():
    assert np.isfinite(value).all(), name
