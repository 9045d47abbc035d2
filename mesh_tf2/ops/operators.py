"""Python's operators on tensors, bound here so that the graph knows no op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.graph import Tensor
from . import binary, unary

OPERATORS: dict[str, Callable[..., Tensor]] = {
  "__add__": binary.add,
  "__radd__": binary.add,
  "__sub__": binary.sub,
  "__rsub__": lambda x, y: binary.add(unary.negative(x), y),
  "__mul__": binary.multiply,
  "__rmul__": binary.multiply,
  "__truediv__": binary.divide,
  "__rtruediv__": lambda x, y: binary.divide(y, x),
  "__floordiv__": binary.floordiv,
  "__rfloordiv__": lambda x, y: binary.floordiv(y, x),
  "__mod__": binary.mod,
  "__rmod__": lambda x, y: binary.mod(y, x),
  "__neg__": unary.negative,
}


def _bind(symbol: str, fn: Callable[..., Tensor]) -> None:
  def method(*operands: Any) -> Tensor:
    return fn(*operands)

  setattr(Tensor, symbol, method)


for _symbol, _fn in OPERATORS.items():
  _bind(_symbol, _fn)
