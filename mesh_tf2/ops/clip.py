"""Numbers kept within bounds. No communication."""

from __future__ import annotations

from typing import Any

from ..core.graph import Tensor
from .binary import greater, less, where


def clip(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
  """`low` where x is less, `high` where it is more, x elsewhere.

  Args:
    x: real numbers. NaN stays NaN.
    low: a number or a tensor, which is broadcast by name; None for no bound.
    high: likewise. Where it is less than `low`, the result is `high`.

  Returns:
    A tensor. The gradient goes to x where it lies within the bounds or on one
    of them, and to the bound elsewhere.
  """
  y = x if low is None else where(less(x, low), low, x)
  return y if high is None else where(greater(y, high), high, y)
