"""A graph as text."""

import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.core.pretty import to_text

from tests.support.running import new_mesh


def program(mesh, activation=mtf.relu):
  x = mtf.import_tf_tensor(mesh, tf.zeros([4, 8]), "batch:4 d_model:8")
  with tf.compat.v1.variable_scope("layer"):
    dtype = mtf.VariableDType(tf.float32, tf.float32, tf.bfloat16)
    w = mtf.get_variable(mesh, "w", "d_model:8 d_ff:16", dtype)
    step = mtf.get_variable(mesh, "step", [], tf.int32, trainable=False)
  h = mtf.einsum([x, mtf.to_float(w)], "batch:4 d_ff:16", name="hidden")
  h = activation(h)
  mtf.barrier([h, x], [w])
  mtf.assign_add(step, mtf.ones_like(step))


def test_variables_come_first_and_every_operation_has_a_line():
  mesh = new_mesh()
  program(mesh)
  assert to_text(mesh.graph).splitlines() == [
    "variables",
    "  layer/w: bfloat16[d_model:8 d_ff:16] trainable, kept in float32",
    "  layer/step: int32[] untrainable, kept in int32",
    "operations",
    "  import: import() -> float32[batch:4 d_model:8]",
    "  to_float: cast(layer/w) -> float32[d_model:8 d_ff:16]",
    "  hidden: einsum(import, to_float) -> float32[batch:4 d_ff:16]",
    "  relu: relu(hidden) -> float32[batch:4 d_ff:16]",
    "  barrier: barrier(relu, import, layer/w) -> "
    "float32[batch:4 d_ff:16], float32[batch:4 d_model:8]",
    "  constant: constant() -> int32[]",
    "  assign: assign(constant) to layer/step",
  ]


def test_it_is_what_a_graph_prints():
  mesh = new_mesh()
  program(mesh)
  assert str(mesh.graph) == mesh.graph.to_string == to_text(mesh.graph)


def test_two_programs_that_differ_in_one_operation_differ_in_few_lines():
  texts = []
  for activation in (mtf.relu, mtf.swish):
    mesh = new_mesh()
    program(mesh, activation)
    texts.append(to_text(mesh.graph).splitlines())
  one, other = map(set, texts)
  assert one - other == {
    "  relu: relu(hidden) -> float32[batch:4 d_ff:16]",
    "  barrier: barrier(relu, import, layer/w) -> "
    "float32[batch:4 d_ff:16], float32[batch:4 d_model:8]",
  }


def test_one_of_several_outputs_is_named_with_its_number():
  mesh = new_mesh()
  x = mtf.zeros(mesh, "a:4")
  _, y = mtf.barrier([x, x], [])
  mtf.relu(y)
  assert "relu(barrier:1)" in to_text(mesh.graph)


def test_an_empty_graph_is_an_empty_text():
  assert to_text(mtf.Graph()) == ""
