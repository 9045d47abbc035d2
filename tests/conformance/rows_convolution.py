"""Rows of what looks at neighbours: convolutions, pooling, halo exchange."""

import numpy as np

import mesh_tf2 as mtf

from tests.conformance.row import row
from tests.support import convolutions

NARROW = ("bfloat16", "float64")
LINE, IMAGE = "b:2 s:8 c:4", "b:2 h:4 w:4 c:2"
POOLED = "b:2 h:8 w:4 c:2"


def _conv(label, shapes, out, *args, **kwargs):
  """A convolution that is called with `args`."""
  return row(
    f"conv: {label}",
    lambda mesh, x, w: mtf.conv(x, w, *args),
    shapes,
    lambda x, w: convolutions.conv(x, w, *args),
    out,
    unsplit="f fh fw fd g",
    **kwargs,
  )


def _transpose(label, shapes, out, *args):
  """A transposed convolution; the filter is that of the way back."""
  size = mtf.convert_to_shape(out).to_integer_list
  return row(
    f"conv_transpose: {label}",
    lambda mesh, x, w: mtf.conv_transpose(x, w, *args),
    shapes,
    lambda x, w: convolutions.input_of(w, x, size, *args),
    out,
    unsplit="f fh fw fd",
  )


def _backprop(name, x, w, y, *args):
  """The two gradients of `name`, which takes x to y."""
  is_transpose = "transpose" in name
  x_size, w_size = (mtf.convert_to_shape(s).to_integer_list for s in (x, w))
  of_input = getattr(mtf, f"{name}_backprop_input")
  of_filter = getattr(mtf, f"{name}_backprop_filter")

  def dx(w, dy):
    if is_transpose:
      return convolutions.conv(dy, w, *args)
    return convolutions.input_of(w, dy, x_size, *args)

  def dw(x, dy):
    wide, narrow = (dy, x) if is_transpose else (x, dy)
    return convolutions.filter_of(wide, narrow, w_size, *args)

  return [
    row(
      f"{name}_backprop_input",
      lambda mesh, w, dy: of_input(x, w, dy, *args),
      [w, y],
      dx,
      [x],
      unsplit="f fh fw fd",
    ),
    row(
      f"{name}_backprop_filter",
      lambda mesh, x, dy: of_filter(x, w, dy, *args),
      [x, y],
      dw,
      [w],
      unsplit="f fh fw fd",
    ),
  ]


def _pool(name, reduce, label, shape, out, *args, **kwargs):
  fn = getattr(mtf, name)
  return row(
    f"{name}: {label}",
    lambda mesh, x: fn(x, *args),
    [shape],
    lambda x: convolutions.pool(reduce, x, *args),
    out,
    **kwargs,
  )


def _halo(label, fn, size, wrap):
  blocks, block = mtf.Dimension("blocks", 4), mtf.Dimension("block", 2)
  sides = 2 if fn is mtf.halo_exchange else 1
  out = 2 + sides * size

  def reference(x):
    line = x.reshape([8, 2])
    y = np.zeros([4, out, 2])
    for i in range(4):
      for j in range(out):
        at = 2 * i + j - size
        if wrap or 0 <= at < 8:
          y[i, j] = line[at % 8]
    return y

  return row(
    f"{fn.__name__}: {label}",
    lambda mesh, x: fn(x, blocks, block, size, wrap),
    ["blocks:4 block:2 c:2"],
    reference,
    f"blocks:4 block:{out} c:2",
    unsplit="block",
  )


def _pool_backprop(label, kind, ksize, strides, shape, pooled, reference):
  pool = mtf.max_pool if kind.startswith("MAX") else mtf.avg_pool

  def build(mesh, x, dy):
    y = pool(x, ksize, strides)
    return mtf.pool_backprop(x, y, dy, ksize, strides, kind)

  return row(
    f"pool_backprop: {label}", build, [shape, pooled], reference, shape
  )


