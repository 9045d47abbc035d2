"""Variables within one graph: names, dtypes, what does not fit."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.ops.variables import variable_of

from tests.support.running import new_mesh, run, tensor


def test_asking_again_gives_the_same_variable():
  mesh = new_mesh()
  w = mtf.get_variable(mesh, "w", "a:4")
  assert mtf.get_variable(mesh, "w", "a:4") is w
  assert len(mesh.graph.all_variables) == 1


@pytest.mark.parametrize(
  ("kwargs", "difference"),
  [
    ({"shape": "a:8"}, r"w \[a:8\] float32 \(saved as float32\), trainable"),
    ({"dtype": tf.bfloat16}, r"w \[a:4\] bfloat16 \(saved as bfloat16\)"),
    (
      {"dtype": mtf.VariableDType(tf.float32, tf.bfloat16)},
      r"w \[a:4\] bfloat16 \(saved as float32\)",
    ),
    ({"trainable": False}, r"w \[a:4\] float32 .*, untrainable"),
  ],
)
def test_asking_for_something_else_is_an_error_that_names_both(
  kwargs, difference
):
  mesh = new_mesh()
  mtf.get_variable(mesh, "w", "a:4")
  with pytest.raises(mtf.VariableError, match=difference) as e:
    mtf.get_variable(mesh, "w", **{"shape": "a:4", **kwargs})
  assert "w [a:4] float32 (saved as float32), trainable" in str(e.value)


def test_a_variable_may_be_read_in_two_dtypes():
  mesh = new_mesh()
  wide = mtf.get_variable(mesh, "w", "a:4")
  narrow = mtf.get_variable(mesh, "w", "a:4", activation_dtype=tf.bfloat16)
  assert wide.dtype == tf.float32
  assert narrow.dtype == tf.bfloat16
  assert variable_of(narrow) is variable_of(wide)


def test_the_parts_of_a_dtype_default_to_the_first():
  dtype = mtf.VariableDType(tf.bfloat16)
  assert dtype.slice_dtype == dtype.activation_dtype == tf.bfloat16
  assert mtf.VariableDType(tf.float32) == mtf.VariableDType()
  assert mtf.VariableDType(tf.float32) != dtype


def test_assigning_to_what_is_no_variable_is_an_error():
  x = tensor(new_mesh(), "a:4")
  with pytest.raises(ValueError, match="is not the value of a variable"):
    mtf.assign(x, x)


def test_assigning_another_shape_names_both():
  mesh = new_mesh()
  w = mtf.get_variable(mesh, "w", "a:4 b:2")
  with pytest.raises(
    ValueError, match=r"w has shape \[a:4 b:2\], the value \[b:2 a:4\]"
  ):
    mtf.assign(w, mtf.transpose(w, "b:2 a:4"))


def test_an_assignment_finds_the_variable_behind_casts():
  def build(mesh):
    w = mtf.get_variable(mesh, "w", "a:4", initializer=1.0)
    seen = mtf.identity(mtf.cast(w, tf.bfloat16))
    mtf.assign_add(seen, mtf.ones(mesh, "a:4"))
    return mtf.read_variable(seen)

  assert run(build, "x:2", "a:x").value().tolist() == [2] * 4


def test_initial_values_depend_on_the_name_only():
  def build(mesh):
    with tf.compat.v1.variable_scope("left"):
      one = mtf.get_variable(mesh, "w", "a:64")
    with tf.compat.v1.variable_scope("right"):
      other = mtf.get_variable(mesh, "w", "a:64")
    return [one, other]

  one, other = run(build).values
  assert not np.any(one == other)

  def alone(mesh):
    mtf.get_variable(mesh, "first", "a:8")
    return mtf.get_variable(mesh, "right/w", "a:64")

  np.testing.assert_array_equal(run(alone).value(), other)


INITIALIZERS = [
  # initializer, mean, standard deviation, largest magnitude
  (mtf.initializers.RandomNormal(stddev=2.0), 0, 2.0, 12),
  (mtf.initializers.RandomUniform(-1, 3), 1, 4 / 12**0.5, 3),
  (tf.compat.v1.truncated_normal_initializer(stddev=1.0), 0, 0.8796, 2.0001),
  (tf.compat.v1.random_normal_initializer(1.0, 0.5), 1, 0.5, 6),
  (mtf.initializers.VarianceScaling(), 0, (2 / 384) ** 0.5, 0.126),
  (
    mtf.initializers.VarianceScaling(1.0, "fan_in", "truncated_normal"),
    0, 128**-0.5, 0.202,
  ),
  (
    tf.compat.v1.variance_scaling_initializer(1.0, "fan_out", "uniform"),
    0, 256**-0.5, 0.109,
  ),
]  # fmt: skip


@pytest.mark.parametrize(("initializer", "mean", "deviation", "largest"),
                         INITIALIZERS)  # fmt: skip
def test_initializers_have_their_moments(initializer, mean, deviation, largest):
  def build(mesh):
    return mtf.get_variable(
      mesh, "w", "in:128 out:256", initializer=initializer
    )

  value = run(build, "x:2", "out:x").value().astype(np.float64)
  far = 5.3 / np.sqrt(value.size)
  assert abs(value.mean() - mean) < far * deviation
  assert abs(value.std() / deviation - 1) < far * 1.5
  assert np.abs(value).max() < largest


def test_what_is_no_initializer_is_named():
  with pytest.raises(ValueError, match="not an initializer: 'glorot'"):
    mtf.get_variable(new_mesh(), "w", "a:4", initializer="glorot")
