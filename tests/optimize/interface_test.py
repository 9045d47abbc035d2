"""What optimizers take, what they name, and what they say to mistakes."""

import logging

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd.placement import PlacementMeshImpl
from mesh_tf2.spmd.virtual import VirtualMeshImpl

from tests.support.running import new_mesh

A, B, STACK = ("a", 256), ("b", 128), ("stacked", 2)
optimize = mtf.optimize


def variable(mesh, name, dims, value=1.0, **kwargs):
  return mtf.get_variable(mesh, name, dims, initializer=value, **kwargs)


def step(mesh, optimizer, pairs, impl=None):
  """One step from gradients and variables; returns the new values."""
  grads, variables = zip(*pairs, strict=True)
  updates = optimizer.apply_grads(grads, variables)
  impl = impl or VirtualMeshImpl("", "")
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  for update in updates:
    lowering.lowered_operation(update)
  return {
    n: impl.export_tensor(v.read(), v.spec.shape).numpy()
    for n, v in impl.variable_store.items()
  }


@pytest.mark.parametrize(
  "rate", ["number", "tensor", "mesh tensor", "function"]
)
def test_rates_come_in_many_forms(rate):
  mesh = new_mesh()
  mesh.graph.step = tf.constant(3, tf.int64)
  forms = {
    "number": lambda x: x,
    "tensor": tf.constant,
    "mesh tensor": lambda x: mtf.constant(mesh, x, dtype=tf.float64),
    "function": lambda x: lambda step: x / 3 * step,
  }
  make = forms[rate]
  g = mtf.constant(mesh, 2.0)
  for name, optimizer in {
    "sgd": optimize.SgdOptimizer(make(0.3)),
    "momentum": optimize.MomentumOptimizer(make(0.3), make(0.6)),
    "adam": optimize.AdamWeightDecayOptimizer(make(0.3), 0, 0, 0, 0),
    "adafactor": optimize.AdafactorOptimizer(
      learning_rate=make(0.3), decay_rate=make(0.6), clipping_threshold=None
    ),
  }.items():
    optimizer.apply_grads([g], [variable(mesh, name, [])])
  lowering = mtf.Lowering(mesh.graph, {mesh: VirtualMeshImpl("", "")})
  got = {v.full_name: x.value for v, x in lowering.new_values.items()}
  for name, want in {
    "sgd": 1 - 0.3 * 2,
    "momentum": 1 - 0.3 * 2,
    "adam": 1 - 0.3,
    "adafactor": 1 - 0.3 / 0.4**0.5,
  }.items():
    np.testing.assert_allclose(got[name], want, rtol=1e-6, err_msg=name)


def test_without_a_step_adafactor_asks_for_its_rates():
  mesh = new_mesh()
  w = variable(mesh, "w", [A])
  with pytest.raises(ValueError, match="pass learning_rate and decay_rate"):
    optimize.AdafactorOptimizer().apply_grads([mtf.ones_like(w)], [w])
  given = optimize.AdafactorOptimizer(learning_rate=0.5, decay_rate=0.0)
  got = step(mesh, given, [(mtf.ones_like(w), w)])
  np.testing.assert_allclose(got["w"], 0.5, rtol=1e-6)


def test_the_step_of_a_program_reaches_the_rate():
  program = mtf.Program()

  @program.function
  def train(mesh):
    w = variable(mesh, "w", [])
    sgd = optimize.SgdOptimizer(lambda step: step + 1.0)
    sgd.apply_grads([mtf.constant(mesh, 1.0)], [w])
    return ()

  values = []
  for _ in range(3):
    train()
    values.append(float(program.variables["w"].numpy()))
  assert values == [0, -2, -5]


def test_a_variable_without_gradient_stays_and_is_named_in_the_log(caplog):
  mesh = new_mesh()
  w, lonely = variable(mesh, "w", [A]), variable(mesh, "lonely", [A])
  with caplog.at_level(logging.WARNING):
    got = step(
      mesh,
      optimize.MomentumOptimizer(0.1, 0.9),
      [(mtf.ones_like(w), w), (None, lonely)],
    )
  assert set(got) == {"w", "lonely", "w_momentum_v"}
  np.testing.assert_array_equal(got["lonely"], 1.0)
  assert "lonely has no gradient" in caplog.text


