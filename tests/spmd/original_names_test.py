"""What operations of users may ask of a mesh, and small things beside it."""

import logging

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import KINDS, PLACEMENT, setting
from tests.support.running import new_mesh, run, tensor

SHAPE = mtf.convert_to_shape("a:4 b:6")


@pytest.fixture(params=KINDS)
def impl(request):
  return setting("x:2;y:3", "a:x;b:y", request.param).impl


def each(impl, x):
  """What each processor holds, as arrays, in the order of their numbers."""
  if isinstance(impl, mtf.placement_mesh_impl.PlacementMeshImpl):
    return [t.numpy() for t in x.tensor_list]
  sizes = impl.shape.to_integer_list
  return [
    x.value.numpy()[tuple(np.unravel_index(p, sizes)[a] for a in x.axes)]
    for p in range(impl.size)
  ]


def whole():
  return np.arange(24.0, dtype=np.float32).reshape(4, 6)


def test_slices_are_cut_and_put_together_again(impl):
  parts = impl.make_slices(tf.constant(whole()), SHAPE)
  for got, want in zip(
    parts, each(impl, impl.import_tensor(whole(), SHAPE)), strict=True
  ):
    np.testing.assert_array_equal(got, want)
  np.testing.assert_array_equal(impl.combine_slices(parts, SHAPE), whole())
  on_cpu = impl.combine_slices(parts, SHAPE, device="CPU:1")
  assert on_cpu.device.endswith("CPU:1")


def test_processors_and_slices_are_numbered(impl):
  def numbers(x):
    return [int(n) for n in each(impl, x)]

  assert numbers(impl.laid_out_pnum()) == [0, 1, 2, 3, 4, 5]
  assert numbers(impl.laid_out_pcoord(1)) == [0, 1, 2, 0, 1, 2]
  assert numbers(impl.laid_out_slice_num(SHAPE)) == [0, 1, 2, 3, 4, 5]
  assert numbers(impl.laid_out_slice_num("b:6 a:4")) == [0, 2, 4, 1, 3, 5]
  assert numbers(impl.laid_out_slice_num("a:4 c:5")) == [0, 0, 0, 1, 1, 1]
  assert numbers(impl.laid_out_slice_num("c:5")) == [0] * 6


def test_the_number_of_slices_before_a_mesh_axis(impl):
  assert impl.mesh_axis_to_cumprod("c:5 a:4 d:2") == [5, None]
  assert impl.mesh_axis_to_cumprod("b:6 c:5 a:4") == [30, 1]


@pytest.mark.parametrize(
  ("sources", "kinds"),
  [
    ([2, 0, 1], ["shift"]),
    ([None, 0, 1], ["shift"]),
    ([1, 2, None], ["shift"]),
    ([0, 0, None], ["allconcat"]),
    ([1, 0, 2], ["allconcat"]),
    ([None, None, None], ["allconcat"]),
  ],
)
def test_processors_receive_from_others_of_their_group(impl, sources, kinds):
  x = impl.import_tensor(whole(), SHAPE)
  seen = []
  with impl.observed(lambda event: seen.append(event.kind)):
    got = each(impl, impl.receive(x, 1, sources))
  before = each(impl, x)
  for pnum, y in enumerate(got):
    row, column = divmod(pnum, 3)
    source = sources[column]
    want = 0 * y if source is None else before[row * 3 + source]
    np.testing.assert_array_equal(y, want)
  assert seen == kinds
  shifted = impl.shift_by_n_processors(x, 1, 1, True)
  np.testing.assert_array_equal(each(impl, shifted)[0], before[2])


@pytest.mark.parametrize("new", ["a:4 b:6", "a:4 c:5 b:6", "d:2 a:4 b:6 c:3"])
def test_slices_are_repeated_along_new_dimensions(impl, new):
  x = impl.import_tensor(whole(), SHAPE)
  shape = mtf.convert_to_shape(new)
  got = impl.export_tensor(impl.broadcast_impl(x, SHAPE, new), shape)
  where = [shape.dimension_names.index(n) for n in "ab"]
  thin = [n if i in where else 1 for i, n in enumerate(shape.to_integer_list)]
  want = np.broadcast_to(whole().reshape(thin), shape.to_integer_list)
  np.testing.assert_array_equal(got, want)


