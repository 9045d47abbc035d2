"""One program for all processors: what it receives, and what it is made of."""

import collections

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import SIMD, mirrored, setting

IO, HIDDEN = mtf.Dimension("io", 4), mtf.Dimension("hidden", 8)


def make_step(processors):
  """A step of a small network, one program for each processor."""
  program = mtf.Program(
    f"x:{processors}", "batch:x", strategy=mirrored(processors)
  )
  batch = mtf.Dimension("batch", 8)

  @program.function
  def step(mesh, images):
    x = mtf.import_tf_tensor(mesh, images, [batch, IO])
    w = mtf.get_variable(mesh, "w", [IO, HIDDEN])
    y = mtf.dropout(mtf.relu(mtf.einsum([x, w], [batch, HIDDEN])), True, 0.5)
    loss = mtf.reduce_mean(mtf.square(y))
    variables = mesh.graph.trainable_variables
    grads = mtf.gradients([loss], [v.value for v in variables])
    mtf.optimize.AdamOptimizer(0.1).apply_grads(grads, variables)
    return loss

  return step


def operations(function):
  spec = tf.TensorSpec([8, 4], tf.float32)
  graph = function.tf_function.get_concrete_function(spec).graph
  return graph.get_operations()


def test_the_program_of_a_processor_is_as_large_on_eight_as_on_two():
  counts = []
  for processors in (2, 8):
    by_replica = collections.Counter(
      op.name.split("/")[0]
      for op in operations(make_step(processors))
      if op.name.startswith("replica_")
    )
    by_replica = {n: c for n, c in by_replica.items() if "/" not in n and c > 9}
    assert len(by_replica) == processors - 1  # the first one has no prefix
    counts.append(set(by_replica.values()))
  assert counts[0] == counts[1]
  assert len(counts[0]) == 1


def test_no_more_than_its_slice_of_a_batch_goes_to_a_device():
  every = operations(make_step(4))
  sliced = [op for op in every if op.type == "Slice"]
  assert len(sliced) == 4
  for op in sliced:
    assert op.device.endswith("CPU:0")
    assert op.outputs[0].shape == [2, 4]
  readers = [
    op
    for op in every
    if any(x.shape.rank and x.shape.as_list() == [8, 4] for x in op.inputs)
  ]
  assert {op.type for op in readers if "CPU:0" not in op.device} <= {"Identity"}


def test_no_replica_holds_more_of_a_variable_than_its_slice():
  program = mtf.Program("x:4", "hidden:x", strategy=mirrored(4))

  @program.function
  def total(mesh):
    return mtf.reduce_sum(mtf.get_variable(mesh, "w", [IO, HIDDEN]))

  first = float(total())
  held = program.store["w"].read()
  assert {tuple(x.shape) for x in held.by_number.values()} == {(4, 2)}
  whole = program.variables["w"].numpy()
  assert whole.shape == (4, 8)
  assert first == pytest.approx(whole.sum(), rel=1e-5)


def test_an_error_inside_a_function_does_not_upset_the_next_one():
  program = mtf.Program("x:2", "batch:x", strategy=mirrored(2))
  batch = mtf.Dimension("batch", 4)

  def build(mesh, x, wrong):
    x = mtf.import_tf_tensor(mesh, x, [batch])
    total = mtf.reduce_sum(x) * 1.0
    if wrong:
      raise ValueError("not like this")
    return total + mtf.reduce_max(x)

  x = np.arange(4.0, dtype=np.float32)
  with pytest.raises(ValueError, match="not like this"):
    program.function(lambda mesh, x: build(mesh, x, True))(x)
  assert float(program.function(lambda m, x: build(m, x, False))(x)) == 9


def test_the_devices_of_processors_are_those_of_the_replicas():
  devices = setting("x:2;y:2", "", SIMD).impl.devices
  assert [tf.DeviceSpec.from_string(d).device_index for d in devices] == [
    0, 1, 2, 3,
  ]  # fmt: skip


def test_replicas_and_processors_must_be_as_many():
  with pytest.raises(
    mtf.LayoutError, match=r"x:4\] has 4 processors, but Mirrored.* has 2 rep"
  ):
    mtf.Program("x:4", strategy=mirrored(2))
  with pytest.raises(ValueError, match="devices or a strategy, not both"):
    mtf.Program("x:2", devices=["", ""], strategy=mirrored(2))


def test_a_variable_inside_ones_own_strategy_run_is_told_the_way():
  program = mtf.Program("x:2", strategy=mirrored(2))
  impl = program.mesh_impl

  @tf.function(autograph=False)
  def own():
    def replica():
      mesh = mtf.Mesh(mtf.Graph(), "mesh")
      w = mtf.get_variable(mesh, "w", [IO])
      return mtf.Lowering(mesh.graph, {mesh: impl}).export_to_tf_tensor(w)

    return impl.run(replica)

  with pytest.raises(mtf.VariableError, match="which makes its variables firs"):
    own()


def test_a_replica_on_a_device_that_is_not_there_is_told():
  strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:99"])
  with pytest.raises(mtf.LayoutError, match=r"no device .*CPU:99"):
    mtf.Program("x:2", "a:x", strategy=strategy)


def test_a_program_of_replicas_is_not_compiled_by_xla():
  program = mtf.Program("x:2", strategy=mirrored(2))
  with pytest.raises(ValueError, match="jit_compile=True: what the replicas"):
    program.function(lambda mesh: mtf.zeros(mesh, "a:2"), jit_compile=True)
