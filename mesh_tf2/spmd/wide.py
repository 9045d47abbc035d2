"""Sums of 16-bit floats, added up in float32.

bfloat16 cannot tell 256 + 1 from 256, nor float16 2048 + 1 from 2048: a long
sum that is added up in its own dtype stops growing. Here only the result is
rounded to 16 bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import tensorflow as tf

from . import slices as on_slice

_NARROW = (tf.bfloat16, tf.float16)
_FEW = 64  # terms that may be added up in any dtype


def is_long(dtype: tf.DType, terms: int) -> bool:
  """Whether a sum of so many terms is to be taken in float32."""
  return dtype in _NARROW and terms > _FEW


def reduce_sum(x: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
  """`tf.reduce_sum` over some axes of static size."""
  terms = math.prod(x.shape[i] for i in axes)
  if not is_long(x.dtype, terms):
    return tf.reduce_sum(x, on_slice.constant(axes))
  total = tf.reduce_sum(tf.cast(x, tf.float32), on_slice.constant(axes))
  return tf.cast(total, x.dtype)


def add_all(xs: Sequence[tf.Tensor]) -> tf.Tensor:
  """The sum of several tensors of one shape."""
  dtype = xs[0].dtype
  if is_long(dtype, len(xs)):
    xs = [tf.cast(x, tf.float32) for x in xs]
  return tf.cast(functools.reduce(tf.add, xs), dtype)


def einsum(equation: str, *xs: tf.Tensor) -> tf.Tensor:
  """`tf.einsum` of tensors of one dtype and static sizes."""
  dtype = xs[0].dtype
  if not is_long(dtype, _terms(equation, xs)) or _kernel_is_wide(dtype):
    return tf.einsum(equation, *xs)
  wide = [tf.cast(x, tf.float32) for x in xs]
  return tf.cast(tf.einsum(equation, *wide), dtype)


def _terms(equation: str, xs: Sequence[tf.Tensor]) -> int:
  """How many products are added up for one element of the result."""
  inputs, output = equation.split("->")
  sizes = {
    letter: n
    for term, x in zip(inputs.split(","), xs, strict=True)
    for letter, n in zip(term, x.shape.as_list(), strict=True)
  }
  return math.prod(n for letter, n in sizes.items() if letter not in output)


@functools.cache
def _kernel_is_wide(dtype: tf.DType) -> bool:
  """Whether TensorFlow's own kernels add up in float32.

  On accelerators they do, and on a CPU where oneDNN computes them. Those that
  are used without it do not (seen in TensorFlow 2.21), so one is tried.
  """
  count = 4096
  with tf.init_scope(), tf.device("cpu:0"):
    x = tf.ones([4, count], dtype)
    products = [tf.einsum("ab,cb->ac", x, x), tf.einsum("a,a->", x[0], x[0])]
    return all(float(tf.reduce_min(y)) == count for y in products)
