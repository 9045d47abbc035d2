"""The three products of a convolution, on tensors without names.

A convolution is linear in each of two tensors. With y as a third one,

    sum over b, i, k, g, c, o of
      x[b, stride * i + dilation * k, g, c] * w[k, g, c, o] * y[b, i, g, o]

is linear in all three, and what each is multiplied with is a kernel here:
`correlate` makes y, `input_of` makes x, `filter_of` makes w. Each is a gradient
of the other two. i and k stand for one to three spatial axes each; a filter
connects channels within one group g only. There is no padding: x has just the
positions that are looked at.

TensorFlow's own kernels serve where there is one group and no dilation; for
the others, some devices lack a kernel. A loop over the filter's positions does
the rest: for each, a product of two matrices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import tensorflow as tf

from . import native
from .stencil import Stencil

Stencils = Sequence[Stencil]


def correlate(x: tf.Tensor, w: tf.Tensor, stencils: Stencils) -> tf.Tensor:
  """x: b, spatial, g, c; w: filter, g, c, o. Makes y: b, spatial, g, o."""
  if native.is_native(x, w, stencils):
    return native.correlate(x, w, stencils)
  n = len(stencils)
  outputs = _outputs(x.shape.as_list()[1 : 1 + n], stencils)
  total = None
  for at in positions(stencils):
    y = _contract("bgc,gco->bgo", _look(x, at, outputs, stencils), w[at])
    total = add_wide(total, y)
  sizes = [x.shape[0], *outputs, w.shape[n], w.shape[-1]]
  return tf.reshape(tf.cast(total, x.dtype), sizes)


def input_of(
  w: tf.Tensor, y: tf.Tensor, sizes: Sequence[int], stencils: Stencils
) -> tf.Tensor:
  """w: filter, g, c, o; y: b, spatial, g, o. Makes x with spatial `sizes`."""
  if native.is_native(y, w, stencils):
    return native.input_of(w, y, sizes, stencils)
  n = len(stencils)
  outputs = y.shape.as_list()[1 : 1 + n]
  flat = _flat(y, n)
  total = None
  for at in positions(stencils):
    x = _contract("bgo,gco->bgc", flat, w[at])
    x = tf.reshape(x, [y.shape[0], *outputs, *w.shape.as_list()[n:-1]])
    total = add_wide(total, spread(x, at, sizes, stencils))
  return tf.cast(total, y.dtype)


def filter_of(x: tf.Tensor, y: tf.Tensor, stencils: Stencils) -> tf.Tensor:
  """x: b, spatial, g, c; y: b, spatial, g, o. Makes w: filter, g, c, o."""
  if native.is_native(x, y, stencils):
    return native.filter_of(x, y, stencils)
  n = len(stencils)
  outputs = y.shape.as_list()[1 : 1 + n]
  flat = _flat(y, n)
  parts = [
    _contract("bgc,bgo->gco", _look(x, at, outputs, stencils), flat)
    for at in positions(stencils)
  ]
  sizes = [*(s.size for s in stencils), *parts[0].shape.as_list()]
  return tf.reshape(tf.stack(parts), sizes)


def positions(stencils: Stencils) -> Iterator[tuple[int, ...]]:
  """Every position of the filter."""
  return itertools.product(*(range(s.size) for s in stencils))


def _outputs(sizes: Sequence[int], stencils: Stencils) -> list[int]:
  pairs = zip(sizes, stencils, strict=True)
  return [(n - s.span) // s.stride + 1 for n, s in pairs]


def look(
  x: tf.Tensor,
  at: Sequence[int],
  outputs: Sequence[int],
  stencils: Stencils,
  behind: int,
) -> tf.Tensor:
  """What every output sees at one position of the filter.

  Args:
    x: any axes, spatial axes, `behind` further axes.
    at: the position in the filter.
    outputs: how many there are along each spatial axis.
    stencils: one for each spatial axis.
    behind: the number of axes after the spatial ones.
  """
  front, sizes = _split(x, len(stencils), behind)
  # Few axes: TensorFlow does not do this with many.
  x = tf.reshape(x, [math.prod(front), *sizes])
  index = [slice(None)]
  for k, n, s in zip(at, outputs, stencils, strict=True):
    begin = k * s.dilation
    index.append(slice(begin, begin + (n - 1) * s.stride + 1, s.stride))
  y = x[tuple(index)]
  return tf.reshape(y, [*front, *y.shape.as_list()[1:]])


def _split(
  x: tf.Tensor, spatial: int, behind: int
) -> tuple[list[int], list[int]]:
  """The sizes before the spatial axes, and the others."""
  sizes = x.shape.as_list()
  first = len(sizes) - behind - spatial
  return sizes[:first], sizes[first:]


def _look(
  x: tf.Tensor, at: Sequence[int], outputs: Sequence[int], stencils: Stencils
) -> tf.Tensor:
  return _flat(look(x, at, outputs, stencils, behind=2), len(stencils))


def spread(
  x: tf.Tensor,
  at: Sequence[int],
  sizes: Sequence[int],
  stencils: Stencils,
  behind: int = 2,
) -> tf.Tensor:
  """The adjoint of `look`: puts outputs where they look; zeros elsewhere."""
  front, own = _split(x, len(stencils), behind)
  x = tf.reshape(x, [math.prod(front), *own])
  for i, (k, n, s) in enumerate(zip(at, sizes, stencils, strict=True)):
    x = _spread_axis(x, 1 + i, k * s.dilation, n, s.stride)
  return tf.reshape(x, [*front, *x.shape.as_list()[1:]])


def _spread_axis(
  x: tf.Tensor, axis: int, begin: int, size: int, stride: int
) -> tf.Tensor:
  count = x.shape[axis]
  if stride > 1:
    sizes = x.shape.as_list()
    pads = [[0, 0] for _ in range(len(sizes) + 1)]
    pads[axis + 1] = [0, stride - 1]
    x = tf.pad(tf.expand_dims(x, axis + 1), pads)
    sizes[axis] = count * stride
    x = tf.reshape(x, sizes)
    sizes[axis] = (count - 1) * stride + 1
    x = tf.slice(x, [0] * len(sizes), sizes)
  pads = [[0, 0] for _ in range(x.shape.rank)]
  pads[axis] = [begin, size - begin - x.shape[axis]]
  return tf.pad(x, pads)


def _flat(x: tf.Tensor, n: int) -> tf.Tensor:
  """Batch and spatial axes as one."""
  front, behind = x.shape.as_list()[: 1 + n], x.shape.as_list()[1 + n :]
  return tf.reshape(x, [math.prod(front), *behind])


def _contract(equation: str, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """`tf.einsum`; where nothing but the batch is summed, a mere product."""
  groups, channels = x.shape[1], x.shape[2]
  if groups == 1:
    product = _contract_one(equation, x, y)
  elif channels == 1 and equation == "bgc,gco->bgo":
    product = x * y[:, 0, :]
  elif channels == 1 and equation == "bgo,gco->bgc":
    product = x * y[:, :, 0]
  elif channels == y.shape[2] == 1 and equation == "bgc,bgo->gco":
    product = tf.reduce_sum(x * y, 0)[:, :, tf.newaxis]
  else:
    product = tf.einsum(equation, x, y)
  return product


def _contract_one(equation: str, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """The same for one group: a product of two matrices."""
  if equation == "bgc,gco->bgo":
    return tf.matmul(x[:, 0], y[0])[:, tf.newaxis]
  if equation == "bgo,gco->bgc":
    return tf.matmul(x[:, 0], y[0], transpose_b=True)[:, tf.newaxis]
  return tf.matmul(x[:, 0], y[:, 0], transpose_a=True)[tf.newaxis]


def add_wide(total: tf.Tensor | None, x: tf.Tensor) -> tf.Tensor:
  """A sum of narrow floats is taken in float32."""
  if x.dtype in (tf.bfloat16, tf.float16):
    x = tf.cast(x, tf.float32)
  return x if total is None else total + x
