"""Jitter, and dropout that fades away."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running

B = mtf.Dimension("batch", 64)
C = mtf.Dimension("channels", 128)
LAYOUTS = [("", ""), ("a:2;b:4", "batch:a;channels:b")]


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_jitter_multiplies_each_element_by_a_number_of_its_own(mesh, layout):
  def build(mesh):
    x = mtf.ones(mesh, [B, C]) * 3
    y = mtf.layers.multiplicative_jitter(x, 0.1)
    return [y, *mtf.gradients([y], [x])]

  y, dx = running.run(build, mesh, layout).values
  np.testing.assert_allclose(y, 3 * dx, rtol=1e-6)
  assert 0.9 <= dx.min() < 0.901
  assert 1.099 < dx.max() <= 1.1
  np.testing.assert_allclose(dx.mean(), 1, atol=0.003)
  # A uniform variable's standard deviation.
  np.testing.assert_allclose(dx.std(), 0.2 / 12**0.5, rtol=0.03)
  one = running.run(build).value()
  np.testing.assert_array_equal(y, one)


def test_jitter_of_nothing_is_none_and_keeps_the_dtype():
  x = mtf.ones(running.new_mesh(), [B, C], tf.bfloat16)
  assert mtf.layers.multiplicative_jitter(x, 0) is x
  assert mtf.layers.multiplicative_jitter(x).dtype == tf.bfloat16


def annealed(mesh, step, dtype=tf.float32, **kwargs):
  x = mtf.ones(mesh, [B, C], dtype)
  y = mtf.layers.annealed_dropout(x, True, 100, 200, 0.4, step=step, **kwargs)
  return mtf.cast(y, tf.float32)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
@pytest.mark.parametrize(
  ("step", "rate"),
  [(0, 0.4), (100, 0.4), (150, 0.2), (175, 0.1), (200, 0), (999, 0)],
)
def test_the_rate_falls_linearly_between_the_two_steps(step, rate, dtype):
  y = running.run(lambda mesh: annealed(mesh, step, dtype)).value()
  np.testing.assert_allclose((y == 0).mean(), rate, atol=0.02)
  kept = y[y != 0]
  np.testing.assert_allclose(kept, 1 / (1 - rate), rtol=5e-3)


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS[1:])
def test_the_mask_does_not_depend_on_the_layout(mesh, layout):
  one, split = (
    running.run(lambda mesh: annealed(mesh, 120), *where).value()
    for where in (("", ""), (mesh, layout))
  )
  np.testing.assert_array_equal(one, split)


def test_decisions_are_shared_along_what_the_noise_shape_lacks():
  y = running.run(lambda mesh: annealed(mesh, 0, noise_shape=[C])).value()
  np.testing.assert_array_equal(y, np.broadcast_to(y[:1], y.shape))
  assert 0 < (y == 0).mean() < 1


def test_in_a_program_the_step_is_the_number_of_steps_made():
  program = mtf.Program()

  @program.function
  def train(mesh):
    x = mtf.ones(mesh, [B, C])
    w = mtf.get_variable(mesh, "w", [], initializer=0)
    mtf.assign_add(w, mtf.ones(mesh, []))
    return mtf.layers.annealed_dropout(x, True, 1, 3, 0.5)

  rates = [(train().numpy() == 0).mean() for _ in range(5)]
  np.testing.assert_allclose(rates, [0.5, 0.5, 0.25, 0, 0], atol=0.02)


def test_without_training_or_a_rate_nothing_is_dropped():
  x = mtf.ones(running.new_mesh(), [B, C])
  assert mtf.layers.annealed_dropout(x, False, 1, 3, 0.5) is x
  assert mtf.layers.annealed_dropout(x, True, 1, 3, 0.0) is x


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ((1, 3), r"init_rate is None, it must be in \[0, 1\)"),
    ((1, 3, 1.5), r"init_rate is 1.5, it must be in \[0, 1\)"),
    ((3, 3, 0.5), r"end_step \(3\) must be larger than start_step \(3\)"),
    ((1, 3, 0.5), "the graph does not know its step; pass step="),
  ],
)
def test_what_annealed_dropout_lacks_is_named(arguments, message):
  x = mtf.ones(running.new_mesh(), [B, C])
  with pytest.raises(ValueError, match=message):
    mtf.layers.annealed_dropout(x, True, *arguments)
