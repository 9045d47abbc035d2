"""Learning rates by the name of a variable, schedules, T2T's settings."""

import types

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh

optimize = mtf.optimize
NAMES = ["encoder/w", "decoder/w", "decoder/bias"]
KINDS = {
  "adam": (
    lambda *args, **kwargs: optimize.AdamWithMultiLRSchedule(
      *args, beta_1=0.0, beta_2=0.0, epsilon=0.0, **kwargs
    ),
    3,
  ),
  "adafactor": (
    lambda *args, **kwargs: optimize.AdafactorWithMultiLRSchedule(
      *args, decay_rate=0.0, multiply_by_parameter_scale=False, **kwargs
    ),
    2,
  ),
}


def moved(kind, step=0, **kwargs):
  """How far each variable goes in a step whose size is the rate alone."""
  mesh = new_mesh()
  mesh.graph.step = tf.constant(step, tf.int64)
  variables = [mtf.get_variable(mesh, n, "a:4", initializer=0.0) for n in NAMES]
  make, assignments = KINDS[kind]
  optimizer = make(learning_rate=1.0, **kwargs)
  updates = optimizer.apply_grads(
    [mtf.ones_like(v) for v in variables], variables
  )
  assert len(updates) == assignments * len(variables)
  targets = [v.full_name for update in updates for v in update.variables]
  assert len(set(targets)) == len(targets)
  impl = mtf.virtual_mesh_impl.VirtualMeshImpl("", "")
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  new = {v.full_name: x.value for v, x in lowering.new_values.items()}
  return [-float(new[n][0]) for n in NAMES]


@pytest.mark.parametrize("kind", KINDS)
def test_each_variable_has_one_assignment_and_the_rate_of_its_last_match(kind):
  got = moved(
    kind,
    variable_search=["decoder", "bias$", "^w"],
    alt_lr_schedules=[0.5, 0.25, 7.0],
  )
  np.testing.assert_allclose(got, [1.0, 0.5, 0.25], rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_no_schedule_is_the_rate_of_all_others(kind):
  got = moved(
    kind, variable_search=["decoder", "bias"], alt_lr_schedules=[0.5, None]
  )
  np.testing.assert_allclose(got, [1.0, 0.5, 1.0], rtol=1e-5)
  np.testing.assert_allclose(moved(kind), 1.0, rtol=1e-5)


def test_schedules_see_the_step_and_their_product_is_taken():
  got = moved(
    "adam",
    step=100,
    variable_search=["encoder", "bias"],
    alt_lr_schedules=[
      lambda step, total: step / total * 524288,
      [0.5, lambda step, total: step + 1.0],
    ],
  )
  np.testing.assert_allclose(got, [100.0, 1.0, 50.5], rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_expressions_and_schedules_must_be_as_many(kind):
  with pytest.raises(ValueError, match=r"2 regular expressions and.* 1 sched"):
    moved(kind, variable_search=["a", "b"], alt_lr_schedules=[0.5])


def test_rates_of_schedules_are_functions_of_the_step():
  rates = optimize.compute_lr_for_step(
    [None, 0.5, [2.0, lambda step, total: step / total]], 0.1, train_steps=10
  )
  assert rates[0] == 0.1
  assert float(rates[1](3)) == 0.5
  np.testing.assert_allclose(rates[2](3), 0.6, rtol=1e-6)


def test_a_product_of_schedules_counts_from_its_offset_to_the_end():
  def rising(step, total):
    return step / total

  got = optimize.product_learning_rate(5, 101, [2.0, rising], offset=1)
  np.testing.assert_allclose(got, 2 * 4 / 100, rtol=1e-6)
  assert optimize.product_learning_rate(5, 100, []).numpy() == 1.0
  with pytest.raises(ValueError, match=r"factors is -1\.0: a learning rate"):
    optimize.product_learning_rate(5, 100, [-1.0])


# Tensor2Tensor's settings.

SETTINGS = {
  "optimizer": "Adafactor",
  "optimizer_adafactor_decay_type": "pow",
  "optimizer_adafactor_memory_exponent": 0.5,
  "optimizer_adafactor_beta2": 0.75,
  "optimizer_adafactor_multiply_by_parameter_scale": False,
  "optimizer_adafactor_beta1": 0.0,
  "optimizer_adafactor_clipping_threshold": None,
  "optimizer_adafactor_factored": False,
}


def hparams(**kwargs):
  return types.SimpleNamespace(**{**SETTINGS, **kwargs})


def second_step(optimizer):
  """What a second step with gradients 1 and 2 makes of a weight of 0."""
  program = mtf.Program()

  @program.function
  def train(mesh, g):
    w = mtf.get_variable(mesh, "w", "a:4", initializer=0.0)
    g = mtf.import_tf_tensor(mesh, g, [])
    optimizer.apply_grads([g * mtf.ones_like(w)], [w])
    return ()

  train(np.float32(1))
  before = program.variables["w"].numpy()
  train(np.float32(2))
  return (before - program.variables["w"].numpy())[0]


@pytest.mark.parametrize(
  ("decay_type", "decay"),
  [("pow", 1 - 2**-0.5), ("adam", 0.75 * 0.25 / (1 - 0.75**2))],
)
def test_adafactor_is_made_of_the_settings_of_tensor2tensor(decay_type, decay):
  optimizer = optimize.make_optimizer(
    hparams(optimizer_adafactor_decay_type=decay_type), 0.1
  )
  assert type(optimizer) is optimize.AdafactorOptimizer
  want = 0.1 * 2 / np.sqrt(decay * 1 + (1 - decay) * 4)
  np.testing.assert_allclose(second_step(optimizer), want, rtol=1e-5)


def test_sgd_is_made_of_its_name():
  optimizer = optimize.make_optimizer(hparams(optimizer="SGD"), 0.1)
  np.testing.assert_allclose(second_step(optimizer), 0.2, rtol=1e-6)


def test_unknown_settings_are_named():
  with pytest.raises(ValueError, match="optimizer is 'Lion'; it can be 'SGD'"):
    optimize.make_optimizer(hparams(optimizer="Lion"), 0.1)
  with pytest.raises(ValueError, match="decay_type is 'exp'; it can be 'adam'"):
    optimize.adafactor_optimizer_from_hparams(
      hparams(optimizer_adafactor_decay_type="exp"), 0.1
    )
