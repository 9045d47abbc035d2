"""An order of all numbers, by integers: what elements are compared by.

Integers compare exactly on every device, where floats may be flushed to zero
and NaN compares with nothing. Zero and minus zero are equal here. NaN is larger
than all numbers, as in `numpy.sort`.
"""

from __future__ import annotations

import enum

import tensorflow as tf

from .operands import Kind


class First(enum.Enum):
  """Which elements come first: those with the largest keys."""

  LARGEST = "the largest: NaN, then inf, ..."
  SMALLEST = "the smallest: -inf, ..., inf, NaN"
  SMALLEST_NAN_BEFORE = "NaN, then the smallest: -inf, ..., inf"


def check_ordered(op: str, dtype: tf.DType) -> None:
  """Raises ValueError on a dtype whose elements have no order."""
  if dtype != tf.bool:
    Kind.ORDERED.check(op, dtype)


def to_key(x: tf.Tensor, first: First) -> tf.Tensor:
  """int32 or int64, larger for an element that comes before; equal for equal.

  Args:
    x: bool, integers or floats.
    first: which elements come first.
  """
  key = _rising(x)
  if first is First.LARGEST:
    return key
  falling = tf.bitwise.invert(key)
  if first is First.SMALLEST or not x.dtype.is_floating:
    return falling
  return tf.where(tf.equal(key, key.dtype.max), key, falling)


def from_key(key: tf.Tensor, dtype: tf.DType, first: First) -> tf.Tensor:
  """The element with this key. A zero has lost its sign, a NaN its bits."""
  if first is not First.LARGEST:
    falling = tf.bitwise.invert(key)
    if first is First.SMALLEST_NAN_BEFORE and dtype.is_floating:
      falling = tf.where(tf.equal(key, key.dtype.max), key, falling)
    key = falling
  if dtype.is_floating:
    wide = tf.float64 if key.dtype == tf.int64 else tf.float32
    return tf.cast(tf.bitcast(_fold(key), wide), dtype)
  if dtype == tf.uint64:
    return tf.bitwise.bitwise_xor(tf.bitcast(key, dtype), _top_bit())
  return tf.cast(key, dtype)


def _rising(x: tf.Tensor) -> tf.Tensor:
  """Integers in the order of the elements."""
  if x.dtype.is_floating:
    return _of_float(x if x.dtype.size > 4 else tf.cast(x, tf.float32))
  if x.dtype == tf.uint64:
    return tf.bitcast(tf.bitwise.bitwise_xor(x, _top_bit()), tf.int64)
  is_wide = x.dtype.size > 4 or x.dtype == tf.uint32
  return tf.cast(x, tf.int64 if is_wide else tf.int32)


def _of_float(x: tf.Tensor) -> tf.Tensor:
  key = _fold(tf.bitcast(x, tf.int32 if x.dtype.size == 4 else tf.int64))
  infinity = tf.bitcast(tf.constant(float("inf"), x.dtype), key.dtype)
  is_nan = tf.logical_or(key > infinity, key < -infinity)
  return tf.where(is_nan, key.dtype.max, key)


def _fold(bits: tf.Tensor) -> tf.Tensor:
  """From sign and magnitude, as floats are kept, to an integer; and back."""
  return tf.where(bits < 0, bits.dtype.min - bits, bits)


def _top_bit() -> tf.Tensor:
  return tf.constant(1 << 63, tf.uint64)
