"""Powers, of numbers and of tensors. No communication."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..core.graph import Tensor, apply
from .binary import equal, greater, multiply, where
from .cast import as_number, check_number
from .elementwise import BinaryRow, Unary, binary
from .operands import Kind
from .source import ones_like, zeros_like
from .unary import log


def mtf_pow(x: Any, y: Any) -> Tensor:
  """`x` to the power of `y`, broadcasting by name.

  Args:
    x: signed numbers: a tensor, or a number if `y` is a tensor.
    y: a tensor, or a number. For integers in `x`, it is a whole number that is
      not negative. A negative number to the power of one that is not whole is
      NaN.

  Raises:
    ValueError: integers to the power of a number below 0, or of a fraction.
  """
  if isinstance(x, Tensor) and not isinstance(y, (Tensor, tf.Tensor)):
    return _to_a_number(x, y)
  return binary("pow", x, y, row=_POW)


def _to_a_number(x: Tensor, y: Any) -> Tensor:
  check_number(y, x.dtype)
  if x.dtype.is_integer and y < 0:
    raise ValueError(
      f"pow: {x.name} holds {x.dtype.name}, which has no power of {y}; cast it "
      "first, for example with mtf.to_float"
    )

  def dx(x: Tensor, _: Tensor, dy: Tensor) -> Tensor:
    # Not 0 * x^-1, which would be NaN where x is 0.
    return multiply(dy, y) * mtf_pow(x, y - 1) if y else zeros_like(dy)

  def fn(x: tf.Tensor) -> tf.Tensor:
    return tf.pow(x, as_number(y, x.dtype))

  return apply(Unary("pow", fn, dx, Kind.SIGNED), x)


def _gradients(a: Tensor, b: Tensor, y: Tensor, dy: Tensor) -> list[Tensor]:
  """With y = a^b: da = dy * b * a^(b - 1), db = dy * y * log(a).

  Where b is 0, da is 0; where a is not positive, db is 0.
  """
  slope = mtf_pow(a, where(equal(b, 0), 1, b) - 1) * b
  positive = greater(a, 0)
  exponent = multiply(y, log(where(positive, a, ones_like(a))), y.shape)
  return [
    multiply(dy, slope, dy.shape),
    multiply(dy, where(positive, exponent, 0, dy.shape), dy.shape),
  ]


_POW = BinaryRow(tf.pow, _gradients, Kind.SIGNED)
