"""Convolutions and pooling against loops, TensorFlow, and what is unsplit."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.ops.linear.convolution import kernels, native
from mesh_tf2.ops.linear.convolution.stencil import Padding, Stencil

from tests.support import convolutions
from tests.support.meshes import KINDS, setting
from tests.support.running import Run, new_mesh, run, tensor


def _numbers(rng, *size):
  return rng.normal(size=size).astype(np.float32)


# Sizes.


@pytest.mark.parametrize("n", [1, 2, 5, 7, 8])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_outputs_are_rounded_up_for_every_stride_and_padding(n, stride):
  same = Stencil(3, stride, 1, Padding.SAME)
  assert same.outputs(n) == len(range(0, n, stride))
  valid = Stencil(3, stride, 2, Padding.VALID)
  assert valid.outputs(n) == len(range(0, n - 4, stride))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("n", [7, 8, 9])
def test_a_stride_that_does_not_divide_gives_tensorflows_result(n, padding):
  rng = np.random.default_rng(n)
  x, w = _numbers(rng, 2, n, n, 3), _numbers(rng, 3, 2, 3, 4)

  def build(mesh):
    return mtf.conv(
      tensor(mesh, f"b:2 h:{n} w:{n} c:3", x),
      tensor(mesh, "fh:3 fw:2 c:3 o:4", w),
      (3, 2),
      padding,
    )

  want = tf.nn.conv2d(x, w, (3, 2), padding).numpy()
  np.testing.assert_allclose(run(build).value(), want, 1e-4, 1e-4)


def test_a_transposed_convolution_is_undone_in_size_by_a_convolution():
  for padding in Padding:
    for size in range(1, 6):
      for stride in range(1, 4):
        for dilation in (1, 2):
          s = Stencil(size, stride, dilation, padding)
          assert s.outputs(s.natural_inputs(5)) == 5


# Gaps and groups.


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gaps_in_a_filter_are_tensorflows(padding):
  rng = np.random.default_rng(0)
  x, w = _numbers(rng, 2, 9, 8, 3), _numbers(rng, 3, 2, 3, 4)

  def build(mesh):
    return mtf.conv(
      tensor(mesh, "b:2 h:9 w:8 c:3", x),
      tensor(mesh, "fh:3 fw:2 c:3 o:4", w),
      1,
      padding,
      (2, 3),
    )

  want = tf.nn.conv2d(x, w, 1, padding, dilations=(2, 3)).numpy()
  np.testing.assert_allclose(run(build).value(), want, 1e-4, 1e-4)


def test_a_filter_for_each_channel_is_tensorflows_depthwise_convolution():
  rng = np.random.default_rng(0)
  x, w = _numbers(rng, 2, 6, 6, 3), _numbers(rng, 3, 3, 3, 2)

  def build(mesh):
    return mtf.conv(
      tensor(mesh, "b:2 h:6 w:6 c:3", x),
      tensor(mesh, "fh:3 fw:3 g:1 o:6", w.reshape([3, 3, 1, 6])),
      2,
      groups=3,
    )

  want = tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME").numpy()
  np.testing.assert_allclose(run(build).value(), want, 1e-4, 1e-4)


@pytest.mark.parametrize(
  ("layout", "sent"),
  [
    ("o:x", set()),  # whole groups on each processor
    ("c:x;o:x", set()),
    ("o:y", {"allconcat"}),  # half a group on each
    ("c:y", {"allconcat"}),
    ("c:x;o:y", {"allconcat"}),
  ],
)
def test_groups_are_split_for_nothing_where_they_stay_whole(layout, sent):
  rng = np.random.default_rng(0)
  x, w = _numbers(rng, 2, 6, 8), _numbers(rng, 3, 4, 8)

  def build(mesh):
    return mtf.conv(
      tensor(mesh, "b:2 s:6 c:8", x), tensor(mesh, "f:3 g:4 o:8", w), groups=2
    )

  got = run(build, "x:2;y:4", layout)
  want = convolutions.conv(x, w, groups=2)
  np.testing.assert_allclose(got.value(), want, 1e-4, 1e-4)
  assert set(got.kinds) == sent


# Splitting.


@pytest.mark.parametrize("seed", range(12))
def test_no_layout_changes_a_convolution_its_gradients_or_theirs(seed):
  rng = np.random.default_rng(seed)
  n = int(rng.integers(1, 3))
  sizes = [int(rng.choice([4, 8, 12])) for _ in range(n)]
  spans = [int(rng.integers(1, 6)) for _ in range(n)]
  strides, dilations = rng.integers(1, 4, n).tolist(), [1 + seed % 2] * n
  padding = "SAME" if rng.random() < 0.6 else "VALID"
  groups = int(rng.choice([1, 1, 2, 4]))
  x, w = _numbers(rng, 4, *sizes, 8), _numbers(rng, *spans, 8 // groups, 8)
  args = strides, padding, dilations, groups
  if min(sizes) < 2 * max(spans) - 1:
    args = strides, "SAME", dilations, groups
  want = convolutions.conv(x.astype(np.float64), w, *args)
  spatial = [("s", sizes[0]), ("t", sizes[-1])][:n]
  filters = [("f", spans[0]), ("g", spans[-1])][:n]
  dy, ddx, ddw = (_numbers(rng, *a.shape) for a in (want, x, w))

  def build(mesh):
    channels = "c" if groups == 1 else "c_group"
    a = tensor(mesh, [("b", 4), *spatial, ("c", 8)], x)
    b = tensor(mesh, [*filters, (channels, 8 // groups), ("o", 8)], w)
    y = mtf.conv(a, b, *args)
    d = tensor(mesh, y.shape, dy)
    first = mtf.gradients([y], [a, b], [d])
    weights = [tensor(mesh, a.shape, ddx), tensor(mesh, b.shape, ddw)]
    return [y, *first, *mtf.gradients(first, [a, b, d], weights)]

  alone = run(build).values
  np.testing.assert_allclose(alone[0], want, 1e-3, 1e-3)
  # What is linear in x, w and dy is known by one number: all are the same.
  total = (want * dy).sum()
  np.testing.assert_allclose((alone[1] * x).sum(), total, 1e-2, 1e-2)
  np.testing.assert_allclose((alone[2] * w).sum(), total, 1e-2, 1e-2)
  second = convolutions.conv(ddx, w, *args) + convolutions.conv(x, ddw, *args)
  np.testing.assert_allclose(alone[5], second, 1e-3, 1e-3)
  tried = 0
  for layout in ("s:x", "t:y;s:x", "b:y;s:x", "s:y", "c:x;o:y", "o:x;s:y"):
    for kind in KINDS:
      try:
        got = Run(build, setting("x:2;y:4", layout, kind))
      except mtf.LayoutError as e:
        assert "is not divisible by" in str(e)
        continue
      got.check_variation()
      for a, b in zip(got.values, alone, strict=True):
        np.testing.assert_allclose(a, b, 1e-3, 1e-3, err_msg=layout)
      tried += 1
  assert tried


@pytest.mark.parametrize("kind", KINDS)
def test_a_volume_may_be_split_in_all_directions(kind):
  rng = np.random.default_rng(0)
  x, w = _numbers(rng, 2, 4, 8, 4, 2), _numbers(rng, 3, 2, 2, 2, 2)
  back = _numbers(rng, 2, 3, 1, 4, 2)

  def build(mesh):
    a = tensor(mesh, "b:2 d:4 h:8 w:4 c:2", x)
    b = tensor(mesh, "fd:3 fh:2 fw:2 c:2 o:2", w)
    y = mtf.conv(a, b, (1, 2, 1))
    z = mtf.conv_transpose(y, tensor(mesh, "gd:2 gh:3 gw:1 e:4 o:2", back), 2)
    pooled = mtf.avg_pool(z, (2, 2, 2))
    pooled = mtf.max_pool(pooled, (3, 1, 2), 1, "SAME")
    return [y, z, pooled, *mtf.gradients([mtf.square(pooled)], [a, b])]

  wanted = run(build).values
  mesh = "x:2;y:2;z:2"
  for layout in ("d:x;h:y;w:z", "b:x;h:y;e:z", "o:x;d:y;b:z"):
    got = run(build, mesh, layout, kind)
    got.check_variation()
    for a, b in zip(got.values, wanted, strict=True):
      np.testing.assert_allclose(a, b, 1e-3, 1e-3, err_msg=layout)


def test_only_the_border_is_sent():
  def build(mesh):
    x = tensor(mesh, "b:2 s:16 t:4 c:3")
    w = tensor(mesh, "f:5 g:1 c:3 o:2")
    return mtf.conv(x, w)

  got = run(build, "x:4", "s:x")
  # Two rows of 2 * 4 * 3 numbers, one way and the other, on four processors.
  border = 2 * (2 * 4 * 3) * 4
  assert got.counters("shift") == [("shift[1]", border), ("shift[-1]", border)]
  assert set(got.kinds) == {"shift"}


def test_what_no_window_reaches_is_not_sent():
  def build(mesh):
    x, w = tensor(mesh, "s:16 c:3"), tensor(mesh, "f:2 c:3 o:2")
    return mtf.conv(x, w, strides=2)

  assert run(build, "x:4", "s:x").kinds == []


def test_a_sum_over_split_channels_waits():
  def build(mesh):
    x, w = tensor(mesh, "s:4 c:4"), tensor(mesh, "f:3 c:4 o:2")
    y, z = mtf.conv(x, w), mtf.conv(x, w, dilations=2)
    return mtf.add(y, z)

  got = run(build, "x:2", "c:x")
  assert got.kinds == []
  got.value()
  assert got.kinds == ["allreduce"]


def test_the_gradient_for_the_filter_is_summed_over_batch_and_space_at_once():
  def build(mesh):
    x, w = tensor(mesh, "b:4 s:8 c:2"), tensor(mesh, "f:3 c:2 o:2")
    return mtf.gradients([mtf.conv(x, w)], [w])

  got = run(build, "x:2;y:2", "b:x;s:y")
  got.value()
  reduced = [c for c in got.collectives if c[1] == "allreduce"]
  assert reduced == [("ConvBackpropFilter", "allreduce", (0, 1))]


def test_outputs_that_do_not_divide_are_refused_with_the_way_out():
  def build(mesh):
    x, w = tensor(mesh, "s:8 c:2"), tensor(mesh, "f:2 c:2 o:2")
    return mtf.conv(x, w, padding="VALID")

  with pytest.raises(mtf.LayoutError, match="choose a multiple of 2 or drop"):
    run(build, "x:2", "s:x")


def test_the_positions_of_a_filter_cannot_be_split():
  def build(mesh):
    x, w = tensor(mesh, "s:8 c:2"), tensor(mesh, "f:2 c:2 o:2")
    return mtf.conv(x, w)

  with pytest.raises(mtf.LayoutError, match="along 'f': it is split"):
    run(build, "x:2", "f:x")


# Kernels.


@pytest.mark.parametrize("ndims", [1, 2, 3])
def test_tensorflows_kernels_and_the_loop_over_positions_agree(ndims):
  rng = np.random.default_rng(ndims)
  stencils = [
    Stencil(size, stride, 1, Padding.VALID)
    for size, stride in [(3, 2), (2, 1), (1, 2)][:ndims]
  ]
  outputs = [3, 2, 2][:ndims]
  sizes = [s.window(n) for s, n in zip(stencils, outputs, strict=True)]
  x = tf.constant(_numbers(rng, 2, *sizes, 1, 3))
  w = tf.constant(_numbers(rng, *(s.size for s in stencils), 1, 3, 4))
  y = tf.constant(_numbers(rng, 2, *outputs, 1, 4))
  pairs = [
    (native.correlate(x, w, stencils), kernels.correlate, (x, w)),
    (native.input_of(w, y, sizes, stencils), kernels.input_of, (w, y, sizes)),
    (native.filter_of(x, y, stencils), kernels.filter_of, (x, y)),
  ]
  for want, fn, args in pairs:
    # Two groups with the same numbers take the loop.
    axes = {x.ref(): -2, y.ref(): -2, w.ref(): -3}
    two = [
      tf.repeat(a, 2, axes[a.ref()]) if tf.is_tensor(a) else a for a in args
    ]
    got = fn(*two, stencils)
    axis = -3 if want.shape == w.shape else -2
    np.testing.assert_allclose(got, tf.repeat(want, 2, axis), 1e-4, 1e-4)


def test_an_empty_batch_gives_an_empty_result_of_the_right_size():
  def build(mesh):
    x = tensor(mesh, "b:0 h:6 w:6 c:2", np.zeros([0, 6, 6, 2]))
    w = tensor(mesh, "fh:2 fw:2 c:2 o:3")
    y = mtf.conv(x, w, padding="VALID")
    return [y, *mtf.gradients([y], [x, w])]

  y, dx, dw = run(build).values
  assert (y.shape, dx.shape) == ((0, 5, 5, 3), (0, 6, 6, 2))
  assert not dw.any()


def test_whole_numbers_can_be_convolved():
  def build(mesh):
    x = tensor(mesh, "s:4 c:1", dtype=np.int32)
    return mtf.conv(x, tensor(mesh, "f:2 c:1 o:1", [[[1]], [[10]]], np.int32))

  assert run(build).value().ravel().tolist() == [10, 21, 32, 3]


def test_a_split_convolution_is_compiled_by_xla():
  program = mtf.Program("x:2;y:2", "b:x;s:y", seed=0)
  rng = np.random.default_rng(0)
  x, w = _numbers(rng, 2, 8, 3), _numbers(rng, 3, 3, 2)

  @program.function(jit_compile=True)
  def f(mesh, x, w):
    x = mtf.import_tf_tensor(mesh, x, "b:2 s:8 c:3")
    w = mtf.import_tf_tensor(mesh, w, "f:3 c:3 o:2")
    y = mtf.max_pool(mtf.conv(x, w, dilations=2), (3,), 2, "SAME")
    return [y, *mtf.gradients([y], [x, w])]

  y, dx, dw = f(x, w)
  a, b = tf.constant(x), tf.constant(w)
  with tf.GradientTape() as tape:
    tape.watch([a, b])
    z = tf.nn.conv1d(a, b, 1, "SAME", dilations=2)
    z = tf.nn.max_pool1d(z, 3, 2, "SAME")
  np.testing.assert_allclose(y, z, 1e-4, 1e-4)
  for got, want in zip([dx, dw], tape.gradient(z, [a, b]), strict=True):
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)


# Pooling.


@pytest.mark.parametrize(
  ("padding", "layout"),
  [
    ("SAME", ""),
    ("SAME", "h:y;b:x"),
    ("SAME", "w:x"),
    ("VALID", "h:x"),
    ("VALID", "b:x"),
  ],
)
def test_pooling_is_tensorflows(padding, layout):
  rng = np.random.default_rng(0)
  x = _numbers(rng, 2, 10, 12, 3) - 5  # all below zero, which padding is not
  size, strides = (4, 3), (2, 3)

  def build(mesh):
    image = tensor(mesh, "b:2 h:10 w:12 c:3", x)
    return [
      mtf.max_pool(image, size, strides, padding),
      mtf.avg_pool(image, size, strides, padding),
    ]

  wanted = [
    tf.nn.max_pool2d(x, size, strides, padding).numpy(),
    tf.nn.avg_pool2d(x, size, strides, padding).numpy(),
  ]
  got = run(build, "x:2;y:5", layout)
  for i, want in enumerate(wanted):
    np.testing.assert_allclose(got.value(i), want, 1e-5, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_are_largest_get_the_whole_gradient(kind):
  x = [1.0, 1.0, 0.0, 2.0, 2.0, 2.0, 0.0, 3.0]

  def build(mesh):
    line = tensor(mesh, "s:8 c:1", np.reshape(x, [8, 1]))
    return mtf.gradients([mtf.max_pool(line, (2,))], [line])

  for layout in ("", "s:x"):
    got = run(build, "x:2", layout, kind).value()
    assert got.ravel().tolist() == [1, 1, 0, 1, 1, 1, 0, 1]


def test_the_second_gradient_of_max_pool_is_that_of_a_choice():
  rng = np.random.default_rng(0)
  x, dy, v = (_numbers(rng, n, 2) for n in (8, 4, 8))

  def build(mesh):
    a = tensor(mesh, "s:8 c:2", x)
    y = mtf.max_pool(a, (3,), 2, "SAME")
    d = tensor(mesh, y.shape, dy)
    (dx,) = mtf.gradients([y], [a], [d])
    weights = tensor(mesh, a.shape, v)
    return [dx, *mtf.gradients([dx], [d], [weights])]

  rows = [range(i, min(i + 3, 8)) for i in (0, 2, 4, 6)]
  want = [
    [v[r[int(np.argmax(x[list(r), c]))], c] for c in range(2)] for r in rows
  ]
  for mesh, layout in [("", ""), ("x:2", "s:x"), ("x:4", "s:x")]:
    got = run(build, mesh, layout)
    np.testing.assert_allclose(got.value(1), want, 1e-5, 1e-5)


def test_pool_fn_gives_tensorflows_functions_and_knows_no_others():
  x = np.arange(16, dtype=np.float32).reshape([1, 4, 4, 1])
  got = mtf.pool_fn("MAX_2D")(x, 2, 2, "VALID")
  assert got.numpy().ravel().tolist() == [5, 7, 13, 15]
  with pytest.raises(ValueError, match="AVG_2D, AVG_3D, MAX_2D, MAX_3D"):
    mtf.pool_fn("MIN_2D")


# Errors.


@pytest.mark.parametrize(
  ("x", "w", "kwargs", "message"),
  [
    ("s:8 c:2", "f:3 d:2 o:2", {}, "both must be the same"),
    ("s:8 c:2", "s:3 c:2 o:2", {}, "has the name of one of the input's"),
    ("c:2", "f:3 c:2 o:2", {}, "takes an input of batch dimensions"),
    ("s:8 c:2", "c:2 o:2", {}, "one to three spatial dimensions"),
    ("s:8 c:2", "f:3 c:2 o:2", {"padding": "FULL"}, 'must be "SAME" or'),
    ("s:8 c:2", "f:3 c:2 o:2", {"strides": 0}, "strides must be a positive"),
    ("s:8 c:2", "f:3 c:2 o:2", {"dilations": (1, 1)}, "dilations must be"),
    ("s:8 c:4", "f:3 g:2 o:3", {"groups": 2}, "divide by 2"),
    ("s:8 c:2", "f:3 c:2 o:2", {"groups": 0}, "groups must be 1 or more"),
    (
      "s:8 c:2",
      "f:3 c:2 o:2",
      {"padding": "VALID", "dilations": 4},
      "spans 9 positions does not fit into s:8",
    ),
  ],
)
def test_what_does_not_fit_is_told_when_the_graph_is_built(
  x, w, kwargs, message
):
  mesh = new_mesh()
  with pytest.raises(mtf.ShapeError, match=message):
    mtf.conv(tensor(mesh, x), tensor(mesh, w), **kwargs)


def test_gradients_of_another_shape_are_told():
  mesh = new_mesh()
  x, w = tensor(mesh, "s:8 c:2"), tensor(mesh, "f:3 c:2 o:2")
  dy = tensor(mesh, "s:5 o:2")
  with pytest.raises(mtf.ShapeError, match=r"gives \[s:8 o:2\], got"):
    mtf.conv_backprop_input(x.shape, w, dy)
  with pytest.raises(mtf.ShapeError, match=r"gives \[s:8 o:2\], got"):
    mtf.conv_backprop_filter(x, w.shape, dy)
  with pytest.raises(mtf.ShapeError, match="filter of 2 spatial dimensions"):
    mtf.conv2d_backprop_input(x.shape, w, dy, 1, "SAME")
  with pytest.raises(mtf.ShapeError, match="does not give"):
    image, filters = tensor(mesh, "h:4 w:4 o:2"), "h:3 w:2 c:2"
    mtf.conv2d_transpose_backprop_input(
      filters, tensor(mesh, "fh:2 fw:2 o:2 c:2"), image, 2, "SAME"
    )
  with pytest.raises(ValueError, match="one dtype"):
    mtf.conv(x, mtf.cast(w, tf.bfloat16))
  with pytest.raises(mtf.ShapeError, match="does not fit into s:8"):
    mtf.max_pool(x, (9,))
  with pytest.raises(ValueError, match="avg_pool takes floating point"):
    mtf.avg_pool(mtf.cast(x, tf.int32), (2,))
  with pytest.raises(mtf.ShapeError, match="pooling float32"):
    mtf.pool_backprop(
      tensor(mesh, "h:4 w:4 c:1"),
      tensor(mesh, "h:2 w:2 c:1"),
      tensor(mesh, "h:4 w:2 c:1"),
      (2, 2),
      (2, 2),
      "MAX_2D",
    )


def test_a_convolution_is_counted_in_what_a_program_costs():
  program = mtf.Program("x:2", "s:x", seed=0)

  @program.function
  def f(mesh):
    x = mtf.ones(mesh, "b:2 s:8 c:3")
    return mtf.conv(x, mtf.ones(mesh, "f:5 c:3 o:4"))

  cost = program.cost(f)
  assert cost.flops == 2 * (2 * 8 * 4) * (5 * 3)
  assert cost.flops_per_processor == cost.flops // 2
