"""Convolution and pooling layers, against TensorFlow without a mesh."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import setting
from tests.support.running import Run, new_mesh, run, tensor

RNG = np.random.default_rng(0)
LAYOUTS = [
  ("", ""),
  ("x:2;y:2", "batch:x;out:y"),
  ("x:2;y:2", "h:x;w:y"),
  ("x:2", "in:x"),
]
O = mtf.Dimension("out", 4)


def _numbers(*size):
  return RNG.normal(size=size).astype(np.float32)


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv2d_is_tensorflows(mesh, layout, padding):
  x, w = _numbers(4, 12, 8, 4), _numbers(5, 1, 4, 4)

  def build(mesh):
    image = tensor(mesh, "batch:4 h:12 w:8 in:4", x)
    return mtf.layers.conv2d(
      image,
      O,
      (5, 1),
      (2, 1),
      padding,
      filter_initializer=lambda size, dtype: tf.constant(w, dtype),
    )

  got = run(build, mesh, layout)
  want = tf.nn.conv2d(x, w, [1, 2, 1, 1], padding).numpy()
  np.testing.assert_allclose(got.value(), want, 1e-4, 1e-4)
  got.check_slices(got.tensors[0], got.value())


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_conv2d_transpose_is_tensorflows(mesh, layout):
  x, w = _numbers(4, 4, 6, 4), _numbers(3, 2, 4, 4)

  def build(mesh):
    image = tensor(mesh, "batch:4 h:4 w:6 in:4", x)
    return mtf.layers.conv2d_transpose(
      image,
      O,
      (3, 2),
      filter_initializer=lambda size, dtype: tf.constant(w, dtype),
    )

  want = tf.nn.conv2d_transpose(x, w, [4, 8, 12, 4], 2).numpy()
  np.testing.assert_allclose(run(build, mesh, layout).value(), want, 1e-4, 1e-4)


def test_conv1d_is_tensorflows_and_its_length_may_be_split():
  x, w = _numbers(2, 8, 3), _numbers(1, 5, 3, 4)

  def build(mesh):
    line = tensor(mesh, "batch:2 length:8 in:3", x)
    return mtf.layers.conv1d(
      line,
      O,
      5,
      2,
      filter_initializer=lambda size, dtype: tf.constant(w, dtype),
    )

  want = tf.nn.conv1d(x, w[0], 2, "SAME").numpy()
  for mesh, layout in [("", ""), ("x:4", "length:x")]:
    got = run(build, mesh, layout)
    assert got.tensors[0].shape == mtf.convert_to_shape(
      "batch:2 length:4 out:4"
    )
    np.testing.assert_allclose(got.value(), want, 1e-4, 1e-4)


def test_conv3d_and_its_transpose_are_tensorflows():
  x, w = _numbers(2, 4, 4, 2, 3), _numbers(3, 2, 1, 3, 4)
  back = _numbers(2, 2, 2, 4, 3)

  def build(mesh):
    volume = tensor(mesh, "batch:2 d:4 h:4 w:2 in:3", x)
    return [
      mtf.layers.conv3d(
        volume,
        O,
        (3, 2, 1),
        filter_initializer=lambda size, dtype: tf.constant(w, dtype),
      ),
      mtf.layers.conv3d_transpose(
        volume,
        O,
        filter_initializer=lambda size, dtype: tf.constant(back, dtype),
      ),
    ]

  whole = [
    tf.nn.conv3d(x, w, [1] * 5, "SAME").numpy(),
    tf.nn.conv3d_transpose(x, back, [2, 8, 8, 4, 4], [1, 2, 2, 2, 1]).numpy(),
  ]
  for mesh, layout in [("", ""), ("x:2;y:2", "d:x;h:y")]:
    got = run(build, mesh, layout)
    for i, want in enumerate(whole):
      np.testing.assert_allclose(got.value(i), want, 1e-4, 1e-4)


def test_a_grouped_layer_has_a_kernel_for_the_channels_of_one_group():
  def build(mesh):
    x = tensor(mesh, "batch:2 h:4 w:4 in:8", _numbers(2, 4, 4, 8))
    return mtf.layers.conv2d(x, O, groups=4, name="grouped")

  made = run(build)
  (kernel,) = made.mesh.graph.all_variables
  assert kernel.full_name == "grouped/kernel"
  assert str(kernel.shape) == "fh:3 fw:3 in_group:2 out:4"


def test_variables_have_the_originals_names_and_shapes():
  mesh = new_mesh()
  x = tensor(mesh, "batch:2 h:4 w:4 in:3", np.zeros([2, 4, 4, 3]))
  line = tensor(mesh, "batch:2 length:4 in:3", np.zeros([2, 4, 3]))
  mtf.layers.conv2d(x, O)
  mtf.layers.conv2d(x, O, name="second")
  mtf.layers.conv2d_transpose(x, O)
  mtf.layers.conv1d(line, O, name="line")
  mtf.layers.separable_conv1d(line, O, -1, 0)
  found = {v.full_name: str(v.shape) for v in mesh.graph.all_variables}
  depthwise = "separable_conv1d/depthwise_conv_hack/depthwise_dense"
  assert found == {
    "conv2d/kernel": "fh:3 fw:3 in:3 out:4",
    "second/kernel": "fh:3 fw:3 in:3 out:4",
    "conv2d_transpose/kernel": "fh:2 fw:2 out:4 in:3",
    "line/kernel": "fh:1 fw:3 in:3 out:4",
    f"{depthwise}_0/kernel": "in:3",
    f"{depthwise}_0/bias": "in:3",
    f"{depthwise}_1/kernel": "in:3",
    "separable_conv1d/pointwise_dense/kernel": "in:3 out:4",
    "separable_conv1d/pointwise_dense/bias": "out:4",
  }


def _blocks(whole, rows, cols):
  """batch, height, width, channels as batch, blocks, blocks, ..., channels."""
  n, h, w, c = whole.shape
  cut = whole.reshape([n, rows, h // rows, cols, w // cols, c])
  return cut.transpose([0, 1, 3, 2, 4, 5])


@pytest.mark.parametrize(
  ("size", "strides", "padding"),
  [
    ((3, 3), (1, 1), "SAME"),
    ((9, 9), (1, 1), "SAME"),  # wider than a block
    ((2, 4), (1, 1), "SAME"),  # even
    ((3, 3), (2, 1), "SAME"),
    ((5, 5), (1, 1), "VALID"),
  ],
)
@pytest.mark.parametrize("layout", ["", "rows:x;cols:y"])
def test_a_convolution_in_blocks_is_that_of_the_whole_image(
  size, strides, padding, layout
):
  x, w = _numbers(2, 12, 12, 3), _numbers(*size, 3, 4)
  rows, cols = mtf.Dimension("rows", 2), mtf.Dimension("cols", 2)

  def build(mesh):
    image = tensor(mesh, "batch:2 rows:2 cols:2 h:6 w:6 in:3", _blocks(x, 2, 2))
    return mtf.layers.conv2d_with_blocks(
      image,
      O,
      size,
      strides,
      padding,
      rows,
      cols,
      filter_initializer=lambda size, dtype: tf.constant(w, dtype),
    )

  whole = tf.nn.conv2d(x, w, [1, *strides, 1], padding).numpy()
  got = run(build, "x:2;y:2", layout)
  np.testing.assert_allclose(got.value(), _blocks(whole, 2, 2), 1e-4, 1e-4)
  if layout:
    assert set(got.kinds) == {"shift"}


@pytest.mark.parametrize("size", [(2, 2), (3, 3), (4, 4)])
def test_a_transposed_convolution_in_blocks_is_that_of_the_whole_image(size):
  x, w = _numbers(2, 8, 4, 3), _numbers(*size, 4, 3)
  rows = mtf.Dimension("rows", 4)

  def build(mesh):
    image = tensor(
      mesh, "batch:2 rows:4 h:2 w:4 in:3", _blocks(x, 4, 1)[:, :, 0]
    )
    return mtf.layers.conv2d_transpose_with_blocks(
      image,
      O,
      size,
      h_blocks_dim=rows,
      filter_initializer=lambda size, dtype: tf.constant(w, dtype),
    )

  whole = tf.nn.conv2d_transpose(x, w, [2, 16, 8, 4], 2).numpy()
  got = run(build, "x:4", "rows:x")
  np.testing.assert_allclose(
    got.value(), _blocks(whole, 4, 1)[:, :, 0], 1e-4, 1e-4
  )


def test_a_volume_in_blocks_is_convolved_as_a_whole():
  x = _numbers(4, 6, 2, 3)
  w, back = _numbers(3, 3, 3, 3, 4), _numbers(2, 2, 2, 4, 3)
  d, h = mtf.Dimension("d_blocks", 2), mtf.Dimension("h_blocks", 2)
  blocks = x.reshape([2, 2, 2, 3, 2, 3]).transpose([0, 2, 1, 3, 4, 5])

  def build(mesh):
    volume = tensor(mesh, "d_blocks:2 h_blocks:2 d:2 h:3 w:2 in:3", blocks)
    return [
      mtf.layers.conv3d_with_blocks(
        volume,
        O,
        d_blocks_dim=d,
        h_blocks_dim=h,
        filter_initializer=lambda size, dtype: tf.constant(w, dtype),
      ),
      mtf.layers.conv3d_transpose_with_blocks(
        volume,
        O,
        d_blocks_dim=d,
        h_blocks_dim=h,
        filter_initializer=lambda size, dtype: tf.constant(back, dtype),
      ),
    ]

  got = run(build, "x:2;y:2", "d_blocks:x;h_blocks:y")
  whole = tf.nn.conv3d(x[None], w, [1] * 5, "SAME")[0].numpy()
  larger = tf.nn.conv3d_transpose(
    x[None], back, [1, 8, 12, 4, 4], [1, 2, 2, 2, 1]
  )[0].numpy()
  for i, (want, cut) in enumerate(
    [(whole, [2, 2, 2, 3, 2, 4]), (larger, [2, 4, 2, 6, 4, 4])]
  ):
    want = want.reshape(cut).transpose([0, 2, 1, 3, 4, 5])
    np.testing.assert_allclose(got.value(i), want, 1e-4, 1e-4)


def test_separable_convolution_is_a_loop_over_positions_and_a_product():
  x = _numbers(2, 8, 3)

  def build(mesh):
    line = tensor(mesh, "batch:2 length:8 in:3", x)
    kernels = [tensor(mesh, "in:3", w) for w in np.arange(9.0).reshape([3, 3])]
    y = mtf.layers.separable_conv1d(
      line, O, -2, 0, kernel_depth_weights=kernels
    )
    (kernel, *_) = [
      v
      for v in mesh.graph.all_variables
      if v.full_name.endswith("pointwise_dense/kernel")
    ]
    return [y, kernel.outputs[0]]

  first = None
  for mesh, layout in [("", ""), ("x:4", "length:x"), ("x:2", "out:x")]:
    got = Run(build, setting(mesh, layout))
    y, kernel = got.values
    padded = np.pad(x, [(0, 0), (2, 0), (0, 0)])
    want = sum(
      padded[:, i : i + 8] * np.arange(9.0).reshape([3, 3])[i] for i in range(3)
    )
    np.testing.assert_allclose(y, want @ kernel, 1e-4, 1e-4)
    first = y if first is None else first
    np.testing.assert_allclose(y, first, 1e-4, 1e-4)


def test_pooling_layers_are_tensorflows():
  x, volume = _numbers(2, 8, 4, 3), _numbers(2, 4, 4, 2, 3)

  def build(mesh):
    image = tensor(mesh, "batch:2 h:8 w:4 c:3", x)
    cube = tensor(mesh, "batch:2 d:4 h:4 w:2 c:3", volume)
    layers = mtf.layers
    return [
      layers.max_pool2d(image),
      layers.avg_pool2d(image, (4, 1)),
      layers.max_pool3d(cube),
      layers.avg_pool3d(cube, (1, 2, 2)),
      layers.max_pool2d(image, (1, 1)),
    ]

  wanted = [
    tf.nn.max_pool2d(x, 2, 2, "VALID"),
    tf.nn.avg_pool2d(x, (4, 1), (4, 1), "VALID"),
    tf.nn.max_pool3d(volume, 2, 2, "VALID"),
    tf.nn.avg_pool3d(volume, (1, 2, 2), (1, 2, 2), "VALID"),
    x,
  ]
  for mesh, layout in [("", ""), ("x:2", "h:x"), ("x:2", "batch:x")]:
    got = run(build, mesh, layout)
    assert not got.kinds
    for i, want in enumerate(wanted):
      np.testing.assert_allclose(got.value(i), want, 1e-5, 1e-5)


def test_what_does_not_fit_is_told_with_the_way_out():
  mesh = new_mesh()
  x = tensor(mesh, "batch:2 blocks:3 h:4 w:4 in:3", np.zeros([2, 3, 4, 4, 3]))
  blocks = mtf.Dimension("blocks", 3)
  with pytest.raises(mtf.ShapeError, match="do not divide into 3 blocks"):
    mtf.layers.conv2d_with_blocks(
      x, O, (3, 3), (1, 1), "VALID", h_blocks_dim=blocks
    )
  with pytest.raises(mtf.ShapeError, match="not among those before height"):
    mtf.layers.conv2d_with_blocks(x, O, h_blocks_dim=mtf.Dimension("no", 3))
  with pytest.raises(mtf.ShapeError, match="for each of 2 spatial dimensions"):
    mtf.layers.conv2d(x, O, (3, 3, 3))
  with pytest.raises(mtf.ShapeError, match="does not divide into 2 groups"):
    mtf.layers.conv2d(x, O, groups=2)
  with pytest.raises(ValueError, match="2 kernels for 3 positions"):
    mtf.layers.separable_conv1d(x, O, kernel_depth_weights=[x, x])
  with pytest.raises(mtf.ShapeError, match="max_pool2d: ksize"):
    mtf.layers.max_pool2d(x, (2,))