def test_gradients_and_variables_must_be_as_many():
  w = variable(new_mesh(), "w", [A])
  with pytest.raises(ValueError, match="1 gradients for 2 variables"):
    optimize.SgdOptimizer(0.1).apply_grads([w], [w, w])


def test_a_gradient_of_another_shape_is_an_error():
  mesh = new_mesh()
  w = variable(mesh, "w", [A])
  with pytest.raises(mtf.ShapeError, match="variable w has shape"):
    optimize.SgdOptimizer(0.1).apply_grads([mtf.ones(mesh, [B])], [w])


@pytest.mark.parametrize(
  ("make", "slots"),
  [
    (lambda: optimize.MomentumOptimizer(0.1, 0.9), ["_momentum_v"]),
    (
      lambda: optimize.AdamWeightDecayOptimizer(0.1),
      ["/adam_m", "/adam_v"],
    ),
    (
      lambda: optimize.AdafactorOptimizer(
        learning_rate=0.1, decay_rate=0.5, beta1=0.9
      ),
      ["_slot_vr", "_slot_vc", "_slot_m"],
    ),
  ],
)
def test_slots_are_named_for_the_variable_whatever_the_scope(make, slots):
  mesh = new_mesh()
  with tf.compat.v1.variable_scope("encoder/block_000"):
    w = variable(mesh, "q", [A, B])
  with tf.compat.v1.variable_scope("training"):
    make().apply_grads([mtf.ones_like(w)], [w])
    b = variable(mesh, "b", [])
  name = "encoder/block_000/q"
  made = {v.full_name: v for v in mesh.graph.all_variables}
  assert set(made) == {name, "training/b", *(name + s for s in slots)}
  kept = [made[name + s] for s in slots]
  assert not any(v.trainable for v in kept)
  assert {(v.master_dtype, v.slice_dtype) for v in kept} == {
    (tf.float32, tf.float32)
  }
  assert b.operation.trainable


def test_stacked_dimensions_are_separate_parameters():
  optimizer = optimize.AdafactorOptimizer(
    learning_rate=0.1, decay_rate=0.5, stacked_dim_names=["stacked"]
  )
  rng = np.random.RandomState(0)
  values = np.float32(rng.standard_normal([2, 256, 128]) * [[[1.0]], [[50.0]]])
  grads = np.float32(rng.standard_normal([2, 256, 128]) * [[[9.0]], [[0.1]]])

  def updated(value, grad, dims):
    mesh = new_mesh()
    w = variable(mesh, "w", dims, lambda *_, **__: tf.constant(value))
    g = mtf.import_tf_tensor(mesh, grad, dims)
    return step(mesh, optimizer, [(g, w)])

  together = updated(values, grads, [STACK, A, B])
  assert together["w_slot_vr"].shape == (2, 128)
  assert together["w_slot_vc"].shape == (2, 256)
  for i in range(2):
    alone = updated(values[i], grads[i], [A, B])
    for name, value in alone.items():
      np.testing.assert_allclose(
        together[name][i], value, rtol=1e-5, atol=1e-6, err_msg=name
      )


def test_excluded_variables_take_steps_that_are_not_relative():
  mesh = new_mesh()
  w, scale = (
    variable(mesh, "w", [A], 5.0),
    variable(mesh, "norm/scale", [A], 5.0),
  )
  optimizer = optimize.AdafactorOptimizer(
    learning_rate=0.1, decay_rate=0.0, exclude_from_parameter_scale=["scale"]
  )
  got = step(mesh, optimizer, [(mtf.ones_like(x), x) for x in (w, scale)])
  np.testing.assert_allclose(got["w"], 5 - 0.5, rtol=1e-6)
  np.testing.assert_allclose(got["norm/scale"], 5 - 0.1, rtol=1e-6)


