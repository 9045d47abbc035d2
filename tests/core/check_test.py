"""Well-formed graphs pass; each kind of mistake is found and shown."""

import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.core.check import GraphError, check_graph

from tests.support.running import new_mesh


def program(mesh):
  """A program with a loop, gradients, an optimizer and several outputs."""
  x = mtf.import_tf_tensor(mesh, tf.zeros([4, 8]), "batch:4 d_model:8")
  w = mtf.get_variable(mesh, "w", "d_model:8 d_ff:6")
  h = mtf.recompute_grad(lambda x: mtf.relu(mtf.einsum([x, w])), [x])
  (h,) = mtf.while_loop(
    lambda h: mtf.less(mtf.reduce_sum(h), 9.0), lambda h: [h + 1.0], [h]
  )[:1]
  ys = mtf.barrier([w, x], [h])
  grads = mtf.gradients([mtf.reduce_sum(mtf.square(ys[0]))], [w])
  mtf.optimize.MomentumOptimizer(0.1, 0.9).apply_grads(grads, [w])
  return x, w, h


def test_a_sound_graph_passes():
  mesh = new_mesh()
  program(mesh)
  check_graph(mesh.graph)
  check_graph(mtf.Graph())


def test_an_input_that_is_made_later_is_found():
  mesh = new_mesh()
  x, _, _ = program(mesh)
  operations = mesh.graph.operations
  operations.remove(x.operation)
  operations.append(x.operation)
  with pytest.raises(GraphError, match=r"reads import:0: .* no operation be"):
    check_graph(mesh.graph)


def test_an_input_that_was_detached_is_found():
  mesh = new_mesh()
  x, _, _ = program(mesh)
  mesh.graph.detach([x.operation])
  with pytest.raises(GraphError, match="reads import:0"):
    check_graph(mesh.graph)


def test_a_tensor_from_inside_a_loop_is_found():
  mesh = new_mesh()
  inner = []

  def body(x):
    inner.append(x + 1.0)
    return inner

  x = mtf.zeros(mesh, [])
  mtf.while_loop(lambda x: mtf.less(x, 9.0), body, [x])
  mtf.relu(inner[0])
  with pytest.raises(GraphError, match="relu: reads scalar_add:0"):
    check_graph(mesh.graph)


def test_two_operations_of_one_name_are_found():
  mesh = new_mesh()
  x, _, _ = program(mesh)
  y = mtf.relu(x)
  y.operation._name = "import"
  with pytest.raises(GraphError, match="operation 0 has the same name"):
    check_graph(mesh.graph)


def test_an_output_that_another_operation_claims_is_found():
  mesh = new_mesh()
  x, _, _ = program(mesh)
  y = mtf.relu(x)
  y.operation._outputs = [x]
  with pytest.raises(GraphError, match="says that import made it"):
    check_graph(mesh.graph)


def test_an_output_of_another_dtype_than_the_inputs_make_is_found():
  mesh = new_mesh()
  x = mtf.zeros(mesh, "a:4")
  y = mtf.relu(x)
  y.operation._inputs[0] = mtf.zeros(mesh, "a:4", tf.bfloat16)
  operations = mesh.graph.operations
  operations[1], operations[2] = operations[2], operations[1]
  with pytest.raises(GraphError) as error:
    check_graph(mesh.graph)
  assert str(error.value).splitlines() == [
    "relu: its outputs are [float32[a:4]], its inputs make [bfloat16[a:4]]",
    "  0  constant: constant() -> float32[a:4]",
    "  1  constant_1: constant() -> bfloat16[a:4]",
    "> 2  relu: relu(constant_1) -> float32[a:4]",
  ]


def test_inputs_that_the_primitive_refuses_are_found():
  mesh = new_mesh()
  x, y = mtf.zeros(mesh, "a:4"), mtf.zeros(mesh, "b:4")
  z = mtf.reduce_sum(x, output_shape=[])
  w = mtf.einsum([x, y], "a:4 b:4")
  w.operation._inputs[1] = x
  mtf.relu(z)
  with pytest.raises(GraphError, match=r"its inputs do not fit: einsum cannot"):
    check_graph(mesh.graph)


def test_a_variable_under_another_name_is_found():
  mesh = new_mesh()
  program(mesh)
  graph = mesh.graph
  graph.name_to_variable["v"] = graph.name_to_variable.pop("w")
  with pytest.raises(GraphError, match="variable w is listed under the name v"):
    check_graph(graph)


def test_a_variable_that_was_detached_is_found():
  mesh = new_mesh()
  w = mtf.get_variable(mesh, "w", "a:4")
  mesh.graph.detach([w.operation])
  with pytest.raises(GraphError, match="w is not among the operations"):
    check_graph(mesh.graph)
