"""Counts of FLOPs, memory and communication, against numbers by hand."""

import resource
import sys

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd.cost import build_graph, program_cost, variable_cost
from mesh_tf2.spmd.counting import CountingMeshImpl, unknown
from mesh_tf2.spmd.placement import PlacementMeshImpl
from mesh_tf2.spmd.virtual import VirtualMeshImpl

from tests.support.running import new_mesh

B, D, H = 64, 32, 128
Batch, Io, Hidden = ("b", B), ("d", D), ("h", H)


def two_layers(mesh, x, dy, wanted=("w", "v")):
  """y = relu(x w) v of Shazeer et al., 2018, and gradients from dy."""
  x = mtf.import_tf_tensor(mesh, x, [Batch, Io])
  dy = mtf.import_tf_tensor(mesh, dy, [Batch, Io])
  w = mtf.get_variable(mesh, "w", [Io, Hidden])
  v = mtf.get_variable(mesh, "v", [Hidden, Io])
  h = mtf.relu(mtf.einsum([x, w], [Batch, Hidden]))
  y = mtf.einsum([h, v], [Batch, Io])
  named = {"x": x, "w": w, "v": v}
  return y, mtf.gradients([y], [named[n] for n in wanted], [dy])


INPUTS = [tf.TensorSpec([B, D])] * 2


def sent(cost, **wanted):
  """All elements that a processor reduces, or those over some dimensions."""
  return sum(
    c.elements
    for c in cost.collectives
    if all(getattr(c, k) == v for k, v in wanted.items())
  )


