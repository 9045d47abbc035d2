"""A tensor: a value in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from .primitive import Aval
from .shape import Shape, ShapeLike, to_shape

if TYPE_CHECKING:
  from .graph import Graph, Mesh, Operation


class Tensor:
  """A value in the graph: shape, dtype, and the operation that makes it.

  Python's operators work element by element, broadcasting by name, and
  `x[{"length": 3}]` indexes by name. But `x == y` asks whether the two are the
  same value of the graph; element by element it is `mtf.equal(x, y)`.
  """

  def __init__(
    self,
    operation: Operation,
    shape: ShapeLike,
    dtype: Any,
    name: str | None = None,
    index: int = 0,
  ) -> None:
    self._operation = operation
    self.aval = Aval(to_shape(shape), tf.as_dtype(dtype))
    self._name = name or f"{operation.name}:{index}"

  @property
  def operation(self) -> Operation:
    """The operation that makes it."""
    return self._operation

  @operation.setter
  def operation(self, value: Operation) -> None:
    self._operation = value

  @property
  def shape(self) -> Shape:
    """The named dimensions, in order."""
    return self.aval.shape

  @property
  def dtype(self) -> tf.DType:
    """The TensorFlow dtype of an element."""
    return self.aval.dtype

  @property
  def size(self) -> int:
    """How many elements it has."""
    return self.shape.size

  @property
  def mesh(self) -> Mesh:
    """The mesh on which it lives."""
    return self._operation.mesh

  @property
  def graph(self) -> Graph:
    """The graph that it belongs to."""
    return self._operation.graph

  @property
  def name(self) -> str:
    """The operation's name and the output's number."""
    return self._name

  @property
  def to_string(self) -> str:
    """`Tensor[name, shape, dtype]`."""
    return f"Tensor[{self.name}, {self.shape.to_string}, {self.dtype}]"

  if TYPE_CHECKING:  # bound in ops/operators.py, so that this file knows no op

    def __add__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __floordiv__(self, other: Any) -> Tensor: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor: ...
    def __rpow__(self, other: Any) -> Tensor: ...
    def __matmul__(self, other: Tensor) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __ge__(self, other: Any) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __getitem__(self, index: Mapping[Any, Any]) -> Tensor: ...

  def __repr__(self) -> str:
    return f"{self.name}: {self.aval!r}"