def test_a_new_dimension_may_be_split(impl):
  x = impl.import_tensor(
    tf.constant([1.0, 2.0, 3.0, 4.0]), mtf.Shape([("a", 4)])
  )
  y = impl.broadcast_impl(x, "a:4", "a:4 b:6")
  assert impl.slice_sizes(y) == [2, 2]
  want = np.repeat([[1.0], [2], [3], [4]], 6, axis=1)
  np.testing.assert_array_equal(impl.export_tensor(y, SHAPE), want)


def test_dimensions_in_another_order_are_an_error(impl):
  x = impl.import_tensor(whole(), SHAPE)
  with pytest.raises(ValueError, match=r"\[a:4 b:6\] is not part of \[b:6 a:4"):
    impl.broadcast_impl(x, SHAPE, "b:6 a:4")


def test_a_processor_may_keep_another_part_than_its_own(impl):
  x = impl.import_tensor(tf.range(6.0), mtf.Shape([("c", 6)]))
  own = each(impl, impl.allsplit(x, 1, 0))
  np.testing.assert_array_equal(own[2], [4, 5])
  zero = impl.map_trailing(lambda n: n * 0, impl.processor_coordinate(1))
  first = each(impl, impl.allsplit(x, 1, 0, which=zero))
  np.testing.assert_array_equal(first[2], [0, 1])


def test_laid_out_values_know_the_shape_of_a_slice(impl):
  x = impl.import_tensor(whole(), SHAPE)
  assert isinstance(x, impl.LaidOutTensor)
  assert x.slice_shape == [2, 2]
  if hasattr(x, "tensor_list"):
    assert len(x.all_slices) == 6


# Lazy values, in an operation of a user.


class Halved(mtf.Operation):
  """x / 2, which leaves sums to whoever reads it."""

  def __init__(self, x):
    super().__init__([x], name="halved")
    self._outputs = [mtf.Tensor(self, x.shape, x.dtype)]

  def gradient(self, grad_ys):
    return [Halved(grad_ys[0]).outputs[0]]

  def lower(self, lowering):
    x = lowering.maybe_pending(self.inputs[0])
    y = lowering.mesh_impl(self).slicewise_delay_allreduce(lambda x: x / 2, x)
    lowering.set_tensor_lowering(self.outputs[0], y)


class Summed(mtf.Operation):
  """The sum over b, which is split over y, to be taken later."""

  def __init__(self, x, counted):
    super().__init__([x], name="summed")
    shape = [d for d in x.shape if d.name != "b"]
    self._outputs = [mtf.Tensor(self, shape, x.dtype)]
    self._counted = counted

  def lower(self, lowering):
    impl = lowering.mesh_impl(self)
    x = lowering.slices(self.inputs[0])
    part = impl.slicewise(lambda x: tf.reduce_sum(x, -1), x)
    lazy = mtf.LazyAllreduceSum(
      impl, part, [1], lambda: self._counted.append(1)
    )
    assert lazy.slice_shape == [2]
    lowering.set_tensor_lowering(self.outputs[0], lazy)


@pytest.mark.parametrize("kind", KINDS)
def test_a_users_operation_may_leave_a_sum_to_its_readers(kind):
  counted = []

  def build(mesh):
    y = Summed(tensor(mesh, SHAPE), counted).outputs[0]
    z = Halved(y).outputs[0]
    return z, mtf.identity(z)

  got = run(build, "x:2;y:3", "a:x;b:y", kind)
  assert got.kinds == ["allreduce"]
  np.testing.assert_array_equal(got.value(1), whole().sum(1) / 2)
  assert counted == [1]


def test_a_sum_that_nobody_reads_is_not_taken():
  counted = []
  got = run(
    lambda mesh: Summed(tensor(mesh, SHAPE), counted).outputs,
    "x:2;y:3",
    "a:x;b:y",
    PLACEMENT,
  )
  assert not got.kinds
  assert not counted
  np.testing.assert_array_equal(got.value(), whole().sum(1))
  got.value()
  assert counted == [1]


def test_sums_go_together_over_the_same_axes_of_the_same_mesh(impl):
  x = impl.import_tensor(whole(), SHAPE)
  one, two = (mtf.LazyAllreduceSum(impl, x, [1]) for _ in range(2))
  other_axes = mtf.LazyAllreduceSum(impl, x, [0])
  other = setting("x:2;y:3", "a:x;b:y").impl
  other_mesh = mtf.LazyAllreduceSum(other, x, [1])
  assert mtf.compatible_lazy_allreduce_sums([one, two])
  for xs in ([], [one, other_axes], [one, other_mesh], [one, x]):
    assert not mtf.compatible_lazy_allreduce_sums(xs)


