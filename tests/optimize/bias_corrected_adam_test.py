"""Adam and AdamW: against Keras, against the published formulas, in float64."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

STEPS = 4
SIZES = [6, 4]


def gradient(step):
  return np.float32(np.random.RandomState(step).standard_normal(SIZES))


def start():
  return np.float32(np.random.RandomState(99).standard_normal(SIZES))


def trained(make, mesh_shape="", layout="", steps=STEPS):
  """The variables after some steps with an optimizer of each call's own."""
  program = mtf.Program(mesh_shape, layout)

  @program.function
  def train(mesh, g):
    w = mtf.get_variable(
      mesh, "w", "a:6 b:4", initializer=lambda *_, **__: tf.constant(start())
    )
    make().apply_grads([mtf.import_tf_tensor(mesh, g, w.shape)], [w])
    return ()

  for step in range(steps):
    train(gradient(step))
  return {n: v.numpy() for n, v in program.variables.items()}


@pytest.mark.parametrize(
  ("make", "keras"),
  [
    (
      lambda: mtf.optimize.AdamOptimizer(0.1, 0.8, 0.95, 1e-12),
      lambda: tf.keras.optimizers.Adam(0.1, 0.8, 0.95, 1e-12),
    ),
    (
      lambda: mtf.optimize.AdamWOptimizer(0.1, 0.3, epsilon=1e-12),
      lambda: tf.keras.optimizers.AdamW(0.1, weight_decay=0.3, epsilon=1e-12),
    ),
  ],
)
def test_it_agrees_with_keras(make, keras):
  variable, optimizer = tf.Variable(start()), keras()
  for step in range(STEPS):
    optimizer.apply_gradients([(tf.constant(gradient(step)), variable)])
  np.testing.assert_allclose(
    trained(make)["w"], variable.numpy(), rtol=2e-4, atol=2e-5
  )


def test_it_follows_the_published_formulas():
  got = trained(
    lambda: mtf.optimize.AdamWOptimizer(0.1, 0.3, 0.8, 0.999, epsilon=0.01)
  )
  w, m, v = start().astype(np.float64), 0.0, 0.0
  for t in range(1, STEPS + 1):
    g = gradient(t - 1).astype(np.float64)
    m, v = 0.8 * m + 0.2 * g, 0.999 * v + 0.001 * g**2
    m_hat, v_hat = m / (1 - 0.8**t), v / (1 - 0.999**t)
    w = w - 0.1 * (m_hat / (np.sqrt(v_hat) + 0.01) + 0.3 * w)
  np.testing.assert_allclose(got["w"], w, rtol=1e-6, atol=1e-6)
  np.testing.assert_allclose(got["w/adam_m"], m, rtol=1e-6)
  np.testing.assert_allclose(got["w/adam_v"], v, rtol=1e-5)
  assert got["adam/step"] == STEPS


def test_the_first_step_is_the_learning_rate_in_every_element():
  got = trained(lambda: mtf.optimize.AdamOptimizer(0.1), steps=1)
  moved = start() - got["w"]
  np.testing.assert_allclose(moved, 0.1 * np.sign(gradient(0)), rtol=1e-5)


@pytest.mark.parametrize(
  ("mesh_shape", "layout"),
  [("x:2", "a:x"), ("x:2;y:2", "a:x;b:y"), ("x:2;y:2", "b:x;slot_a:y")],
)
def test_a_layout_does_not_change_the_update(mesh_shape, layout):
  def make():
    return mtf.optimize.AdamWOptimizer(0.1, 0.3)

  want, got = trained(make), trained(make, mesh_shape, layout)
  assert set(got) == set(want)
  for name, value in want.items():
    np.testing.assert_allclose(got[name], value, rtol=1e-6, err_msg=name)


def test_variables_are_spared_from_decay_by_regular_expression():
  got = trained(
    lambda: mtf.optimize.AdamWOptimizer(
      0.1, 0.3, exclude_from_weight_decay=["^w$"]
    )
  )
  want = trained(lambda: mtf.optimize.AdamOptimizer(0.1))
  np.testing.assert_array_equal(got["w"], want["w"])


def test_steps_are_counted_once_however_many_variables_there_are():
  program = mtf.Program()

  @program.function
  def train(mesh):
    optimizer = mtf.optimize.AdamOptimizer(0.1)
    pair = [
      mtf.get_variable(mesh, name, "a:2", initializer=1.0) for name in "vw"
    ]
    optimizer.apply_grads(pair, pair)
    return ()

  train()
  train()
  assert program.variables["adam/step"].numpy() == 2
  v, w = (program.variables[name].numpy() for name in "vw")
  np.testing.assert_array_equal(v, w)


def test_two_optimizers_of_one_name_are_told_apart():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  v, w = (mtf.get_variable(mesh, name, "a:2") for name in "vw")
  mtf.optimize.AdamOptimizer(0.1).apply_grads([v], [v])
  with pytest.raises(ValueError, match="adam/step counts the steps of some"):
    mtf.optimize.AdamOptimizer(0.1).apply_grads([w], [w])
  mtf.optimize.AdamOptimizer(0.1, name="critic").apply_grads([w], [w])
  assert "critic/step" in mesh.graph.name_to_variable
