"""Averages of weights: their values, their place, their use in evaluation."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh

NAME = "w/ExponentialMovingAverage"


class Training:
  """w goes 10, 9, 8, ...; every step is averaged."""

  def __init__(self, decay=0.9, mesh_shape="", layout="", guarded=False):
    self.program = mtf.Program(mesh_shape, layout)
    average = mtf.optimize.ExponentialMovingAverage(decay)

    def weight(mesh, **kwargs):
      return mtf.get_variable(mesh, "w", "a:4", initializer=10.0, **kwargs)

    @self.program.function
    def train(mesh):
      w = weight(mesh)
      updates = mtf.optimize.SgdOptimizer(1.0).apply_grads(
        [mtf.ones_like(w)], [w]
      )
      if guarded:
        mtf.optimize.only_if(mtf.constant(mesh, True, dtype=tf.bool), updates)
      average.update([w])
      return ()

    @self.program.function
    def evaluate(mesh):
      with average.in_place_of_weights(mesh):
        averaged = weight(mesh, activation_dtype=tf.bfloat16)
      return averaged, weight(mesh)

    self.train, self.evaluate = train, evaluate

  def __getitem__(self, name):
    return self.program.variables[name].numpy()


@pytest.mark.parametrize(
  ("mesh_shape", "layout"), [("", ""), ("x:2", "a:x"), ("x:2", "slot_a:x")]
)
@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_it_is_the_weighted_mean_of_the_weights_so_far(
  decay, mesh_shape, layout
):
  training = Training(decay, mesh_shape, layout)
  weights = []
  for t in range(4):
    training.train()
    weights.append(9.0 - t)
    forgetting = decay ** np.arange(t, -1, -1.0)
    want = np.average(weights, weights=forgetting)
    np.testing.assert_allclose(training[NAME], want, rtol=1e-6)


def test_what_is_assigned_on_a_condition_is_averaged_too():
  training = Training(guarded=True)
  training.train()
  np.testing.assert_allclose(training[NAME], 9.0)


def test_evaluation_takes_averages_in_place_of_weights_and_leaves_both():
  training = Training(0.5)
  for _ in range(2):
    training.train()
  before = training[NAME]
  averaged, w = training.evaluate()
  assert averaged.dtype == tf.bfloat16
  np.testing.assert_allclose(averaged, (9 * 0.5 + 8) / 1.5, rtol=1e-2)
  np.testing.assert_array_equal(w, 8.0)
  np.testing.assert_array_equal(training["w"], 8.0)
  np.testing.assert_array_equal(training[NAME], before)


def test_before_the_first_update_evaluation_takes_the_weights():
  averaged, _ = Training().evaluate()
  np.testing.assert_array_equal(averaged, 10.0)


def test_a_variable_that_is_not_trained_has_no_average():
  mesh = new_mesh()
  average = mtf.optimize.ExponentialMovingAverage(0.9)
  with average.in_place_of_weights(mesh):
    table = mtf.get_variable(mesh, "table", "a:4", trainable=False)
  assert isinstance(table.operation, mtf.Variable)
  assert list(mesh.graph.name_to_variable) == ["table"]


def test_a_checkpoint_of_training_serves_evaluation_alone(tmp_path):
  training = Training()
  for _ in range(3):
    training.train()
  training.program.save(str(tmp_path / "ckpt-3"))
  other = Training(mesh_shape="x:2", layout="a:x")
  other.program.restore(str(tmp_path / "ckpt-3"))
  averaged, w = other.evaluate()
  np.testing.assert_array_equal(w, 7.0)
  np.testing.assert_allclose(averaged, training[NAME], rtol=1e-2)


def test_a_decay_out_of_range_is_an_error():
  for decay in (-0.1, 1.0, 2):
    with pytest.raises(ValueError, match=f"decay is {decay}; it has to be at"):
      mtf.optimize.ExponentialMovingAverage(decay)
