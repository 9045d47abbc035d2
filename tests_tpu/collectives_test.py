"""Every communication, and what is known to be hard, as TPU cores run it.

The program that the TPU's compiler is handed runs on eight CPU devices, and
equals the virtual mesh.
"""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from tests_tpu.cores import check, collectives, numbers

A, B, C = (mtf.Dimension(n, s) for n, s in (("a", 8), ("b", 12), ("c", 4)))


def _reduced(function):
  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [A, B])
    return (
      function(x, output_shape=[A]),
      function(x),
      function(x, output_shape=[B]),
    )

  return build


@pytest.mark.parametrize(
  "function", [mtf.reduce_sum, mtf.reduce_max, mtf.reduce_min]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, "bfloat16"])
def test_reductions_over_split_dimensions(function, dtype):
  x = (numbers(8, 12) * 4).round()
  core = check(
    _reduced(function), tf.cast(x, dtype).numpy(), layout="a:rows;b:cols"
  )
  assert collectives(core) & {"all-reduce", "all-gather"}


def test_a_sum_that_is_split_at_once_is_scattered():
  s, t, b = (mtf.Dimension(n, m) for n, m in (("s", 4), ("t", 4), ("b", 8)))

  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [s, t, b])
    return mtf.reshape(mtf.reduce_sum(x, output_shape=[b]), "c:8")

  core = check(build, numbers(4, 4, 8), layout="s:cols;t:rows;c:cols")
  assert "reduce-scatter" in collectives(core)


def _relaid(old, new):
  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, old)
    return mtf.reshape(x, new)

  return build


@pytest.mark.parametrize(
  "dtype", [np.float32, np.int32, np.int64, np.uint8, np.bool_]
)
@pytest.mark.parametrize(
  ("layout", "kinds"),
  [
    ("a:cols;b:rows;e:rows", {"all-gather"}),
    ("d:cols;b:rows;e:rows", set()),
    ("a:cols;e:cols;b:rows", None),
    ("b:rows;d:rows;a:cols", None),
    ("a:rows;b:cols;d:cols;e:rows", None),
  ],
)
def test_a_change_of_layout(layout, kinds, dtype):
  d, e = mtf.Dimension("d", 8), mtf.Dimension("e", 12)
  x = (np.arange(96).reshape(8, 12) % 7).astype(dtype)
  core = check(_relaid([A, B], [d, e]), x, layout=layout)
  assert kinds is None or collectives(core) == kinds


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("offset", [1, -3, 5])
def test_a_shift_along_a_split_dimension(offset, wrap):
  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [A, B])
    return mtf.shift(x, offset, B, wrap)

  core = check(build, numbers(8, 12), layout="a:rows;b:cols")
  assert "collective-permute" in collectives(core)


def test_a_lookup_in_a_split_table_and_its_gradient():
  def build(mesh, table, ids):
    table = mtf.import_tf_tensor(mesh, table, [B, A])
    ids = mtf.import_tf_tensor(mesh, ids, [C])
    found = mtf.gather(table, ids, B)
    (grad,) = mtf.gradients([mtf.reduce_sum(mtf.square(found))], [table])
    return found, grad

  ids = np.array([11, 0, 3, 3], np.int32)
  check(build, numbers(12, 8), ids, layout="b:cols;c:rows")
  check(build, numbers(12, 8), ids, layout="b:cols;a:rows")


def test_sums_of_all_before_along_a_split_dimension():
  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [A, B])
    return mtf.cumsum(x, B), mtf.cumsum(x, A, exclusive=True)

  check(build, numbers(8, 12), layout="a:rows;b:cols")


def test_the_largest_along_a_split_dimension():
  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [A, B])
    values, places = mtf.top_k(x, B, mtf.Dimension("k", 3))
    return values, places, mtf.argmax(x, B)

  check(build, numbers(8, 12), layout="a:rows;b:cols")


def test_random_numbers_have_the_bits_of_the_virtual_mesh():
  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [A, B])
    return (
      mtf.random_uniform(mesh, [A, B]),
      mtf.dropout(x, True, rate=0.4),
      mtf.sample_with_temperature(x, B),
    )

  check(build, numbers(8, 12), layout="a:rows;b:cols", tolerance=0)


def test_normal_numbers_and_softmax():
  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [A, B])
    return mtf.random_normal(mesh, [A, B]), mtf.softmax(x, B)

  check(build, numbers(8, 12), layout="a:rows;b:cols", tolerance=1e-6)


def test_a_loop_whose_body_communicates():
  def build(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [A, B])
    start = mtf.zeros(mesh, [], "int32")

    def body(i, x):
      total = mtf.reduce_sum(x, output_shape=[A])
      return i + 1, x * 0.5 + total * 0.01

    return mtf.while_loop(lambda i, x: mtf.less(i, 3), body, [start, x])[1]

  check(build, numbers(8, 12), layout="a:rows;b:cols")


def test_an_input_that_is_changed_before_it_is_imported_comes_whole():
  def build(mesh, x):
    shape = mtf.Shape([("outer", 2), ("inner", 4), B])
    x = mtf.import_tf_tensor(mesh, tf.reshape(x, [2, 4, 12]) * 2, shape)
    return x, mtf.reduce_sum(x, output_shape=[B])

  core = check(build, numbers(8, 12), layout="outer:rows;inner:cols")
  assert core.inputs[0].sizes == (8, 12)