ROWS = [
  _conv("of a line", [LINE, "f:3 c:4 o:4"], "b:2 s:8 o:4", dtypes=NARROW),
  _conv(
    "without padding: fewer positions, in other places",
    [LINE, "f:5 c:4 o:2"],
    "b:2 s:4 o:2",
    1,
    "VALID",
  ),
  _conv(
    "in steps, with gaps",
    [LINE, "f:3 c:4 o:2"],
    "b:2 s:4 o:2",
    2,
    "SAME",
    2,
    dtypes=NARROW,
  ),
  _conv(
    "in steps that do not divide the length",
    ["b:2 s:10 c:4", "f:2 c:4 o:2"],
    "b:2 s:4 o:2",
    3,
  ),
  _conv(
    "steps over what is never seen",
    ["s:8 c:4", "f:1 c:4 o:2"],
    "s:4 o:2",
    2,
    "VALID",
  ),
  _conv(
    "a filter wider than some blocks",
    [LINE, "f:8 c:4 o:2"],
    "b:2 s:8 o:2",
  ),
  _conv(
    "in two groups",
    ["b:2 s:4 c:8", "f:3 g:4 o:4"],
    "b:2 s:4 o:4",
    1,
    "SAME",
    1,
    2,
    dtypes=NARROW,
  ),
  _conv(
    "a filter for each channel, which keeps its name",
    ["b:2 s:4 c:8", "f:3 g:1 c:8"],
    "b:2 s:4 c:8",
    1,
    "SAME",
    1,
    8,
    dtypes=NARROW,
  ),
  _conv(
    "several filters for each channel",
    ["s:4 c:4", "f:2 g:1 o:8"],
    "s:4 o:8",
    1,
    "SAME",
    1,
    4,
  ),
  _conv(
    "of an image",
    [IMAGE, "fh:3 fw:2 c:2 o:4"],
    "b:2 h:4 w:4 o:4",
    dtypes=NARROW,
  ),
  _conv(
    "of an image, each direction in its own way",
    [POOLED, "fh:3 fw:2 c:2 o:2"],
    "b:2 h:4 w:4 o:2",
    (2, 1),
    "SAME",
    (1, 2),
  ),
  _conv(
    "of a volume, without a batch",
    ["d:2 h:4 w:2 c:2", "fd:2 fh:3 fw:1 c:2 o:2"],
    "d:2 h:4 w:2 o:2",
  ),
  _conv(
    "with two batch dimensions",
    ["a:2 b:2 s:4 c:2", "f:3 c:2 o:2"],
    "a:2 b:2 s:4 o:2",
  ),
  _transpose("of a line", ["b:2 s:4 c:4", "f:3 o:2 c:4"], "b:2 s:8 o:2", 2),
  _transpose(
    "without padding",
    ["b:2 s:4 c:4", "f:5 o:2 c:4"],
    "b:2 s:8 o:2",
    1,
    "VALID",
  ),
  _transpose(
    "of an image",
    ["b:2 h:2 w:4 c:2", "fh:2 fw:3 o:4 c:2"],
    "b:2 h:4 w:8 o:4",
    2,
  ),
  _transpose(
    "of a volume",
    ["d:2 h:2 w:2 c:2", "fd:2 fh:2 fw:2 o:2 c:2"],
    "d:4 h:4 w:4 o:2",
    2,
  ),
  *_backprop("conv", LINE, "f:3 c:4 o:2", "b:2 s:4 o:2", 2, "SAME", 2),
  *_backprop(
    "conv2d", IMAGE, "fh:3 fw:2 c:2 o:4", "b:2 h:2 w:2 o:4", (2, 2), "SAME"
  ),
  *_backprop(
    "conv3d",
    "d:4 h:2 w:2 c:2",
    "fd:3 fh:2 fw:1 c:2 o:2",
    "d:2 h:1 w:2 o:2",
    (1, 1, 1),
    "VALID",
  ),
  *_backprop(
    "conv2d_transpose",
    "b:2 h:2 w:2 c:2",
    "fh:2 fw:2 o:2 c:2",
    "b:2 h:4 w:4 o:2",
    (2, 2),
    "SAME",
  ),
  *_backprop(
    "conv3d_transpose",
    "d:2 h:1 w:2 c:2",
    "fd:2 fh:2 fw:2 o:2 c:2",
    "d:4 h:2 w:4 o:2",
    (2, 2, 2),
    "SAME",
  ),
  _pool(
    "max_pool",
    np.max,
    "of an image",
    POOLED,
    "b:2 h:4 w:2 c:2",
    (2, 2),
    dtypes=NARROW,
  ),
  _pool(
    "max_pool",
    np.max,
    "windows that overlap and reach out",
    POOLED,
    "b:2 h:4 w:4 c:2",
    (3, 2),
    (2, 1),
    "SAME",
    dtypes=NARROW,
  ),
  _pool(
    "max_pool",
    np.max,
    "of a line, with a rest",
    "s:10 c:2",
    "s:4 c:2",
    (4,),
    2,
    "VALID",
  ),
  _pool(
    "max_pool",
    np.max,
    "of a volume",
    "d:4 h:4 w:2 c:2",
    "d:2 h:2 w:2 c:2",
    (2, 2, 1),
  ),
  _pool(
    "avg_pool",
    np.mean,
    "of an image",
    POOLED,
    "b:2 h:4 w:2 c:2",
    (2, 2),
    dtypes=NARROW,
  ),
  _pool(
    "avg_pool",
    np.mean,
    "windows that overlap and reach out",
    POOLED,
    "b:2 h:4 w:4 c:2",
    (3, 3),
    (2, 1),
    "SAME",
    dtypes=NARROW,
  ),
  _pool_backprop(
    "the largest, of an image",
    "MAX_2D",
    (2, 2),
    (2, 2),
    POOLED,
    "b:2 h:4 w:2 c:2",
    lambda x, dy: convolutions.largest_gets(x, dy, (2, 2)),
  ),
  _pool_backprop(
    "the largest, of windows that overlap",
    "MAX_2D",
    (3, 2),
    (1, 2),
    "h:6 w:4 c:2",
    "h:4 w:2 c:2",
    lambda x, dy: convolutions.largest_gets(x, dy, (3, 2), (1, 2)),
  ),
  _pool_backprop(
    "the mean, of a volume",
    "AVG_3D",
    (2, 1, 2),
    (2, 1, 2),
    "d:4 h:2 w:4 c:2",
    "d:2 h:2 w:2 c:2",
    lambda x, dy: convolutions.mean_gets(x.shape, dy, (2, 1, 2)),
  ),
  _halo("part of a block", mtf.halo_exchange, 1, False),
  _halo("more than a block", mtf.halo_exchange, 3, False),
  _halo("whole blocks, in a ring", mtf.halo_exchange, 4, True),
  _halo("more than there is, in a ring", mtf.halo_exchange, 11, True),
  _halo("more than a block", mtf.left_halo_exchange, 3, False),
  _halo("in a ring", mtf.left_halo_exchange, 1, True),
]