def test_lazy_arguments_become_slices_and_others_stay(impl):
  x = impl.import_tensor(whole(), SHAPE)
  made = []

  def make():
    made.append(1)
    return x

  lazy = mtf.LazyLaidOutTensor(make, [2, 2])
  total = mtf.LazyAllreduceSum(impl, x, [0])
  got = mtf.convert_args_to_laid_out_tensors([lazy, total, 7, x])
  assert got[0] is x
  np.testing.assert_array_equal(
    each(impl, got[1])[0], whole()[:2, :2] + whole()[2:, :2]
  )
  assert got[2] == 7
  assert got[3] is x
  assert lazy.slice_shape == [2, 2]
  assert lazy.to_laid_out_tensor() is x
  assert len(made) == 2


def test_delayed_slicewise_takes_sums_that_do_not_go_together(impl):
  x = impl.import_tensor(whole(), SHAPE)
  lazy = mtf.LazyAllreduceSum(impl, x, [1])
  other = mtf.LazyAllreduceSum(impl, x, [0])
  y = impl.slicewise_delay_allreduce(lambda x, y: x + y, lazy, other)
  want = each(impl, lazy.total())[4] + each(impl, other.total())[4]
  np.testing.assert_array_equal(each(impl, y)[4], want)


def test_whole_tensors_go_in_and_out_by_their_mesh_tensor(impl):
  x = tensor(new_mesh(), SHAPE)
  slices = impl.import_tf_tensor(x, tf.constant(whole()))
  np.testing.assert_array_equal(impl.export_to_tf_tensor(x, slices), whole())
  assert impl.Print(slices, [slices], "message") is slices


# Lists of devices, reductions by name.


def test_a_function_runs_once_for_each_device():
  def fn(x, y=0):
    return x + y, tf.compat.v1.get_variable_scope().name, tf.zeros([]).device

  got = mtf.parallel(["CPU:0", "CPU:1"], fn, [1, 2], y=[10, 20])
  assert [g[:2] for g in got] == [(11, "parallel_0"), (22, "parallel_1")]
  assert [g[2][-5:] for g in got] == ["CPU:0", "CPU:1"]
  with pytest.raises(
    ValueError, match=r"argument 0 is \[1\]; give a list of 2"
  ):
    mtf.parallel(["", ""], fn, [1])
  with pytest.raises(ValueError, match="argument 'y' is 3; give a list of 1"):
    mtf.parallel([""], fn, [1], y=3)


def test_lists_of_lists_are_transposed():
  assert mtf.transpose_list_of_lists([[1, 2, 3], [4, 5, 6]]) == [
    [1, 4], [2, 5], [3, 6]
  ]  # fmt: skip
  with pytest.raises(ValueError, match="there is no list"):
    mtf.transpose_list_of_lists([])


def test_reductions_have_names():
  x = tf.constant([[1.0, 5.0], [3.0, 2.0]])
  for name, both, rows in (
    ("SUM", [4, 7], [6, 5]),
    ("MAX", [3, 5], [5, 3]),
    ("MIN", [1, 2], [1, 2]),
  ):
    np.testing.assert_array_equal(mtf.binary_reduction_fn(name)(*x), both)
    np.testing.assert_array_equal(mtf.reduction_fn(name)(x, 1), rows)
  for find in (mtf.binary_reduction_fn, mtf.reduction_fn):
    with pytest.raises(ValueError, match="unknown reduction 'sum'; take one"):
      find("sum")


# What is written down.


def test_counters_are_added_up_by_what_stands_before_a_slash():
  counters = [("allreduce/[0]/sum", 1500), ("allreduce/[1]/sum", 8), ("b", 1)]
  assert mtf.pretty_print_counters(counters).splitlines() == [
    "allreduce: 1.51e+03",
    " allreduce/[0]: 1.5e+03",
    "  allreduce/[0]/sum: 1.5e+03",
    " allreduce/[1]: 8",
    "  allreduce/[1]/sum: 8",
    "b: 1",
  ]
  assert mtf.pretty_print_counters([]) == ""


