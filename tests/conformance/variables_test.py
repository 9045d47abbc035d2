"""Variables on every implementation, mesh and layout."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import KINDS, setting
from tests.support.running import Run, new_mesh, tensor

AB = mtf.convert_to_shape("a:4 b:8")
PLACES = [
  ("", ""),
  ("x:2", "a:x"),
  ("x:2;y:2", "b:y"),
  ("x:2;y:4", "a:x;b:y"),
  ("x:2;y:4", "b:x;a:y"),
]


def _settings():
  return [setting(m, s, kind) for m, s in PLACES for kind in KINDS]


ASSIGNMENTS = {
  "assign": (mtf.assign, lambda old, new: new),
  "assign_add": (mtf.assign_add, lambda old, new: old + new),
  "assign_sub": (mtf.assign_sub, lambda old, new: old - new),
  "assign_slice": (
    lambda v, x: mtf.assign(v, x, mtf.assign_slice),
    lambda old, new: new,
  ),
  "assign_add_slice": (
    lambda v, x: mtf.assign(v, x, mtf.assign_add_slice),
    lambda old, new: old + new,
  ),
  "assign_sub_slice": (
    lambda v, x: mtf.assign(v, x, mtf.assign_sub_slice),
    lambda old, new: old - new,
  ),
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_an_assignment_is_seen_by_the_next_lowering(name):
  assign, reference = ASSIGNMENTS[name]
  value = np.arange(32, dtype=np.float32).reshape(4, 8)
  for where in _settings():
    impl, mesh = where.impl, new_mesh()
    w = mtf.get_variable(mesh, "w", AB, initializer=2.0)
    op = assign(w, tensor(mesh, AB, value))
    after = np.full([4, 8], 2.0)
    for _ in range(2):
      before, after = after, reference(after, value)
      lowering = mtf.Lowering(mesh.graph, {mesh: impl})
      got = lowering.export_to_tf_tensor(w)
      np.testing.assert_array_equal(got, before, err_msg=str(where))
      lowering.lowered_operation(op)
    lowering = mtf.Lowering(mesh.graph, {mesh: impl})
    np.testing.assert_array_equal(lowering.export_to_tf_tensor(w), after)


def test_read_variable_sees_the_assignments_before_it():
  for where in _settings():

    def build(mesh):
      w = mtf.get_variable(mesh, "w", AB, initializer=2.0)
      before = mtf.read_variable(w)
      mtf.assign_add(w, mtf.ones_like(w))
      return [w, before, mtf.read_variable(w)]

    values = [v[0, 0] for v in Run(build, where).values]
    assert values == [2.0, 2.0, 3.0], str(where)


@pytest.mark.parametrize(
  "initializer",
  [
    None,
    0.5,
    tf.compat.v1.truncated_normal_initializer(stddev=0.02),
    mtf.initializers.VarianceScaling(2.0, "fan_in", "truncated_normal"),
    lambda shape, dtype: tf.reshape(tf.range(32, dtype=dtype), shape),
  ],
  ids=["default", "number", "TensorFlow's", "ours", "a function"],
)
def test_an_initial_value_is_the_same_under_every_layout(initializer):
  def build(mesh):
    return mtf.get_variable(mesh, "w", AB, initializer=initializer)

  alone = Run(build, setting("", "")).value()
  for where in _settings():
    run = Run(build, where)
    np.testing.assert_array_equal(run.value(), alone, err_msg=str(where))
    run.check_slices(run.tensors[0], alone)


def test_assigning_to_a_narrow_variable_adds_in_its_own_dtype():
  dtype = mtf.VariableDType(tf.float32, tf.float32, tf.bfloat16)
  for where in _settings():
    impl, mesh = where.impl, new_mesh()
    w = mtf.get_variable(mesh, "w", AB, dtype, initializer=1.0)
    small = mtf.constant(mesh, 2.0**-10, AB, tf.bfloat16)
    op = mtf.assign_sub(w, small)
    mtf.Lowering(mesh.graph, {mesh: impl}).lowered_operation(op)
    read = mtf.get_variable(other := new_mesh(), "w", AB, initializer=1.0)
    lowering = mtf.Lowering(other.graph, {other: impl})
    np.testing.assert_array_equal(
      lowering.export_to_tf_tensor(read), np.full([4, 8], 1 - 2.0**-10)
    )
