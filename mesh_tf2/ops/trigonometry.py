"""Functions of angles, circular and hyperbolic. None of them communicates.

Sine and cosine stand with the other functions of one tensor.
"""

from __future__ import annotations

from typing import Any

from ..core.graph import Tensor, apply
from ..core.shape import ShapeLike
from . import elementwise as rows
from .elementwise import binary


def tan(x: Tensor, name: str = "tan") -> Tensor:
  """Tangent of an angle in radians."""
  return apply(rows.TAN, x, name=name)


def asin(x: Tensor, name: str = "asin") -> Tensor:
  """The angle in [-pi/2, pi/2] whose sine is x, in radians."""
  return apply(rows.ASIN, x, name=name)


def acos(x: Tensor, name: str = "acos") -> Tensor:
  """The angle in [0, pi] whose cosine is x, in radians."""
  return apply(rows.ACOS, x, name=name)


def atan(x: Tensor, name: str = "atan") -> Tensor:
  """The angle in [-pi/2, pi/2] whose tangent is x, in radians."""
  return apply(rows.ATAN, x, name=name)


def atan2(y: Any, x: Any, output_shape: ShapeLike | None = None) -> Tensor:
  """The angle in [-pi, pi] under which the point (x, y) is seen, in radians."""
  return binary("atan2", y, x, output_shape)


def sinh(x: Tensor, name: str = "sinh") -> Tensor:
  """The hyperbolic sine."""
  return apply(rows.SINH, x, name=name)


def cosh(x: Tensor, name: str = "cosh") -> Tensor:
  """The hyperbolic cosine."""
  return apply(rows.COSH, x, name=name)


def asinh(x: Tensor, name: str = "asinh") -> Tensor:
  """The number whose hyperbolic sine is x."""
  return apply(rows.ASINH, x, name=name)


def acosh(x: Tensor, name: str = "acosh") -> Tensor:
  """The number, not negative, whose hyperbolic cosine is x; x is 1 or more."""
  return apply(rows.ACOSH, x, name=name)


def atanh(x: Tensor, name: str = "atanh") -> Tensor:
  """The number whose hyperbolic tangent is x; x is between -1 and 1."""
  return apply(rows.ATANH, x, name=name)
