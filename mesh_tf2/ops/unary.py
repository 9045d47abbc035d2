"""Functions of one tensor, element by element. None of them communicates."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..core.graph import Tensor, apply
from . import elementwise as rows
from .elementwise import Unary, cast, greater
from .operands import Kind


def identity(x: Tensor, name: str = "identity") -> Tensor:
  """A copy."""
  return apply(rows.IDENTITY, x, name=name)


def sin(x: Tensor, name: str = "sin") -> Tensor:
  """Sine of an angle in radians."""
  return apply(rows.SIN, x, name=name)


def cos(x: Tensor, name: str = "cos") -> Tensor:
  """Cosine of an angle in radians."""
  return apply(rows.COS, x, name=name)


def square(x: Tensor, name: str = "square") -> Tensor:
  """The square, x * x."""
  return apply(rows.SQUARE, x, name=name)


def sqrt(x: Tensor, name: str = "sqrt") -> Tensor:
  """The square root."""
  return apply(rows.SQRT, x, name=name)


def rsqrt(x: Tensor, name: str = "rsqrt") -> Tensor:
  """1 / sqrt(x)."""
  return apply(rows.RSQRT, x, name=name)


def log(x: Tensor, name: str = "log") -> Tensor:
  """The natural logarithm."""
  return apply(rows.LOG, x, name=name)


def exp(x: Tensor, name: str = "exp") -> Tensor:
  """The exponential function, e to the power of x."""
  return apply(rows.EXP, x, name=name)


def log1p(x: Tensor, name: str = "log1p") -> Tensor:
  """log(1 + x), which stays exact where x is small."""
  return apply(rows.LOG1P, x, name=name)


def expm1(x: Tensor, name: str = "expm1") -> Tensor:
  """exp(x) - 1, which stays exact where x is small."""
  return apply(rows.EXPM1, x, name=name)


def erf(x: Tensor, name: str = "erf") -> Tensor:
  """The error function, 2 / sqrt(pi) times the integral of exp(-t^2)."""
  return apply(rows.ERF, x, name=name)


def sigmoid(x: Tensor, name: str = "sigmoid") -> Tensor:
  """1 / (1 + exp(-x))."""
  return apply(rows.SIGMOID, x, name=name)


def tanh(x: Tensor, name: str = "tanh") -> Tensor:
  """The hyperbolic tangent."""
  return apply(rows.TANH, x, name=name)


def negative(x: Tensor, name: str = "negative") -> Tensor:
  """-x."""
  return apply(rows.NEGATIVE, x, name=name)


def logical_not(x: Tensor, name: str = "logical_not") -> Tensor:
  """True where x is False."""
  return apply(rows.LOGICAL_NOT, x, name=name)


def swish(x: Tensor) -> Tensor:
  """`x` * sigmoid(x) (Ramachandran et al., 2017)."""
  return apply(rows.SWISH, x)


def gelu(x: Tensor, approximate: bool = True) -> Tensor:
  """`x` times the normal distribution function at x.

  Hendrycks and Gimpel, Gaussian error linear units, 2016.

  Args:
    x: floating numbers.
    approximate: whether to take tanh's approximation of the distribution
      function, which is off by up to 0.0005; otherwise it is taken exactly,
      from `erf`.
  """
  return apply(rows.GELU_TANH if approximate else rows.GELU_EXACT, x)


def elu(x: Tensor) -> Tensor:
  """`x` where positive, else exp(x) - 1 (Clevert et al., 2016)."""
  return apply(rows.ELU, x)


def selu(x: Tensor) -> Tensor:
  """A scaled elu that keeps mean and variance (Klambauer et al., 2017)."""
  return apply(rows.SELU, x)


def softplus(x: Tensor) -> Tensor:
  """log(1 + exp(x))."""
  return apply(rows.SOFTPLUS, x)


def reciprocal(x: Tensor, name: str = "reciprocal") -> Tensor:
  """1 / x."""
  return apply(rows.RECIPROCAL, x, name=name)


def relu(x: Tensor, name: str = "relu") -> Tensor:
  """max(x, 0). Its gradient at 0 is 0."""
  return apply(rows.RELU, x, name=name)


def leaky_relu(
  x: Tensor, alpha: float = 0.2, name: str = "leaky_relu"
) -> Tensor:
  """`x` where positive, else alpha * x. Its gradient at 0 is alpha."""

  def dx(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
    positive = cast(greater(x, 0), dy.dtype)
    return dy * (positive * (1 - alpha) + alpha)

  def leak(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.leaky_relu(x, alpha)

  return apply(Unary("leaky_relu", leak, dx, Kind.REAL), x, name=name)


def squared_relu(x: Tensor) -> Tensor:
  """relu(x) squared (So et al., Primer, 2021)."""
  return square(relu(x))


def sign(x: Tensor, name: str = "sign") -> Tensor:
  """-1, 0 or 1. It has no gradient."""
  return apply(rows.SIGN, x, name=name)


def floor(x: Tensor, name: str = "floor") -> Tensor:
  """The next whole number below. No gradient flows through it."""
  return apply(rows.FLOOR, x, name=name)


def ceil(x: Tensor, name: str = "ceil") -> Tensor:
  """The next whole number above. No gradient flows through it."""
  return apply(rows.CEIL, x, name=name)


def round(x: Tensor, name: str = "round") -> Tensor:
  """The nearest whole number, halves to the even one. No gradient flows."""
  return apply(rows.ROUND, x, name=name)


def isfinite(x: Tensor, name: str = "isfinite") -> Tensor:
  """Whether it is a number, and not infinite: bool."""
  return apply(rows.IS_FINITE, x, name=name)


def isinf(x: Tensor, name: str = "isinf") -> Tensor:
  """Whether it is infinite: bool."""
  return apply(rows.IS_INF, x, name=name)


def isnan(x: Tensor, name: str = "isnan") -> Tensor:
  """Whether it is no number: bool."""
  return apply(rows.IS_NAN, x, name=name)


def mtf_abs(x: Tensor) -> Tensor:
  """The absolute value. Its gradient at 0 is 0."""
  return apply(rows.ABS, x)


def to_float(x: Tensor, name: str = "to_float") -> Tensor:
  """`x` as float32."""
  return cast(x, tf.float32, name)


def to_bfloat16(x: Tensor, name: str = "to_bfloat16") -> Tensor:
  """`x` as bfloat16."""
  return cast(x, tf.bfloat16, name)


def to_int32(x: Tensor, name: str = "to_int32") -> Tensor:
  """`x` as int32, rounded towards zero."""
  return cast(x, tf.int32, name)


def activation(name: str | Any) -> Any:
  """The activation function called `name`; a function stays itself.

  `"linear"` is the identity.

  Raises:
    ValueError: there is no such function.
  """
  if callable(name):
    return name
  if name == "linear":
    return lambda x: x
  found = globals().get(name)
  if not callable(found) or name.startswith("_"):
    raise ValueError(f"unknown activation function {name!r}")
  return found
