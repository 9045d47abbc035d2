"""One step of training, and what it does when its numbers are no numbers."""

import gin
import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import loop, train_step

from tests.support import small_runs


@pytest.fixture(autouse=True)
def tiny_model():
  small_runs.bind()
  yield
  gin.clear_config()


BATCH = {"targets": np.tile(np.arange(3, 19, dtype=np.int32), (4, 2))}


def values(program):
  return {name: v.numpy() for name, v in program.variables.items()}


def changed(before, after):
  return {n for n, x in after.items() if not np.array_equal(x, before[n])}


def test_a_step_changes_every_trainable_variable_and_lowers_the_loss(tmp_path):
  context = small_runs.make_context(tmp_path)
  step = train_step.make_train_step(context)
  step.build({"targets": tf.TensorSpec([4, 32], tf.int32)})
  before = values(context.program)
  first = step(BATCH)
  trainable = {n for n, v in context.program.variables.items() if v.trainable}
  assert trainable <= changed(before, values(context.program))
  losses = [float(step(BATCH)["loss"]) for _ in range(3)]
  assert losses[-1] < float(first["loss"])
  assert int(first["tokens"]) == 4 * 32
  assert float(first["learning_rate"]) == pytest.approx(0.05)
  assert bool(first["finite"])
  assert int(context.program.step) == 4


def test_a_filter_chooses_the_variables_that_are_trained(tmp_path):
  context = small_runs.make_context(
    tmp_path, variable_filter="transformer/(embedding|rms_norm)"
  )
  step = train_step.make_train_step(context)
  step.build({"targets": tf.TensorSpec([4, 32], tf.int32)})
  before = values(context.program)
  step(BATCH)
  slots = {n for n in before if "_slot_" in n}
  assert changed(before, values(context.program)) - slots == {
    "transformer/embedding",
    "transformer/rms_norm/scale",
  }


def test_large_variables_can_be_kept_from_training(tmp_path):
  gin.bind_parameter("variable_filter_max_size.max_size", 16)
  small = gin.get_configurable("variable_filter_max_size")
  context = small_runs.make_context(tmp_path, variable_filter=small)
  step = train_step.make_train_step(context)
  step.build({"targets": tf.TensorSpec([4, 32], tf.int32)})
  before = values(context.program)
  step(BATCH)
  trained = changed(before, values(context.program))
  assert {n for n in trained if "_slot_" not in n} == {
    n for n in before if n.endswith("/scale")
  }


def test_a_filter_that_lets_nothing_through_is_refused(tmp_path):
  context = small_runs.make_context(tmp_path, variable_filter="encoder")
  step = train_step.make_train_step(context)
  with pytest.raises(ValueError, match="'encoder' leaves no variable to train"):
    step(BATCH)


def test_without_an_optimizer_there_is_no_step(tmp_path):
  context = small_runs.make_context(tmp_path, optimizer=None)
  with pytest.raises(ValueError, match="optimizer is not set"):
    train_step.make_train_step(context)(BATCH)


def test_an_optimizer_without_a_rate_of_its_own_asks_for_one(tmp_path):
  context = small_runs.make_context(tmp_path, learning_rate=None)
  with pytest.raises(ValueError, match="learning_rate_schedule is not set"):
    train_step.make_train_step(context)(BATCH)


def test_micro_batches_make_the_same_step(tmp_path):
  after = []
  for tokens in (None, 64):
    small_runs.bind(
      "utils.serialize_num_microbatches.tokens_per_microbatch_per_replica = "
      f"{tokens}",
      "dropout_rate = 0.0",
    )
    context = small_runs.make_context(
      tmp_path, mesh="", layout="", optimizer=mtf.optimize.SgdOptimizer
    )
    metrics = train_step.make_train_step(context)(BATCH)
    after.append((values(context.program), float(metrics["loss"])))
  assert after[0][1] == pytest.approx(after[1][1], rel=1e-5)
  for name, value in after[0][0].items():
    np.testing.assert_allclose(
      value, after[1][0][name], rtol=1e-4, atol=1e-6, err_msg=name
    )


@pytest.mark.parametrize("skip", [False, True], ids=["stop", "skip"])
def test_a_step_whose_gradient_is_no_number_changes_nothing(tmp_path, skip):
  good = np.tile(np.arange(3, 35, dtype=np.int32), (4, 1))
  batches = tf.data.Dataset.from_tensors({"targets": good}).repeat()

  context = small_runs.make_context(tmp_path)
  inner = context.model.call_simple

  def call_simple(**kwargs):
    logits, loss = inner(**kwargs)
    factor = tf.where(tf.equal(loss.graph.step, 1), np.inf, 1.0)
    factor = mtf.import_tf_tensor(loss.mesh, tf.cast(factor, tf.float32), [])
    return logits, loss * factor

  context.model.call_simple = call_simple
  step = train_step.make_train_step(context)
  step.build(batches.element_spec)
  steps = loop.StepLoop(step, skip, most=8)
  iterator = iter(batches)
  steps.run(iterator, 0, [1])
  before = values(context.program)
  bad = steps.run(iterator, 1, [2])
  assert bad["finite"].tolist() == [False]
  assert not changed(before, values(context.program))
  assert int(context.program.step) == 2
  good = [steps.run(iterator, n, [1]) for n in (2, 3)]
  assert all(m["finite"].all() for m in good)
  for name in changed(before, values(context.program)):
    assert np.isfinite(context.program.variables[name].numpy()).all(), name


@pytest.mark.parametrize(
  ("skip", "finite"),
  [(False, [True, False]), (True, [True, False, True, True])],
)
def test_several_steps_end_with_a_bad_one_unless_it_is_skipped(skip, finite):
  count = tf.Variable(0)

  def step(batch):
    now = count.assign_add(1) - 1
    return {
      "loss": tf.cast(batch, tf.float32),
      "tokens": tf.cast(batch, tf.int64),
      "learning_rate": tf.constant(0.0),
      "gradient_norm": tf.constant(0.0),
      "finite": tf.not_equal(now, 2),
    }

  steps = loop.StepLoop(step, skip, most=4, clock=lambda: 0.0)
  numbers = iter(tf.data.Dataset.range(10))
  first = steps.run(numbers, 0, [100])
  assert first["finite"].tolist() == [True]
  assert steps.run(numbers, 1, [100])["finite"].tolist() == finite
