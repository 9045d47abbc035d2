"""Random numbers that are a function of a key and a position.

The bits of element i are SplitMix64's i-th output from the state `key`
(Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA
2014). A slice computes the bits of its own elements, so a value depends neither
on the layout nor on the order of execution, and costs no communication.

Up to the last step all arithmetic is on integers or is exact in float32, so
that every device and every vector length gives the same bits.
"""

from __future__ import annotations

import functools
import statistics

import numpy as np
import tensorflow as tf

from . import slices as on_slice

_GAMMA = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, odd
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_KNOT_BITS = 7  # knots of the normal quantile function in each binade


def mix(z: tf.Tensor) -> tf.Tensor:
  """The finaliser of SplitMix64: a bijection of uint64 that looks random."""
  for shift, factor in _ROUNDS:
    z = (z ^ _shift_right(z, shift)) * _u64(factor)
  return z ^ _shift_right(z, 31)


def fold(key: tf.Tensor, value: tf.Tensor | int) -> tf.Tensor:
  """A key for the stream `value` (an integer) below `key`: uint64 scalar."""
  if isinstance(value, int):
    return mix(key + _u64(_mix_number(value + _GAMMA)))
  return mix(key + mix(tf.cast(value, tf.uint64) + _gamma()))


def _mix_number(z: int) -> int:
  """The same as `mix` of a number that is known."""
  z &= 2**64 - 1
  for shift, factor in _ROUNDS:
    z = (z ^ (z >> shift)) * factor & (2**64 - 1)
  return z ^ (z >> 31)


def bits(key: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
  """64 random bits for each position in `index` (uint64)."""
  return mix(key + (index + _u64(1)) * _gamma())


def uniform(random_bits: tf.Tensor) -> tf.Tensor:
  """float32 in [0, 1), a multiple of 2^-24."""
  return tf.cast(_shift_right(random_bits, 40), tf.float32) * 2.0**-24


def normal(random_bits: tf.Tensor, cut: float | None = None) -> tf.Tensor:
  """Standard normal float32, or truncated to [-cut, cut].

  The quantile function is interpolated between knots that are evenly spaced in
  each power of two below one half; the error is below 1e-5.
  """
  is_lower, tail = _halves(random_bits)
  if cut is not None:
    least = statistics.NormalDist().cdf(-cut)
    tail = least + tail * (1 - 2 * least)
  z = _interpolate(tail, _normal_quantiles())
  return tf.where(is_lower, z, -z)


def gumbel(random_bits: tf.Tensor) -> tf.Tensor:
  """Standard Gumbel float32, from about -3.1 to 22.9; made like `normal`."""
  is_lower, tail = _halves(random_bits)
  lower = _interpolate(tail, _gumbel_quantiles(True))
  return tf.where(is_lower, lower, _interpolate(tail, _gumbel_quantiles(False)))


def _halves(random_bits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """In which half of a distribution, and a probability in (0, 1/2)."""
  is_lower = _shift_right(random_bits, 63) > tf.constant(0, tf.uint64)
  half = tf.cast(_shift_right(random_bits, 33) & _mask(30), tf.float32)
  return is_lower, (half + 0.5) * 2.0**-31


def _interpolate(tail: tf.Tensor, quantiles: np.ndarray) -> tf.Tensor:
  """The quantiles at the probabilities `tail` in [2^-32, 1/2]."""
  place = tf.bitcast(tail, tf.int32) - _first_knot()
  knot = tf.bitwise.right_shift(place, 23 - _KNOT_BITS)
  rest = tf.bitwise.bitwise_and(place, 2 ** (23 - _KNOT_BITS) - 1)
  along = tf.cast(rest, tf.float32) * 2.0 ** (_KNOT_BITS - 23)
  table = tf.constant(quantiles)
  here, there = tf.gather(table, knot), tf.gather(table, knot + 1)
  return here + along * (there - here)


def _shift_right(z: tf.Tensor, count: int) -> tf.Tensor:
  return tf.bitwise.right_shift(z, _u64(count))


def _mask(count: int) -> tf.Tensor:
  return _u64(2**count - 1)


def _gamma() -> tf.Tensor:
  return _u64(_GAMMA)


def _u64(value: int) -> tf.Tensor:
  array = np.array(value & (2**64 - 1), np.uint64)
  return tf.convert_to_tensor(on_slice.constant(array))


def _first_knot() -> int:
  return int(np.float32(2.0**-32).view(np.int32))


def _knots() -> np.ndarray:
  """The float32 probabilities in [2^-32, 1/2] between which is interpolated."""
  step = 2 ** (23 - _KNOT_BITS)
  count = 31 * 2**_KNOT_BITS + 2
  places = _first_knot() + step * np.arange(count, dtype=np.int64)
  knots: np.ndarray = np.minimum(places.astype(np.int32).view(np.float32), 0.5)
  return knots


@functools.cache
def _normal_quantiles() -> np.ndarray:
  inverse = statistics.NormalDist().inv_cdf
  return np.array([inverse(float(p)) for p in _knots()], np.float32)


@functools.cache
def _gumbel_quantiles(is_lower: bool) -> np.ndarray:
  p = _knots().astype(np.float64)
  return (-np.log(-(np.log(p) if is_lower else np.log1p(-p)))).astype(
    np.float32
  )
