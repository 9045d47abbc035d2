"""Functions of two tensors, element by element, broadcasting by name.

One operand may be a number. Comparison functions return bool.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Shape, ShapeLike, union
from ..spmd import wide
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .elementwise import (
  BinaryRow,
  add,
  binary,
  binary_arguments_to_tensors,
  broadcast_shape,
  cast,
  equal,
  greater,
  multiply,
)
from .linear.sum_broadcast import broadcast, keep_sum
from .operands import Kind, agreed_union, check_kept, check_tensor
from .source import zeros_like

__all__ = [
  "add",
  "binary_arguments_to_tensors",
  "equal",
  "greater",
  "multiply",
]


def less(x1: Any, x2: Any, output_shape: ShapeLike | None = None) -> Tensor:
  """Whether x1 < x2."""
  return binary("less", x1, x2, output_shape)


def less_equal(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """Whether x1 <= x2."""
  return binary("less_equal", x1, x2, output_shape)


def greater_equal(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """Whether x1 >= x2."""
  return binary("greater_equal", x1, x2, output_shape)


def not_equal(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """Whether x1 != x2."""
  return binary("not_equal", x1, x2, output_shape)


def logical_and(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """Whether both are True."""
  return binary("logical_and", x1, x2, output_shape)


def logical_or(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """Whether one of them is True."""
  return binary("logical_or", x1, x2, output_shape)


def logical_xor(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """Whether just one of them is True."""
  return binary("logical_xor", x1, x2, output_shape)


def floordiv(x1: Any, x2: Any, output_shape: ShapeLike | None = None) -> Tensor:
  """The quotient rounded down. No gradient flows through it."""
  return binary("floordiv", x1, x2, output_shape)


def mod(x1: Any, x2: Any, output_shape: ShapeLike | None = None) -> Tensor:
  """The remainder, with the sign of x2. No gradient flows through it."""
  return binary("mod", x1, x2, output_shape)


def minimum(
  x1: Any,
  x2: Any,
  output_shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """The smaller one; where they are equal, both get half of the gradient."""
  return binary("minimum", x1, x2, output_shape, name=name)


def maximum(
  x1: Any,
  x2: Any,
  output_shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """The larger one; where they are equal, both get half of the gradient."""
  return binary("maximum", x1, x2, output_shape, name=name)


def add_n(xs: Sequence[Tensor]) -> Any:
  """The sum of all tensors; 0 for none.

  Many 16-bit floats are added up in float32, and the sum is rounded.
  """
  if not xs:
    return 0
  check_tensor("add_n", xs[0])
  dtype = xs[0].dtype
  if wide.is_long(dtype, len(xs)):
    xs = [cast(x, tf.float32) for x in xs]
  return cast(functools.reduce(add, xs), dtype)


def sub(
  x1: Any,
  x2: Any,
  output_shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """x1 - x2."""
  if not isinstance(x2, Tensor):
    return add(x1, -x2, output_shape, name)
  return binary("subtract", x1, x2, output_shape, name=name)


def divide(
  x1: Any,
  x2: Any,
  output_shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """x1 / x2. An integer becomes a floating number first.

  Args:
    x1: a tensor or a number. A tensor of integers is divided as what the other
      operand is, and two of them as float32.
    x2: likewise. Division by 0 gives inf or NaN.
    output_shape: all dimensions of the result, in order.
    name: a name for the operation.
  """
  floating = [
    x.dtype for x in (x1, x2) if isinstance(x, Tensor) and x.dtype.is_floating
  ]
  to = floating[0] if floating else tf.float32
  x1, x2 = (
    cast(x, to) if isinstance(x, Tensor) and x.dtype.is_integer else x
    for x in (x1, x2)
  )
  if isinstance(x2, (int, float)) and isinstance(x1, Tensor) and x2:
    return multiply(x1, 1.0 / x2, output_shape, name)
  return binary("divide", x1, x2, output_shape, name=name)


def squared_difference(
  x1: Any, x2: Any, output_shape: ShapeLike | None = None
) -> Tensor:
  """(x1 - x2) squared."""
  return binary("squared_difference", x1, x2, output_shape)


def binary_op_with_broadcasting(
  tf_fn: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
  x1: Any,
  x2: Any,
  output_shape: ShapeLike | None = None,
  output_dtype: Any = None,
) -> Tensor:
  """Any TensorFlow function of two tensors that broadcasts; no gradient."""
  dtype = None if output_dtype is None else tf.as_dtype(output_dtype)
  row = BinaryRow(tf_fn, lambda *_: [None, None], Kind.ANY, dtype)
  return binary("binary", x1, x2, output_shape, row)


@dataclasses.dataclass(frozen=True)
class Where(Primitive):
  """Selects element by element; what is not selected leaves no trace."""

  output_shape: Shape

  def infer(self, condition: Aval, a: Aval, b: Aval) -> Aval:
    if condition.dtype != tf.bool:
      raise ValueError(
        f"where needs a bool condition, got {condition.dtype.name}"
      )
    if a.dtype != b.dtype:
      raise ValueError(
        f"where needs values of one dtype, got {a.dtype.name} and "
        f"{b.dtype.name}; cast one of them"
      )
    points = union(condition.shape, a.shape, b.shape)
    check_kept("where", self.output_shape, points)
    return Aval(self.output_shape, a.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    condition, a, b = op.inputs
    nothing = zeros_like(dy)
    return [
      None,
      keep_sum(where(condition, dy, nothing, dy.shape), a.shape),
      keep_sum(where(condition, nothing, dy, dy.shape), b.shape),
    ]

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Slices:
    shapes = [x.shape for x in op.inputs]
    return mesh.map_points(tf.where, xs, shapes, self.output_shape)


def where(
  condition: Tensor,
  if_true: Any,
  if_false: Any,
  output_shape: ShapeLike | None = None,
) -> Tensor:
  """`if_true` where the condition holds, `if_false` elsewhere.

  Args:
    condition: bool. Any other dtype counts as true where it is not zero.
    if_true: a tensor or a number.
    if_false: a tensor or a number. One of the two is a tensor.
    output_shape: all dimensions of the result, in order.
  """
  check_tensor("where", condition)
  if condition.dtype != tf.bool:
    condition = not_equal(condition, 0)
  if_true, if_false = binary_arguments_to_tensors(if_true, if_false)
  points = agreed_union("where", condition, if_true, if_false)
  values = broadcast_shape(if_true.shape, if_false.shape, None)
  wanted = broadcast_shape(values, condition.shape, output_shape)
  check_kept("where", wanted, points)
  reached = wanted.keep(points)
  return broadcast(apply(Where(reached), condition, if_true, if_false), wanted)
