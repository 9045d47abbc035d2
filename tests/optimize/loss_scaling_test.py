"""Loss scaling: what it saves, what it leaves out, how the scale moves."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh


class Training:
  """w of one element, gradient times x, with a scale that adapts."""

  def __init__(self, scaling, mesh_shape="", layout="", dtype=tf.float32):
    self.program = mtf.Program(mesh_shape, layout)

    @self.program.function
    def train(mesh, x):
      w = mtf.get_variable(
        mesh,
        "w",
        "a:4",
        mtf.VariableDType(tf.float32, tf.float32, dtype),
        initializer=1.0,
      )
      x = mtf.import_tf_tensor(mesh, x, [])
      loss = mtf.reduce_sum(w * mtf.cast(x, dtype))
      grads = mtf.gradients([scaling.scale_loss(loss)], [w])
      sgd = mtf.optimize.MomentumOptimizer(1.0, 0.0)
      scaling.apply_grads(sgd, grads, [w])
      return loss

    self.train = train

  def __getitem__(self, name):
    return self.program.variables[name].numpy()


@pytest.mark.parametrize(
  ("mesh_shape", "layout"), [("", ""), ("x:2", "a:x"), ("x:2", "slot_a:x")]
)
def test_the_scale_falls_out_of_the_step(mesh_shape, layout):
  training = Training(mtf.optimize.LossScaling(), mesh_shape, layout)
  training.train(np.float32(0.25))
  np.testing.assert_array_equal(training["w"], 0.75)


def test_gradients_below_float16_survive():
  tiny = np.float32(2.0**-30)
  plain = Training(mtf.optimize.LossScaling(1.0), dtype=tf.float16)
  plain.train(np.float32(0))
  assert np.float16(tiny) == 0
  w = tf.Variable(1.0, dtype=tf.float16)
  with tf.GradientTape() as tape:
    loss = tf.cast(w, tf.float32) * tiny
  assert tape.gradient(loss, w).numpy() == 0  # what happens without a scale

  program = mtf.Program()
  scaling = mtf.optimize.LossScaling(2.0**20, None)

  @program.function
  def train(mesh):
    w = mtf.get_variable(
      mesh,
      "w",
      [],
      mtf.VariableDType(tf.float32, tf.float32, tf.float16),
      initializer=0.0,
    )
    loss = mtf.to_float(w) * float(tiny)
    grads = mtf.gradients([scaling.scale_loss(loss)], [w])
    assert grads[0].dtype == tf.float16
    scaling.apply_grads(mtf.optimize.SgdOptimizer(1.0), grads, [w])
    return ()

  train()
  assert program.variables["w"].numpy() == -tiny


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_step_that_is_no_number_changes_nothing_and_halves_the_scale(bad):
  training = Training(mtf.optimize.LossScaling(8.0, 3))
  training.train(np.float32(0.5))
  assert training["loss_scale/good_steps"] == 1
  before = training["w"], training["w_momentum_v"]
  training.train(np.float32(bad))
  np.testing.assert_array_equal(training["w"], before[0])
  np.testing.assert_array_equal(training["w_momentum_v"], before[1])
  assert training["loss_scale/scale"] == 4.0
  assert training["loss_scale/good_steps"] == 0


def test_good_steps_in_a_row_double_the_scale():
  training = Training(mtf.optimize.LossScaling(8.0, 3))
  seen = []
  for _ in range(7):
    training.train(np.float32(0.0))
    seen.append(float(training["loss_scale/scale"]))
  assert seen == [8, 8, 16, 16, 16, 32, 32]


def test_the_scale_stays_finite_and_above_one():
  training = Training(mtf.optimize.LossScaling(2.0**127, 1))
  training.train(np.float32(0.0))
  assert training["loss_scale/scale"] == 2.0**127
  training = Training(mtf.optimize.LossScaling(2.0, 1))
  for _ in range(3):
    training.train(np.float32(np.inf))
  assert training["loss_scale/scale"] == 1.0


def test_a_fixed_scale_leaves_out_bad_steps_all_the_same():
  training = Training(mtf.optimize.LossScaling(8.0, None))
  training.train(np.float32(np.inf))
  np.testing.assert_array_equal(training["w"], 1.0)
  assert training["loss_scale/scale"] == 8.0
  assert "loss_scale/good_steps" not in training.program.variables


def test_a_checkpoint_keeps_the_scale(tmp_path):
  training = Training(mtf.optimize.LossScaling(8.0, 1))
  training.train(np.float32(0.0))
  training.program.save(str(tmp_path / "ckpt-1"))
  other = Training(mtf.optimize.LossScaling(8.0, 1))
  other.program.restore(str(tmp_path / "ckpt-1"))
  other.train(np.float32(0.0))
  assert other["loss_scale/scale"] == 32.0


def test_gradients_can_be_clipped_between_unscaling_and_the_step():
  program = mtf.Program()
  scaling = mtf.optimize.LossScaling()

  @program.function
  def train(mesh):
    w = mtf.get_variable(mesh, "w", "a:4", initializer=1.0)
    grads = mtf.gradients([scaling.scale_loss(mtf.reduce_sum(w) * 3)], [w])
    grads, norm = mtf.optimize.clip_by_global_norm(scaling.unscale(grads), 1.0)
    updates = mtf.optimize.SgdOptimizer(1.0).apply_grads(grads, [w])
    scaling.update(mtf.optimize.all_finite([norm]), updates)
    return norm

  np.testing.assert_allclose(train(), 6.0)
  np.testing.assert_allclose(program.variables["w"].numpy(), 0.5)


def test_gradients_come_out_as_float32_and_none_stays_none():
  mesh = new_mesh()
  g = mtf.zeros(mesh, "a:4", dtype=tf.float16)
  got = mtf.optimize.LossScaling().unscale([None, g])
  assert got[0] is None
  assert got[1].dtype == tf.float32


@pytest.mark.parametrize("args", [(0.0,), (-1.0,), (float("nan"),), (8.0, 0)])
def test_numbers_that_are_not_positive_are_an_error(args):
  with pytest.raises(ValueError, match="have to be positive"):
    mtf.optimize.LossScaling(*args)
