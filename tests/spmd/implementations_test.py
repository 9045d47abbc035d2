"""What holds of a mesh however large it is, and of every implementation."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.core.layout import (
  pnum_to_processor_coordinates,
  processor_coordinates_to_pnum,
)

from tests.support.meshes import KINDS, SIMD, setting
from tests.support.running import new_mesh, run, tensor


def test_coordinates_are_exact_where_float32_no_longer_counts():
  mesh = mtf.convert_to_shape("x:5003;y:4099;z:3")
  last = mesh.size - 1
  assert last > 2**25  # float32 cannot tell it from its neighbours
  for pnum in (0, 2**24 + 1, 2**25 + 3, last - 1, last):
    at = pnum_to_processor_coordinates(mesh, pnum)
    want = np.unravel_index(pnum, mesh.to_integer_list)
    assert tuple(at) == tuple(map(int, want))
    assert processor_coordinates_to_pnum(mesh, at) == pnum


@pytest.mark.parametrize("kind", KINDS)
def test_every_processor_knows_its_coordinates(kind):
  impl = setting("x:2;y:3", "", kind).impl
  for axis in range(2):
    x = impl.processor_coordinate(axis)
    assert impl.dtype(x) == tf.int32
    held = [v.numpy().ravel() for v in impl.flatten(x)]
    numbers = np.unique(np.concatenate(held)).tolist()
    assert numbers == list(range(impl.shape[axis].size))


# What only 24 bits of a float32 can tell apart from 1.
FINE = (1 + np.arange(64, dtype=np.float32) * 2.0**-23).reshape(8, 8)
MOVES = [
  ("a:8 b:8", "c:8 d:8", "a:x;d:x", "alltoall"),
  ("a:8 b:8", "c:8 d:8", "a:x", "allconcat"),
  ("a:8 b:8", "c:8 d:8", "a:x;b:y;c:y;d:x", "permute"),
]


@pytest.mark.parametrize(("old", "new", "layout", "sent"), MOVES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_sent_arrives_bit_for_bit(old, new, layout, sent, kind):
  split = run(
    lambda mesh: mtf.reshape(tensor(mesh, old, FINE), new),
    "x:2;y:2", layout, kind,
  )  # fmt: skip
  assert set(split.kinds) == {sent}
  assert split.value().tobytes() == FINE.tobytes()


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_replicas_reduce_integers_that_have_no_sign(dtype):
  high = np.iinfo(dtype).max - 5
  x = np.array([[1, high], [7, 2]], dtype)

  def build(mesh):
    y = mtf.import_tf_tensor(mesh, x, "a:2 b:2")
    reductions = (mtf.reduce_max, mtf.reduce_min, mtf.reduce_sum)
    return [reduce(y, reduced_dim=y.shape[0]) for reduce in reductions]

  largest, smallest, total = run(build, "x:2", "a:x", SIMD).values
  np.testing.assert_array_equal(largest, x.max(axis=0))
  np.testing.assert_array_equal(smallest, x.min(axis=0))
  np.testing.assert_array_equal(total, x.sum(axis=0, dtype=dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_replicas_send_complex_numbers_whole(dtype):
  x = np.array([1.5 + 2.5j, -3.25 + 0.5j], dtype)

  def build(mesh):
    y = mtf.import_tf_tensor(mesh, x, "a:2")
    shifted = mtf.shift(y, 1, mtf.Dimension("a", 2), wrap=True)
    return mtf.reduce_sum(y), shifted, y

  total, shifted, whole = run(build, "x:2", "a:x", SIMD).values
  np.testing.assert_array_equal(total, x.sum())
  np.testing.assert_array_equal(shifted, x[::-1])
  np.testing.assert_array_equal(whole, x)


def test_replicas_have_nothing_to_send_of_a_tensor_without_elements():
  def build(mesh):
    x = mtf.import_tf_tensor(mesh, np.zeros([4, 0], np.float32), "a:4 b:0")
    moved = mtf.reshape(x, "c:4 b:0")
    return x, mtf.reduce_sum(x), mtf.reduce_sum(x, reduced_dim="a"), moved

  split = run(build, "x:2", "a:x;c:x", SIMD)
  assert [y.shape for y in split.values] == [(4, 0), (), (0,), (4, 0)]
  assert split.value(1) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_gathering_slices_costs_what_they_are_in_all(kind):
  split = run(
    lambda mesh: mtf.reshape(tensor(mesh, "a:8 b:4"), "c:8 b:4"),
    "x:4", "a:x", kind,
  )  # fmt: skip
  ((_, event),) = split.lowering.collectives
  assert (event.kind, event.elements) == ("allconcat", 32)


@pytest.mark.parametrize("kind", KINDS)
def test_random_numbers_are_never_sent(kind):
  def build(mesh):
    x = mtf.ones(mesh, "a:4 b:4")
    return [
      mtf.dropout(x, True, rate=0.5, noise_shape="a:4"),
      mtf.random_uniform(mesh, "b:4"),
      mtf.random_normal(mesh, "a:4"),
    ]

  split = run(build, "x:2;y:2;z:2", "a:x", kind)
  assert split.kinds == []
  for got, want in zip(split.values, run(build).values, strict=True):
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_with_variables_can_be_lowered_many_times(kind):
  impl = setting("x:2;y:2", "a:x;b:y", kind).impl
  mesh = new_mesh()
  w = mtf.get_variable(mesh, "w", "a:4 b:4", initializer=3.0)
  doubled = mtf.assign(w.operation, w * 2.0)
  for times in range(3):
    lowering = mtf.Lowering(mesh.graph, {mesh: impl})
    assert (lowering.export_to_tf_tensor(w).numpy() == 3 * 2**times).all()
    lowering.lowered_operation(doubled)


def _nodes(mesh_shape):
  """How many nodes a function on a virtual mesh has."""
  program = mtf.Program(mesh_shape, "a:x;b:y;c:y")

  @program.function
  def fn(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, "a:512 b:512")
    w = mtf.get_variable(mesh, "w", "b:512 t:8")
    y = mtf.dropout(mtf.softmax(x, mtf.Dimension("b", 512)), True, rate=0.1)
    y = mtf.reshape(mtf.einsum([y, w], "a:512 t:8"), "c:512 t:8")
    y = mtf.shift(y, 3, mtf.Dimension("c", 512), wrap=True)
    return [y, *mtf.gradients([y], [x])]

  spec = tf.TensorSpec([512, 512])
  graph = fn.tf_function.get_concrete_function(spec).graph
  return len(graph.as_graph_def().node)


def test_the_graph_of_a_virtual_mesh_does_not_grow_with_it():
  assert _nodes("x:2;y:4") == _nodes("x:16;y:32")