@pytest.mark.parametrize(
  ("mesh", "layout", "weights_only", "inputs_too"),
  [
    ("all:8", "b:all", 2 * D * H, 2 * D * H),
    ("all:8", "h:all", B * D, 2 * B * D),
    (
      "rows:4;cols:2",
      "b:rows;h:cols",
      B // 4 * D + 2 * D * H // 2,
      2 * (B // 4 * D) + 2 * D * H // 2,
    ),
    ("", "", 0, 0),
  ],
  ids=["data-parallel", "model-parallel", "both", "one processor"],
)
def test_the_papers_network_communicates_what_the_paper_says(
  mesh, layout, weights_only, inputs_too
):
  program = mtf.Program(mesh, layout)
  assert sent(program.cost(two_layers, *INPUTS)) == weights_only
  both = program.cost(two_layers, *INPUTS, wanted=("x", "w", "v"))
  assert sent(both) == inputs_too
  assert {c.kind for c in both.collectives} <= {"allreduce"}


def test_each_kind_of_communication_has_its_row():
  program = mtf.Program("rows:4;cols:2", "b:rows;h:cols")
  cost = program.cost(two_layers, *INPUTS)
  assert [
    (c.kind, c.mesh_dims, c.dtype, c.count) for c in cost.collectives
  ] == [
    ("allreduce", ("cols",), tf.float32, 1),
    ("allreduce", ("rows",), tf.float32, 2),
  ]
  assert sent(cost, mesh_dims=("cols",)) == B // 4 * D
  assert [c.bytes for c in cost.collectives] == [
    4 * c.elements for c in cost.collectives
  ]


@pytest.mark.parametrize(
  ("mesh", "layout", "share"),
  [
    ("", "", 1),
    ("all:8", "b:all", 8),
    ("all:8", "h:all", 8),
    ("rows:4;cols:2", "b:rows;h:cols", 8),
    ("rows:4;cols:2", "b:rows", 4),
  ],
)
def test_einsums_count_twice_and_the_rest_once_a_point(mesh, layout, share):
  cost = mtf.Program(mesh, layout).cost(two_layers, *INPUTS)
  matmuls = 5 * 2 * B * D * H
  # relu; and for its gradient: a comparison, a cast, a product.
  elementwise = 4 * B * H
  assert cost.flops == matmuls + elementwise
  assert cost.flops_per_processor * share == cost.flops


def test_memory_is_that_of_one_processors_slices():
  program = mtf.Program("rows:4;cols:2", "b:rows;h:cols")
  cost = program.cost(two_layers, *INPUTS)
  assert cost.parameters == 2 * D * H
  assert cost.variables.parameters_per_processor == D * H
  assert cost.variables.bytes == 4 * 2 * D * H
  assert cost.variables.bytes_per_processor == 4 * D * H
  outer = 3 * B * D // 4  # x, dy, y
  hidden = 5 * B * H // 8  # two values, two gradients, the cast comparison
  weights = 2 * D * H // 2  # gradients
  bools = B * H // 8
  zero = 4  # what the comparison is with
  assert cost.activation_bytes_per_processor == (
    4 * (outer + hidden + weights) + bools + zero
  )


def test_it_prints_as_a_table():
  cost = mtf.Program("rows:4;cols:2", "b:rows;h:cols").cost(two_layers, *INPUTS)
  assert str(cost).splitlines() == [
    "mesh [rows:4 cols:2]      whole  per processor",
    "parameters                8,192          4,096",
    "variables, bytes         32,768         16,384",
    "activations, bytes                      44,036",
    "FLOPs                 2,654,208        331,776",
    "",
    "communication per processor   times  elements   bytes",
    "allreduce over cols, float32      1       512   2,048",
    "allreduce over rows, float32      2     4,096  16,384",
  ]
  alone = mtf.Program().cost(two_layers, *INPUTS)
  assert str(alone).endswith("\nno communication")


def train(mesh, x, rate=0.1):
  """Much of the language: random numbers, reshapes, an optimizer, effects."""
  x = mtf.import_tf_tensor(mesh, x, [Batch, Io])
  w = mtf.get_variable(mesh, "w", [Io, Hidden])
  h = mtf.recompute_grad(lambda x: mtf.tanh(mtf.einsum([x, w])), [x])
  h = mtf.dropout(h, True, rate=rate)
  # The mesh dimension of the batch moves to another dimension, and back.
  h = mtf.reshape(h, [("whole", B), ("b", H)])
  h = mtf.reshape(mtf.tanh(h), [Batch, Hidden])
  mtf.Print(h, [h], "hidden")
  loss = mtf.reduce_mean(mtf.square(h))
  grads = mtf.gradients([loss], [w])
  mtf.optimize.AdafactorOptimizer().apply_grads(grads, [w])
  return {"loss": loss}


def real_collectives(build, mesh_impl, x):
  """What a mesh that computes records, in the rows of a Cost."""
  mesh = new_mesh()
  mesh.graph.step = tf.constant(0, tf.int64)
  results = tf.nest.flatten(build(mesh, x))
  lowering = mtf.Lowering(mesh.graph, {mesh: mesh_impl})
  for y in results:
    lowering.export_to_tf_tensor(y)
  rows = {}
  for _, e in lowering.collectives:
    dims = tuple(mesh_impl.shape[a].name for a in e.mesh_axes)
    key = e.kind, dims, e.dtype
    count, elements = rows.get(key, (0, 0))
    rows[key] = count + 1, elements + e.elements
  return rows


def rows_of(cost):
  return {
    (c.kind, c.mesh_dims, c.dtype): (c.count, c.elements)
    for c in cost.collectives
  }


@pytest.mark.parametrize("layout", ["b:x", "b:x;h:y", "d:x;h:y", "b:y;whole:x"])
def test_the_counts_are_those_of_a_mesh_that_computes(layout, capfd):
  x = tf.ones([B, D])
  program = mtf.Program("x:2;y:4", layout)
  counted = rows_of(program.cost(train, x))
  for impl in (
    VirtualMeshImpl("x:2;y:4", layout),
    PlacementMeshImpl("x:2;y:4", layout, [""] * 8),
  ):
    assert counted == real_collectives(train, impl, x)
  assert "hidden" in capfd.readouterr().err
  if layout == "b:x;h:y":
    assert {kind for kind, _, _ in counted} > {"allreduce"}


@pytest.mark.parametrize(
  "instruction",
  [
    "allreduce",
    "allconcat",
    "alltoall",
    "shift",
    "permute",
    "reduce_scatter",
  ],
)
def test_collectives_have_the_shapes_that_a_mesh_gives_them(instruction):
  def communicate(impl, value):
    x = impl.import_tensor(value, mtf.convert_to_shape("a:8 c:12"))
    seen = []
    with impl.observed(seen.append):
      y = {
        "allreduce": lambda: impl.allreduce(x, [0], "MAX"),
        "allconcat": lambda: impl.allconcat(x, 0, 0),
        "alltoall": lambda: impl.alltoall(x, 0, 1, 0),
        "shift": lambda: impl.shift(x, 0, 1, wrap=True),
        "permute": lambda: impl.permute(x, [3, 2, 1, 0], [0, 1, 1, 0], [0]),
        "reduce_scatter": lambda: impl.reduce_scatter(x, 0, 1),
      }[instruction]()
    return impl.slice_sizes(y), impl.dtype(y), seen

  want = communicate(VirtualMeshImpl("x:4", "a:x"), tf.zeros([8, 12]))
  with tf.Graph().as_default():
    impl = CountingMeshImpl("x:4", "a:x")
    assert communicate(impl, unknown(tf.float32, [8, 12])) == want


def relaid(mesh, x):
  """A sum that is scattered, mesh dimensions that trade places, and back."""
  x = mtf.import_tf_tensor(mesh, x, [Batch, Io])
  total = mtf.reduce_sum(mtf.exp(x), output_shape=[Io])
  scattered = mtf.reshape(total, [("e", 4), ("scattered", D // 4)])
  traded = mtf.reshape(x, [("p", B), ("q", D)])
  return [scattered, mtf.exp(traded), mtf.transpose(traded, "q:32 p:64")]


def test_what_is_scattered_or_permuted_is_counted_as_such():
  layout = "b:x;d:y;p:y;q:x;e:y;scattered:x"
  cost = mtf.Program("x:2;y:2", layout).cost(relaid, INPUTS[0])
  for kind in (VirtualMeshImpl, PlacementMeshImpl):
    devices = [[""] * 4] if kind is PlacementMeshImpl else []
    impl = kind("x:2;y:2", layout, *devices)
    assert rows_of(cost) == real_collectives(relaid, impl, tf.ones([B, D]))
  assert "permute over x y, float32 " in str(cost)
  assert rows_of(cost)["reduce_scatter", ("x",), tf.float32] == (1, D // 4)


def test_arrays_tensors_and_specs_cost_the_same():
  program = mtf.Program("x:2", "b:x")
  step = program.function(train)
  costs = [
    program.cost(fn, x)
    for fn in (train, step)
    for x in (
      np.zeros([B, D], np.float32),
      tf.zeros([B, D]),
      tf.TensorSpec([B, D]),
    )
  ]
  assert len(set(costs)) == 1
  assert costs[0] == program.cost(step, x=tf.TensorSpec([B, D]), rate=0.5)


def test_counting_neither_makes_variables_nor_steps():
  program = mtf.Program("x:2", "b:x")
  step = program.function(train)
  program.cost(step, tf.TensorSpec([B, D]))
  assert not program.variables
  assert program.step.numpy() == 0
  step(tf.ones([B, D]))
  assert program.step.numpy() == 1
  program.cost(step, tf.TensorSpec([B, D]))
  assert program.step.numpy() == 1


def test_what_a_function_closes_over_may_have_values():
  rate, scale = tf.constant(0.1), tf.Variable(2.0)

  def fn(mesh, x):
    y = mtf.import_tf_tensor(mesh, x, [Batch, Io])
    w = mtf.get_variable(mesh, "w", [Io])
    y = mtf.multiply(y, scale.read_value())
    grads = mtf.gradients([mtf.einsum([y, w], [Batch])], [w])
    mtf.optimize.SgdOptimizer(rate).apply_grads(grads, [w])
    return ()

  cost = mtf.Program("x:2", "b:x").cost(fn, INPUTS[0])
  assert sent(cost) == D


def test_a_result_that_nobody_wants_costs_nothing():
  def fn(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [Batch, Io])
    mtf.reduce_sum(mtf.exp(x))
    return x

  cost = mtf.Program("x:2", "b:x").cost(fn, INPUTS[0])
  assert (cost.flops, cost.collectives) == (0, ())


def test_a_mesh_dimension_of_one_processor_carries_no_traffic():
  cost = mtf.Program("x:1;y:2", "b:x;d:y").cost(
    lambda mesh, x: mtf.reduce_sum(mtf.import_tf_tensor(mesh, x, [Batch, Io])),
    INPUTS[0],
  )
  assert rows_of(cost) == {("allreduce", ("x", "y"), tf.float32): (1, 1)}
  cost = mtf.Program("x:1", "b:x").cost(two_layers, *INPUTS)
  assert cost.collectives == ()


def test_a_loop_counts_for_one_round_and_its_accumulators_are_sent_once():
  def fn(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [Batch, Io])
    _, total = mtf.while_loop(
      lambda n: mtf.less(n, 5),
      lambda n: [n + 1, mtf.reduce_sum(mtf.exp(x))],
      [mtf.constant(mesh, 0, dtype=tf.int32)],
      has_accumulators=True,
    )
    return total

  cost = mtf.Program("x:2", "b:x").cost(fn, INPUTS[0])
  assert rows_of(cost) == {("allreduce", ("x",), tf.float32): (1, 1)}
  assert cost.flops == 2 * B * D + 2  # and the comparison and n + 1


class Repeated(mtf.Operation):
  """Runs an exponential and its sum over the batch three times."""

  max_rounds = 3

  def __init__(self, x):
    super().__init__([x], name="repeated")
    graph = x.graph
    y, self.inner = graph.capture_operations(
      lambda: mtf.identity(mtf.reduce_sum(mtf.exp(x)))
    )
    graph.detach(self.inner)
    self._outputs = [mtf.Tensor(self, y.shape, y.dtype)]

  def lower(self, lowering):
    lowering.run(self.inner)
    y = self.inner[-1].outputs[0]
    lowering.set_tensor_lowering(self.outputs[0], lowering.slices(y))


def test_operations_that_say_how_often_they_run_others_count_as_often():
  def fn(mesh, x):
    return Repeated(mtf.import_tf_tensor(mesh, x, [Batch, Io])).outputs[0]

  cost = mtf.Program("x:2", "b:x").cost(fn, INPUTS[0])
  assert rows_of(cost) == {("allreduce", ("x",), tf.float32): (3, 3)}
  assert cost.flops == 3 * (2 * B * D + 1)


def test_an_impossible_layout_is_an_error():
  program = mtf.Program("x:3", "b:x")
  with pytest.raises(mtf.LayoutError, match="64 is not divisible by 3"):
    program.cost(two_layers, *INPUTS)


def huge(mesh, x, layers=40):
  """Five billion parameters, and slots for as many."""
  model, ff = mtf.Dimension("d", 1024), mtf.Dimension("h", 65536)
  x = mtf.import_tf_tensor(mesh, x, [Batch, model])
  dtype = mtf.VariableDType(tf.bfloat16, tf.float32, tf.bfloat16)
  for i in range(layers):
    with tf.compat.v1.variable_scope(f"layer_{i}"):
      w = mtf.get_variable(mesh, "w", [model, ff], dtype)
      v = mtf.get_variable(mesh, "v", [ff, model], dtype)
    h = mtf.relu(mtf.einsum([x, w], [Batch, ff]))
    x += mtf.einsum([h, v], [Batch, model])
  loss = mtf.reduce_sum(mtf.square(mtf.to_float(x)))
  variables = mesh.graph.trainable_variables
  grads = mtf.gradients([loss], [v.value for v in variables])
  mtf.optimize.AdamWeightDecayOptimizer(0.1).apply_grads(grads, variables)
  return loss


def peak_memory():
  """Of this process, in bytes."""
  unit = 1 if sys.platform == "darwin" else 1024
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def test_a_model_of_billions_is_counted_without_allocating_it():
  before = peak_memory()
  spec = tf.TensorSpec([B, 1024], tf.bfloat16)
  parameters = 40 * 2 * 1024 * 65536
  graph = build_graph(huge, spec)
  split = VirtualMeshImpl("all:512", "h:all")
  alone, shared = variable_cost(graph), variable_cost(graph, split)
  assert alone.parameters == alone.parameters_per_processor == parameters
  assert shared.parameters == parameters
  assert shared.parameters_per_processor == parameters // 512
  assert alone.bytes == shared.bytes == 3 * 4 * parameters
  assert shared.bytes_per_processor == 3 * 4 * parameters // 512
  assert "5,368,709,120 parameters (10,485,760 per processor)" in str(shared)
  cost = program_cost(huge, split, [spec], {"layers": 2})
  assert cost.parameters == parameters // 20
  assert {c.dtype for c in cost.collectives} == {tf.bfloat16}
  assert peak_memory() - before < 2**30


def test_a_bfloat16_variable_counts_in_the_dtype_in_which_it_is_kept():
  mesh = new_mesh()
  dtype = mtf.VariableDType(tf.float32, tf.bfloat16, tf.float32)
  mtf.get_variable(mesh, "w", [Io], dtype)
  mtf.get_variable(mesh, "n", [], tf.int64, trainable=False)
  cost = variable_cost(mesh.graph)
  assert (cost.parameters, cost.bytes) == (D, 2 * D + 8)
