"""TensorFlow's own kernels for the three products of a convolution.

They are for one group and no dilation. For names of axes see `kernels.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from .stencil import Stencil

Stencils = Sequence[Stencil]


def is_native(x: tf.Tensor, y: tf.Tensor, stencils: Stencils) -> bool:
  """Whether TensorFlow has all three products on every device."""
  groups = x.shape[len(stencils) + 1]
  is_dilated = any(s.dilation > 1 and s.size > 1 for s in stencils)
  # TensorFlow gets the shape of an empty result wrong.
  is_empty = 0 in x.shape.as_list() or 0 in y.shape.as_list()
  floating = x.dtype.is_floating
  return floating and groups == 1 and not is_dilated and not is_empty


def correlate(x: tf.Tensor, w: tf.Tensor, stencils: Stencils) -> tf.Tensor:
  """Makes y of x and w."""
  n = len(stencils)
  conv = tf.nn.conv3d if n == 3 else tf.nn.conv2d
  x, w = _without_group(x, n + 1, n), _without_group(w, n, n, is_filter=True)
  y = conv(x, w, _strides(stencils), "VALID")
  return _with_group(y, n)


def input_of(
  w: tf.Tensor, y: tf.Tensor, sizes: Sequence[int], stencils: Stencils
) -> tf.Tensor:
  """Makes x, with spatial axes of `sizes`, of w and y."""
  n = len(stencils)
  raw = tf.raw_ops
  y, w = _without_group(y, n + 1, n), _without_group(w, n, n, is_filter=True)
  height = [1] if n == 1 else []
  shape = [y.shape[0], *height, *sizes, w.shape[-2]]
  op = raw.Conv3DBackpropInputV2 if n == 3 else raw.Conv2DBackpropInput
  x = op(
    input_sizes=shape,
    filter=w,
    out_backprop=y,
    strides=_strides(stencils),
    padding="VALID",
  )
  return _with_group(x, n)


def filter_of(x: tf.Tensor, y: tf.Tensor, stencils: Stencils) -> tf.Tensor:
  """Makes w of x and y."""
  n = len(stencils)
  raw = tf.raw_ops
  x, y = _without_group(x, n + 1, n), _without_group(y, n + 1, n)
  height = [1] if n == 1 else []
  sizes = [*(s.size for s in stencils), x.shape[-1], y.shape[-1]]
  op = raw.Conv3DBackpropFilterV2 if n == 3 else raw.Conv2DBackpropFilter
  w = op(
    input=x,
    filter_sizes=[*height, *sizes],
    out_backprop=y,
    strides=_strides(stencils),
    padding="VALID",
  )
  return tf.reshape(w, [*sizes[:n], 1, *sizes[n:]])


def _strides(stencils: Stencils) -> list[int]:
  height = [1] if len(stencils) == 1 else []
  return [1, *height, *(s.stride for s in stencils), 1]


def _without_group(
  x: tf.Tensor, axis: int, n: int, is_filter: bool = False
) -> tf.Tensor:
  """Drops the group's axis; one spatial axis becomes two."""
  sizes = x.shape.as_list()
  del sizes[axis]
  if n == 1:
    sizes.insert(0 if is_filter else 1, 1)
  return tf.reshape(x, sizes)


def _with_group(x: tf.Tensor, n: int) -> tf.Tensor:
  sizes = x.shape.as_list()
  if n == 1:
    del sizes[1]
  return tf.reshape(x, [*sizes[: n + 1], 1, *sizes[n + 1 :]])
