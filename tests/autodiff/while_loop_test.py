"""Loops: values, layouts, accumulators, errors."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.autodiff.while_loop import while_loop
from mesh_tf2.spmd.placement import PlacementMeshImpl
from mesh_tf2.spmd.virtual import VirtualMeshImpl

A, B = mtf.Dimension("a", 4), mtf.Dimension("b", 6)


def implementations(rules):
  yield VirtualMeshImpl("x:2;y:2", rules)
  yield PlacementMeshImpl("x:2;y:2", rules, [""] * 4)


def new_mesh():
  return mtf.Mesh(mtf.Graph(), "mesh")


def lower(mesh, impl):
  return mtf.Lowering(mesh.graph, {mesh: impl})


@pytest.mark.parametrize("rules", ["", "a:x", "a:x;b:y"])
def test_a_loop_doubles_until_it_is_large_enough(rules):
  for impl in implementations(rules):
    mesh = new_mesh()
    x = mtf.import_tf_tensor(mesh, np.ones([4, 6], np.float32), [A, B])
    total = lambda x: mtf.reduce_sum(x)
    y, n = while_loop(
      lambda x, n: mtf.less(total(x), 100.0),
      lambda x, n: [x + x, n + 1],
      [x, mtf.constant(mesh, 0, dtype=tf.int32)],
    )
    lowering = lower(mesh, impl)
    np.testing.assert_array_equal(lowering.export_to_tf_tensor(y), 8)
    assert lowering.export_to_tf_tensor(n).numpy() == 3


def test_a_loop_reads_tensors_and_variables_from_outside():
  mesh = new_mesh()
  x = mtf.import_tf_tensor(mesh, np.arange(4.0, dtype=np.float32), [A])

  def body(n, y):
    w = mtf.get_variable(mesh, "w", [A], initializer=2.0)
    return [n - 1, y + x * w]

  _, y = while_loop(
    lambda n, y: mtf.greater(n, 0),
    body,
    [mtf.constant(mesh, 3, dtype=tf.int32), mtf.zeros_like(x)],
  )
  impl = VirtualMeshImpl("x:2", "a:x")
  got = lower(mesh, impl).export_to_tf_tensor(y)
  np.testing.assert_array_equal(got, 6 * np.arange(4.0))
  assert list(mesh.graph.name_to_variable) == ["w"]


def test_an_accumulator_over_a_split_dimension_is_reduced_once():
  mesh = new_mesh()
  x = mtf.import_tf_tensor(mesh, np.ones(4, np.float32), [A])
  _, total = while_loop(
    lambda n: mtf.less(n, 5),
    lambda n: [n + 1, mtf.reduce_sum(x)],
    [mtf.constant(mesh, 0, dtype=tf.int32)],
    has_accumulators=True,
  )
  impl = PlacementMeshImpl("x:2", "a:x", [""] * 2)
  lowering = lower(mesh, impl)
  assert lowering.export_to_tf_tensor(total).numpy() == 20
  assert [e.kind for _, e in lowering.collectives] == ["allreduce"]


def test_random_numbers_differ_from_round_to_round_but_not_by_layout():
  values = []
  for rules in ("", "a:x"):
    mesh = new_mesh()
    _, first, last = while_loop(
      lambda n, u, v: mtf.less(n, 2),
      lambda n, u, v: [n + 1, v, mtf.random_uniform(mesh, [A])],
      [
        mtf.constant(mesh, 0, dtype=tf.int32),
        mtf.zeros(mesh, [A]),
        mtf.zeros(mesh, [A]),
      ],
    )
    lowering = lower(mesh, VirtualMeshImpl("x:2", rules))
    pair = [lowering.export_to_tf_tensor(t).numpy() for t in (first, last)]
    values.append(pair)
  np.testing.assert_array_equal(values[0], values[1])
  assert np.all(values[0][0] != values[0][1])


def test_a_loop_variable_that_changes_its_shape_is_an_error():
  mesh = new_mesh()
  x = mtf.zeros(mesh, [A, B])
  with pytest.raises(ValueError, match="loop variable 0 goes in as float32"):
    while_loop(
      lambda x: mtf.less(mtf.reduce_sum(x), 1.0),
      lambda x: [mtf.transpose(x, [B, A])],
      [x],
    )


def test_a_condition_that_is_no_bool_scalar_is_an_error():
  x = mtf.zeros(new_mesh(), [A])
  with pytest.raises(ValueError, match="condition must be a bool scalar"):
    while_loop(lambda x: mtf.less(x, 1.0), lambda x: [x], [x])


def test_more_results_than_loop_variables_need_has_accumulators():
  x = mtf.zeros(new_mesh(), [])
  with pytest.raises(ValueError, match="with has_accumulators=True only"):
    while_loop(lambda x: mtf.less(x, 1.0), lambda x: [x, x], [x])


def test_an_assignment_inside_a_loop_is_an_error():
  mesh = new_mesh()
  w = mtf.get_variable(mesh, "w", [A])

  def body(x):
    mtf.assign_add(w, x)
    return [x]

  with pytest.raises(ValueError, match="cannot be assigned inside"):
    while_loop(
      lambda x: mtf.less(mtf.reduce_sum(x), 1.0), body, [mtf.zeros(mesh, [A])]
    )


def test_a_tensor_of_the_body_is_not_visible_outside():
  mesh = new_mesh()
  inner = []

  def body(x):
    inner.append(x + 1.0)
    return [inner[0]]

  while_loop(
    lambda x: mtf.less(mtf.reduce_sum(x), 1.0), body, [mtf.zeros(mesh, [A])]
  )
  y = inner[0] * 2.0
  with pytest.raises(ValueError, match="made inside another function or loop"):
    lower(mesh, VirtualMeshImpl("", "")).export_to_tf_tensor(y)


def test_a_layout_that_the_body_cannot_have_is_an_error_before_it_runs():
  def dot(mesh):
    # Summing over both would add only what one processor has of each.
    x = mtf.constant(mesh, 1.0, [A])
    y = mtf.constant(mesh, 1.0, [B])
    return mtf.einsum([x, y], [])

  def alone(mesh):
    x = mtf.constant(mesh, 1.0, [A])
    return mtf.reduce_sum(mtf.slicewise(lambda x: x, [x]))

  for make, rules, message in (
    (dot, "a:x;b:x", "'a' and 'b' are both split over mesh dimension 'x'"),
    (alone, "a:x", "slice.* along 'a': it is split over mesh dimension 'x'"),
  ):
    mesh = new_mesh()
    while_loop(
      lambda x: mtf.less(x, 1.0),
      lambda x, make=make, mesh=mesh: [x + make(mesh)],
      [mtf.constant(mesh, 0.0)],
    )
    for impl in implementations(rules):
      with pytest.raises(mtf.LayoutError, match=message):
        lower(mesh, impl)


def test_a_loop_without_variables_is_told():
  with pytest.raises(ValueError, match="while_loop needs a loop variable"):
    mtf.while_loop(lambda: True, list, [])
