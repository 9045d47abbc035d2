"""Graphs that are changed after they were built, and what is kept of them."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd.virtual import VirtualMeshImpl

from tests.support.running import new_mesh, tensor

TWO = VirtualMeshImpl("x:2", "a:x")


def value(x, impl=None):
  impl = impl or VirtualMeshImpl("x:2", "a:x")
  return mtf.Lowering(x.graph, {x.mesh: impl}).export_to_tf_tensor(x).numpy()


# Copies.


def test_copies_read_what_takes_the_place_of_their_inputs():
  mesh = new_mesh()
  x, other = (
    tensor(mesh, "a:4", [1, 2, 3, 4]),
    tensor(mesh, "a:4", [5, 6, 7, 8]),
  )
  y, ops = mesh.graph.capture_operations(lambda: mtf.square(x) + 1)
  copies, mapping = mesh.graph.clone_operations(ops, {x: other})
  assert len(copies) == len(ops)
  assert not set(copies) & set(ops)
  np.testing.assert_array_equal(value(mapping[y]), [26, 37, 50, 65])
  np.testing.assert_array_equal(value(y), [2, 5, 10, 17])


def test_variables_and_random_numbers_are_not_copied():
  mesh = new_mesh()
  x = tensor(mesh, "a:4")

  def build():
    w = mtf.get_variable(mesh, "w", "a:4", initializer=2.0)
    noise = mtf.random_uniform(mesh, "a:4")
    return w, noise, w * noise + x

  (w, noise, y), ops = mesh.graph.capture_operations(build)
  given = {x: mtf.zeros_like(x)}
  copies, mapping = mesh.graph.clone_operations(ops, given)
  assert mapping[w] is w
  assert mapping[noise] is noise
  assert set(given) == {x}
  assert [v.full_name for v in mesh.graph.all_variables] == ["w"]
  np.testing.assert_allclose(
    value(mapping[y] - w * noise), np.zeros([4]), atol=1e-6
  )
  assert len(copies) == len(ops) - 2


# Assignments.


def test_assignments_that_do_the_same_become_one():
  mesh = new_mesh()
  ws = [mtf.get_variable(mesh, n, "a:4", initializer=1.0) for n in "uvw"]
  ops = [
    mtf.assign(ws[0], ws[1] * 3),
    mtf.assign_sub(ws[1], ws[1]),
    mtf.assign(ws[2], ws[1] * 5),
  ]
  combined = mesh.graph.combine_assignments(ops)
  assert [[v.name for v in op.variables] for op in combined] == [
    ["u", "w"],
    ["v"],
  ]
  assert not set(ops) & set(mesh.graph.operations)
  impl = VirtualMeshImpl("x:2", "a:x")
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  for op in combined:
    lowering.lowered_operation(op)
  got = {n: float(v.read().value[0, 0]) for n, v in impl.variable_store.items()}
  assert got == {"u": 3.0, "v": 0.0, "w": 5.0}


# Stacks.


def three(mesh, **kwargs):
  return [
    mtf.get_variable(
      mesh,
      f"w{i}",
      "a:4 b:2",
      initializer=mtf.initializers.RandomNormal(),
      **kwargs,
    )
    for i in range(3)
  ]


def names(graph):
  return [v.full_name for v in graph.all_variables]


def test_variables_that_are_alike_are_one_in_the_graph_and_three_outside():
  mesh = new_mesh()
  ws = three(mesh)
  total = mtf.add_n(ws)
  before = value(total)
  mesh.graph.rewrite_stack_variables()
  (stack,) = mesh.graph.all_variables
  assert isinstance(stack, mtf.StackedVariable)
  assert stack.full_name == "stacked/w0"
  assert stack.original_names == ["w0", "w1", "w2"]
  assert stack.shape == mtf.convert_to_shape("stacked:3 a:4 b:2")
  assert mesh.graph.trainable_variables == [stack]
  impl = VirtualMeshImpl("x:2", "a:x")
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  whole = lowering.export_to_tf_tensor(stack.value).numpy()
  np.testing.assert_array_equal(whole.sum(0), before)
  for i, w in enumerate(ws):
    np.testing.assert_array_equal(lowering.export_to_tf_tensor(w), whole[i])
  assert set(impl.variable_store) == {"w0", "w1", "w2"}


def test_a_graph_can_be_rewritten_and_lowered_again():
  mesh = new_mesh()
  total = mtf.add_n(three(mesh))
  impl = VirtualMeshImpl("x:2", "a:x")
  before = value(total, impl)
  for _ in range(2):
    mesh.graph.rewrite_stack_variables(mesh_to_impl={mesh: impl})
    np.testing.assert_array_equal(value(total, impl), before)
  assert names(mesh.graph) == ["stacked/w0"]
  three(mesh)
  assert names(mesh.graph) == ["stacked/w0"]


def test_assignments_to_stacked_variables_go_on():
  mesh = new_mesh()
  ws = three(mesh)
  sgd = mtf.optimize.SgdOptimizer(1.0)
  updates = mesh.graph.combine_assignments(
    sgd.apply_grads([mtf.ones_like(w) for w in ws], ws)
  )
  assert len(updates) == 1
  mesh.graph.rewrite_stack_variables()
  assert names(mesh.graph) == ["stacked/w0"]
  impl = VirtualMeshImpl("x:2", "a:x")
  before = [value(w, impl) for w in ws]
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  lowering.lowered_operation(updates[0])
  for w, old in zip(ws, before, strict=True):
    np.testing.assert_allclose(value(w, impl), old - 1.0, rtol=1e-6)


def test_what_is_not_alike_stays_apart():
  mesh = new_mesh()
  three(mesh)
  mtf.get_variable(mesh, "other", "b:2 a:4")
  mtf.get_variable(mesh, "fixed", "a:4 b:2", trainable=False)
  mtf.get_variable(mesh, "narrow", "a:4 b:2", tf.bfloat16)
  assigned = mtf.get_variable(mesh, "assigned", "a:4 b:2")
  mtf.assign(assigned, assigned * 2)
  mesh.graph.rewrite_stack_variables()
  assert set(names(mesh.graph)) == {
    "stacked/w0", "other", "fixed", "narrow", "assigned"
  }  # fmt: skip


@pytest.mark.parametrize(
  ("limits", "impl", "want"),
  [
    ({"max_combined_variable_size": 16}, TWO, ["stacked/w0", "w2"]),
    ({"max_combined_variable_size": 8}, TWO, ["w0", "w1", "w2"]),
    ({"max_combined_variable_size": 7}, TWO, ["w0", "w1", "w2"]),
    ({"max_combined_slice_size": 8}, TWO, ["stacked/w0", "w2"]),
    ({"max_combined_slice_size": 8}, None, ["w0", "w1", "w2"]),
    ({}, VirtualMeshImpl("", ""), ["w0", "w1", "w2"]),
  ],
)
def test_stacks_have_limits_and_need_several_processors(limits, impl, want):
  mesh = new_mesh()
  three(mesh)
  mesh.graph.rewrite_stack_variables(
    mesh_to_impl=impl and {mesh: impl}, **limits
  )
  assert names(mesh.graph) == want


def test_a_checkpoint_of_a_stack_has_the_names_of_its_variables(tmp_path):
  def train(mesh):
    ws = three(mesh)
    mtf.optimize.SgdOptimizer(1.0).apply_grads(ws, ws)
    if rewrite:
      mesh.graph.combine_assignments(
        [op for op in mesh.graph.operations if isinstance(op, mtf.Assign)]
      )
      mesh.graph.rewrite_stack_variables()
    return mtf.add_n(ws)

  saved = []
  for rewrite in (False, True):
    program = mtf.Program("x:2", "a:x")
    program.function(train)()
    program.save(str(tmp_path / f"ckpt-{rewrite}"))
    reader = tf.train.load_checkpoint(str(tmp_path / f"ckpt-{rewrite}"))
    shapes = reader.get_variable_to_shape_map()
    saved.append({n: reader.get_tensor(n) for n in shapes})
  assert set(saved[0]) == set(saved[1])
  assert {"w0", "w1", "w2"} < set(saved[0])
  for name, array in saved[0].items():
    np.testing.assert_array_equal(saved[1][name], array, err_msg=name)


def test_a_lowering_stacks_the_variables_of_its_graph():
  mesh = new_mesh()
  total = mtf.add_n(three(mesh))
  impl = VirtualMeshImpl("x:2", "a:x")
  mtf.Lowering(mesh.graph, {mesh: impl}).autostack()
  assert names(mesh.graph) == ["stacked/w0"]
  assert value(total, impl).shape == (4, 2)