def test_a_tiny_variable_is_scaled_as_if_it_were_larger():
  mesh = new_mesh()
  w = variable(mesh, "w", [A], 0.0)
  optimizer = optimize.AdafactorOptimizer(learning_rate=0.5, decay_rate=0.0)
  got = step(mesh, optimizer, [(mtf.ones_like(w), w)])
  np.testing.assert_allclose(got["w"], -0.5e-3, rtol=1e-6)


def test_weight_decay_spares_variables_by_regular_expression():
  mesh = new_mesh()
  names = ["dense/kernel", "dense/bias", "LayerNorm/kernel"]
  pairs = [(mtf.zeros(mesh, [A]), variable(mesh, n, [A])) for n in names]
  optimizer = optimize.AdamWeightDecayOptimizer(
    0.1, 0.5, exclude_from_weight_decay=["bias$", "^LayerNorm"]
  )
  got = step(mesh, optimizer, pairs)
  np.testing.assert_allclose(
    [got[n][0] for n in names], [0.95, 1.0, 1.0], rtol=1e-6
  )


def test_small_steps_are_not_lost_in_narrow_activations():
  mesh = new_mesh()
  dtype = mtf.VariableDType(tf.bfloat16, tf.float32, tf.bfloat16)
  w = mtf.get_variable(mesh, "w", [A], dtype, initializer=1.0)
  got = step(mesh, optimize.SgdOptimizer(1e-4), [(mtf.ones_like(w), w)])
  np.testing.assert_allclose(got["w"], 1 - 1e-4, rtol=1e-7)


def test_statistics_of_split_dimensions_are_reduced_in_float32():
  mesh = new_mesh()
  dtype = mtf.VariableDType(tf.float32, tf.float32, tf.bfloat16)
  w = mtf.get_variable(mesh, "w", [A, B], dtype, initializer=1.0)
  impl = PlacementMeshImpl("x:2;y:2", "a:x;b:y", [""] * 4)
  optimizer = optimize.AdafactorOptimizer(learning_rate=0.1, decay_rate=0.5)
  updates = optimizer.apply_grads([mtf.ones_like(w)], [w])
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  assert len(updates) == 3
  sent = [(e.mesh_axes, e.elements) for _, e in lowering.collectives]
  # Over a: means of the columns. Over b: of the rows; and of the former, for
  # the mean of all. Over both: root mean squares of the update and of w.
  assert sorted(sent) == [
    ((0,), 64), ((0, 1), 1), ((0, 1), 1), ((1,), 1), ((1,), 128)
  ]  # fmt: skip
  assert {e.dtype for _, e in lowering.collectives} == {tf.float32}


def test_reduce_rms_is_the_root_of_the_mean_square():
  mesh = new_mesh()
  x = mtf.import_tf_tensor(mesh, [[3.0, 4.0], [0.0, 0.0]], "a:2 b:2")
  b = x.shape.get_dim_by_name("b")
  whole = optimize.reduce_rms(mtf.cast(x, tf.bfloat16))
  rows = optimize.reduce_rms(x, reduced_dim=b)
  assert whole.dtype == tf.float32
  lowering = mtf.Lowering(mesh.graph, {mesh: VirtualMeshImpl("x:2", "b:x")})
  assert lowering.export_to_tf_tensor(whole).numpy() == 2.5
  np.testing.assert_allclose(
    lowering.export_to_tf_tensor(rows), [12.5**0.5, 0], rtol=1e-6
  )


def test_subclasses_say_what_one_variable_gets():
  class SignDescent(optimize.Optimizer):
    def apply_grad(self, grad, var):
      return [mtf.assign_sub(var, mtf.sign(grad))]

  mesh = new_mesh()
  w = variable(mesh, "w", [A])
  got = step(mesh, SignDescent(), [(mtf.constant(mesh, -7.0, [A]), w)])
  np.testing.assert_array_equal(got["w"], 2.0)
