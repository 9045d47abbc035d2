"""Python's operators on tensors, bound here so that the graph knows no op.

`==` and `!=` are not among them: they ask whether two tensors are the same
node of the graph, as they must for tensors to be keys of a dictionary. Element
by element there are `mtf.equal` and `mtf.not_equal`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..core.graph import Tensor
from . import binary, bitwise, power, unary
from .indexing import pick
from .linear.einsum import matmul


def _for_bits(
  on_bools: Callable[..., Tensor], on_integers: Callable[..., Tensor]
) -> Callable[..., Tensor]:
  """One operator for truth values, and for the bits of integers."""

  def apply(x: Tensor, *others: Any) -> Tensor:
    fn = on_bools if x.dtype == tf.bool else on_integers
    return fn(x, *others)

  return apply


_and = _for_bits(binary.logical_and, bitwise.bitwise_and)
_or = _for_bits(binary.logical_or, bitwise.bitwise_or)
_xor = _for_bits(binary.logical_xor, bitwise.bitwise_xor)


def _bool(x: Tensor) -> bool:
  """True, except for truth values: what they are is not known yet.

  Otherwise `if x < y` and `0 < x < 1` would quietly mean something else.
  """
  if x.dtype == tf.bool:
    raise TypeError(
      f"whether {x} is true is not known while the graph is built; join "
      "conditions with & and |, choose with mtf.where, and ask whether there "
      "is a tensor with `is not None`"
    )
  return True


OPERATORS: dict[str, Callable[..., Any]] = {
  "__add__": binary.add,
  "__radd__": binary.add,
  "__sub__": binary.sub,
  "__rsub__": lambda x, y: binary.sub(y, x),
  "__mul__": binary.multiply,
  "__rmul__": binary.multiply,
  "__truediv__": binary.divide,
  "__rtruediv__": lambda x, y: binary.divide(y, x),
  "__floordiv__": binary.floordiv,
  "__rfloordiv__": lambda x, y: binary.floordiv(y, x),
  "__mod__": binary.mod,
  "__rmod__": lambda x, y: binary.mod(y, x),
  "__pow__": power.mtf_pow,
  "__rpow__": lambda x, y: power.mtf_pow(y, x),
  "__matmul__": matmul,
  "__neg__": unary.negative,
  "__pos__": lambda x: x,
  "__abs__": unary.mtf_abs,
  "__lt__": binary.less,
  "__le__": binary.less_equal,
  "__gt__": binary.greater,
  "__ge__": binary.greater_equal,
  "__and__": _and,
  "__rand__": _and,
  "__or__": _or,
  "__ror__": _or,
  "__xor__": _xor,
  "__rxor__": _xor,
  "__invert__": _for_bits(unary.logical_not, bitwise.bitwise_not),
  "__lshift__": bitwise.left_shift,
  "__rlshift__": lambda x, y: bitwise.left_shift(y, x),
  "__rshift__": bitwise.right_shift,
  "__rrshift__": lambda x, y: bitwise.right_shift(y, x),
  "__getitem__": pick,
  "__bool__": _bool,
}


def _bind(symbol: str, fn: Callable[..., Any]) -> None:
  def method(*operands: Any) -> Any:
    return fn(*operands)

  setattr(Tensor, symbol, method)


for _symbol, _fn in OPERATORS.items():
  _bind(_symbol, _fn)

# An index does not make a sequence of it, nor NumPy an array of tensors.
setattr(Tensor, "__iter__", None)  # noqa: B010
setattr(Tensor, "__array_ufunc__", None)  # noqa: B010
