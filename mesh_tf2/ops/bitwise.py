"""Integers as rows of bits. No communication, and no gradients."""

from __future__ import annotations

from typing import Any

from ..core.graph import Tensor, apply
from ..core.shape import ShapeLike
from . import elementwise as rows
from .elementwise import binary


def bitwise_and(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """The bits that are set in both."""
  return binary("bitwise_and", x1, x2, output_shape)


def bitwise_or(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """The bits that are set in one of them or in both."""
  return binary("bitwise_or", x1, x2, output_shape)


def bitwise_xor(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """The bits that are set in just one of them."""
  return binary("bitwise_xor", x1, x2, output_shape)


def bitwise_not(x: Tensor, name: str = "bitwise_not") -> Tensor:
  """The bits that are not set: -x - 1 for a signed integer."""
  return apply(rows.BITWISE_NOT, x, name=name)


def left_shift(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """`x1` times 2^x2: the bits move up, zeros come in.

  Args:
    x1: integers.
    x2: integers of the same dtype, at least 0 and less than the number of its
      bits; others give a result that depends on the device.
    output_shape: all dimensions of the result, in order.
  """
  return binary("left_shift", x1, x2, output_shape)


def right_shift(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """`x1` / 2^x2 rounded down: the bits move down, copies of the sign come in.

  See `left_shift` for the arguments.
  """
  return binary("right_shift", x1, x2, output_shape)
