"""The TPU's own compiler: what it says of small programs, and its errors."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from tests_tpu.cores import numbers

BATCH, D, HIDDEN = (
  mtf.Dimension(n, s) for n, s in (("batch", 512), ("d", 256), ("hidden", 1024))
)


def training_step(mesh, x, y):
  x, y = (mtf.import_tf_tensor(mesh, t, [BATCH, D]) for t in (x, y))
  w1 = mtf.get_variable(mesh, "w1", [D, HIDDEN])
  w2 = mtf.get_variable(mesh, "w2", [HIDDEN, D])
  h = mtf.relu(mtf.einsum([x, w1], [BATCH, HIDDEN]))
  loss = mtf.reduce_mean(mtf.square(mtf.einsum([h, w2], [BATCH, D]) - y))
  grads = mtf.gradients([loss], [w1, w2])
  mtf.optimize.SgdOptimizer(0.1).apply_grads(
    grads, mesh.graph.trainable_variables
  )
  return loss


def compiled(topology, mesh="rows:2;cols:4", fn=training_step):
  program = mtf.Program(mesh, "batch:rows;hidden:cols")
  spec = tf.TensorSpec([512, 256], tf.float32)
  report = mtf.tpu.compile(program, fn, spec, spec, topology=topology)
  assert not program.variables
  return report


@pytest.mark.parametrize(
  "topology", ["v2:2x2x1", "v3:2x2x1", "v4:2x2x1", "v5e:2x4"]
)
def test_a_report_counts_what_can_be_counted_by_hand(topology):
  report = compiled(topology)
  x, w = 512 // 2 * 256, 256 * 1024 // 4
  # Five products of batch, d and hidden: two forward, three backward.
  products = 5 * 2 * 512 * 256 * 1024 / 8
  assert report.model_flops == pytest.approx(products, rel=0.02)
  assert report.flops == pytest.approx(products, rel=0.05)
  assert report.argument_bytes >= 4 * (2 * x + 2 * w)
  assert report.argument_bytes < 4 * (2 * x + 2 * w) * 1.1
  assert report.output_bytes == pytest.approx(4 * 2 * w, rel=0.1)
  assert report.fits and 0 < report.compute_seconds < 1e-3
  assert 0 < report.optimal_seconds < 1e-3
  assert 0 < report.utilization_with_links < report.utilization < 1
  sent = {(c.kind, c.mesh_dims): c.bytes for c in report.collectives}
  gradients = 4 * 2 * w + 4
  assert sent["all-reduce", ("rows",)] == pytest.approx(gradients, rel=0.01)
  assert sent["all-reduce", ("cols",)] == pytest.approx(4 * x, rel=0.01)
  assert len(sent) <= 3  # the loss goes over both axes


def test_sums_of_64_bit_numbers_and_permutes_compile():
  def mixed(mesh, x, y):
    x = mtf.import_tf_tensor(mesh, x, [BATCH, D])
    long = mtf.cast(x, tf.int64)
    flags = mtf.greater(x, 0)
    return (
      mtf.reduce_sum(long),
      mtf.reduce_max(long, output_shape=[D]),
      mtf.shift(long, 1, BATCH, True),
      mtf.cast(mtf.shift(flags, 1, BATCH, True), tf.int32),
      mtf.random_normal(mesh, [BATCH, D]),
    )

  kinds = {c.kind for c in compiled("v2:2x2x1", fn=mixed).collectives}
  assert "collective-permute" in kinds


def test_an_input_that_is_changed_before_it_is_imported_compiles():
  def changed(mesh, x, y):
    shape = mtf.Shape([("batch", 512), ("d", 16), ("hidden", 16)])
    x = mtf.import_tf_tensor(mesh, tf.reshape(x, [512, 16, 16]), shape)
    return mtf.reduce_sum(x, output_shape=shape.dims[:1])

  report = compiled("v2:2x2x1", fn=changed)
  assert [(c.kind, c.mesh_dims) for c in report.collectives] == [
    ("all-reduce", ("cols",))
  ]


def test_a_mesh_of_another_size_than_the_topology_is_refused():
  with pytest.raises(ValueError, match=r"4 processors.*'v2:2x2x1' has 8 cores"):
    compiled("v2:2x2x1", mesh="rows:2;cols:2")


def test_a_topology_that_does_not_exist_is_refused():
  with pytest.raises(ValueError, match="topology 'v2:nonsense'"):
    compiled("v2:nonsense")


def test_what_is_captured_from_outside_takes_part():
  outside = tf.constant(numbers(256))

  def add(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [BATCH, D])
    return x + mtf.import_tf_tensor(mesh, outside, [D])

  core = mtf.tpu.core_program(
    "rows:2;cols:4", "batch:rows", add, [tf.TensorSpec([512, 256], tf.float32)]
  )
  x = numbers(512, 256, seed=1)
  (got,), _ = mtf.tpu.CpuCores(core).run([x], {}, 0, 0)
  np.testing.assert_allclose(got, x + outside.numpy())