def test_sizes_of_variables_are_logged(caplog, tmp_path):
  mesh = new_mesh()
  for name in ("w", "a/v"):
    mtf.get_variable(mesh, name, SHAPE)
  impl = setting("x:2", "a:x").impl
  path = tmp_path / "log"
  for verbose in (True, False):
    with caplog.at_level(logging.INFO):
      mtf.log_variable_sizes(
        mesh.graph.all_variables, "All", verbose, {mesh: impl}, str(path)
      )
  want = [
    "Variable a/v: size 24, slice_size 12, Shape[a=4, b=6]",
    "Variable w: size 24, slice_size 12, Shape[a=4, b=6]",
    "All: 2 variables, total size 48, total slice_size 24",
  ]
  assert path.read_text().splitlines() == [*want, want[-1]]
  assert all(line in caplog.text for line in want)


def test_a_lowering_writes_its_log(tmp_path):
  mesh = new_mesh()
  w = mtf.get_variable(mesh, "w", SHAPE, initializer=1.0)
  y = mtf.reduce_sum(w, output_shape=[])
  mtf.identity(y)
  path = tmp_path / "log"
  impl = setting("x:2", "a:x").impl
  lowering = mtf.Lowering(mesh.graph, {mesh: impl}, log_file=str(path))
  text = path.read_text()
  assert "Trainable Variables: 1 variables, total size 24" in text
  assert "Other Variables: 0 variables" in text
  assert "Counters:\nallreduce: 2\n" in text
  (variable,) = lowering.variables.items()
  assert variable[0] is w.operation
  assert variable[1] is impl.variable_store["w"]


# What `mtf.utils` and `mtf.test_utils` have.


def test_variables_go_to_the_device_that_holds_least():
  mesh = new_mesh()
  placer = mtf.utils.BalancedVariablePlacer(["a", "b"])
  sizes = [
    ("v", 100, tf.float32),
    ("w", 50, tf.float32),
    ("x", 60, tf.bfloat16),
  ]
  where = [
    placer.device_function(
      mtf.get_variable(mesh, name, [("d", n)], dtype).operation
    )
    for name, n, dtype in sizes
  ]
  assert where == ["a", "b", "b"]  # 400 on a; 200, then 320 on b
  assert placer.device_function(tf.zeros([40])) == "b"
  assert placer.device_function(tf.zeros([2])) == "a"
  full = mtf.utils.BalancedVariablePlacer(["a", "b"], [8, 0])
  assert full.device_function(tf.zeros([])) == "b"
  with pytest.raises(ValueError, match="2 devices, of which the use of 1"):
    mtf.utils.BalancedVariablePlacer(["a", "b"], [1])


def test_a_mesh_hands_on_where_variables_go():
  placer = mtf.utils.BalancedVariablePlacer(["a"])
  graph = mtf.Graph()
  assert mtf.Mesh(graph, "mesh").variable_placer_fn == "cpu:0"
  mesh = mtf.Mesh(graph, "mesh", placer)
  assert mesh.variable_placer_fn(tf.zeros([])) == "a"


def test_the_rank_of_a_topology_is_that_of_its_mesh():
  topology = tf.tpu.experimental.Topology(
    mesh_shape=[2, 2, 1, 2],
    device_coordinates=np.indices([2, 2, 1, 2]).reshape(4, -1).T[None],
  )
  assert mtf.utils.topology_rank(topology) == 4


def test_arrays_become_mesh_tensors_and_arrays_again():
  converter = mtf.test_utils.NumpyConverter()
  x = converter.convert_np_array_to_mtf_tensor([[1, 2], [3, 4]])
  assert x.shape == mtf.convert_to_shape("dim0:2 dim1:2")
  assert x.dtype == tf.int32
  y = converter.convert_np_array_to_mtf_tensor(
    np.ones([2]), ["dim0"], dtype=tf.float32
  )
  z = mtf.cast(x, tf.float32) + y
  assert z.mesh is converter.mesh
  assert z.graph is converter.graph
  got = converter.convert_mtf_tensor_to_np_array(z)
  np.testing.assert_array_equal(got, [[2, 3], [4, 5]])
  lowering, value = converter.convert_mtf_tensor_to_tf_tensor(z)
  np.testing.assert_array_equal(lowering.export_to_tf_tensor(z), value)
