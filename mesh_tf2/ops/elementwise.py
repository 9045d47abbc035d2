"""Elementwise operations: one row each.

A row names the TensorFlow function to run on a slice, the gradient, and what
kind of dtype it takes. A slice of the output needs the same slice of each
input, so no row ever communicates.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Shape, ShapeLike, is_subsequence, to_shape, union
from ..spmd.laid_out import PendingSum, Slices
from ..spmd.mesh import MeshImpl
from .cast import as_number, check_number
from .cast import cast as cast
from .linear.sum_broadcast import broadcast, keep_sum
from .operands import Kind, agreed_union, check_kept
from .slicewise import gradient_by_tape
from .source import import_tf_tensor

ANY, BOOL, INTEGER, ORDERED = Kind.ANY, Kind.BOOL, Kind.INTEGER, Kind.ORDERED
NUMBER, SIGNED, REAL, FLOAT = Kind.NUMBER, Kind.SIGNED, Kind.REAL, Kind.FLOAT


@dataclasses.dataclass(frozen=True)
class Unary(Primitive):
  """Applies `fn` to each element."""

  label: str
  fn: Callable[[tf.Tensor], tf.Tensor] = dataclasses.field(repr=False)
  dfn: Callable[..., Any] | None = dataclasses.field(repr=False)
  kind: Kind = ANY
  output_dtype: tf.DType | None = None

  @property
  def name(self) -> str:
    return self.label

  def infer(self, x: Aval) -> Aval:
    self.kind.check(self.label, x.dtype)
    return Aval(x.shape, self.output_dtype or x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> Any:
    if self.dfn is None:
      return gradient_by_tape(self.fn, op, [dy], is_elementwise=True)
    return [self.dfn(op.inputs[0], op.outputs[0], dy)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    return mesh.map_trailing(self.fn, x)


def _none(x: Tensor, y: Tensor, dy: Tensor) -> None:
  return None


COS: Unary
COSH: Unary
SIGN: Unary

# fmt: off
#                   name           on a slice            gradient; None: by tape               kind
EXP         = Unary("exp",         tf.exp,               lambda x, y, dy: dy * y,              FLOAT)
EXPM1       = Unary("expm1",       tf.math.expm1,        lambda x, y, dy: dy * (y + 1.0),      FLOAT)
LOG         = Unary("log",         tf.math.log,          lambda x, y, dy: dy / x,              FLOAT)
LOG1P       = Unary("log1p",       tf.math.log1p,        lambda x, y, dy: dy / (x + 1.0),      FLOAT)
SQRT        = Unary("sqrt",        tf.sqrt,              lambda x, y, dy: dy * 0.5 / y,        FLOAT)
RSQRT       = Unary("rsqrt",       tf.math.rsqrt,        lambda x, y, dy: dy * -0.5 * y * y * y, FLOAT)
SQUARE      = Unary("square",      tf.square,            lambda x, y, dy: dy * x * 2.0,        NUMBER)
RECIPROCAL  = Unary("reciprocal",  tf.math.reciprocal,   lambda x, y, dy: -(dy * y * y),       FLOAT)
NEGATIVE    = Unary("negative",    tf.negative,          lambda x, y, dy: -dy,                 SIGNED)
IDENTITY    = Unary("identity",    tf.identity,          lambda x, y, dy: dy,                  ANY)
SIN         = Unary("sin",         tf.sin,               lambda x, y, dy: dy * apply(COS, x),  FLOAT)
COS         = Unary("cos",         tf.cos,               lambda x, y, dy: -(dy * apply(SIN, x)), FLOAT)
TAN         = Unary("tan",         tf.tan,               lambda x, y, dy: dy * (y * y + 1.0),  FLOAT)
ASIN        = Unary("asin",        tf.asin,              lambda x, y, dy: dy * apply(RSQRT, 1.0 - x * x), REAL)
ACOS        = Unary("acos",        tf.acos,              lambda x, y, dy: -(dy * apply(RSQRT, 1.0 - x * x)), REAL)
ATAN        = Unary("atan",        tf.atan,              lambda x, y, dy: dy / (x * x + 1.0),  REAL)
SINH        = Unary("sinh",        tf.sinh,              lambda x, y, dy: dy * apply(COSH, x), FLOAT)
COSH        = Unary("cosh",        tf.cosh,              lambda x, y, dy: dy * apply(SINH, x), FLOAT)
TANH        = Unary("tanh",        tf.tanh,              lambda x, y, dy: dy * (1.0 - y * y),  FLOAT)
ASINH       = Unary("asinh",       tf.asinh,             lambda x, y, dy: dy / apply(COSH, y), REAL)
ACOSH       = Unary("acosh",       tf.acosh,             lambda x, y, dy: dy / apply(SINH, y), REAL)
ATANH       = Unary("atanh",       tf.atanh,             lambda x, y, dy: dy / (1.0 - x * x),  REAL)
ERF         = Unary("erf",         tf.math.erf,          lambda x, y, dy: dy * apply(EXP, -(x * x)) * (2 / math.sqrt(math.pi)), REAL)
SIGMOID     = Unary("sigmoid",     tf.sigmoid,           lambda x, y, dy: dy * y * (1.0 - y),  FLOAT)
RELU        = Unary("relu",        tf.nn.relu,           lambda x, y, dy: dy * cast(greater(x, 0), dy.dtype), ORDERED)
ABS         = Unary("abs",         tf.abs,               lambda x, y, dy: dy * apply(SIGN, x), SIGNED)
SIGN        = Unary("sign",        tf.sign,              _none,                                SIGNED)
FLOOR       = Unary("floor",       tf.floor,             _none,                                REAL)
CEIL        = Unary("ceil",        tf.math.ceil,         _none,                                REAL)
ROUND       = Unary("round",       tf.round,             _none,                                ORDERED)
SOFTPLUS    = Unary("softplus",    tf.nn.softplus,       lambda x, y, dy: dy * apply(SIGMOID, x), REAL)
SWISH       = Unary("swish",       tf.nn.silu,           None,                                 REAL)
ELU         = Unary("elu",         tf.nn.elu,            None,                                 REAL)
SELU        = Unary("selu",        tf.nn.selu,           None,                                 REAL)
GELU_TANH   = Unary("gelu",        lambda x: tf.nn.gelu(x, approximate=True), None,            REAL)
GELU_EXACT  = Unary("gelu",        lambda x: tf.nn.gelu(x, approximate=False), None,           REAL)
IS_FINITE   = Unary("isfinite",    tf.math.is_finite,    _none,                                REAL,    tf.bool)
IS_INF      = Unary("isinf",       tf.math.is_inf,       _none,                                REAL,    tf.bool)
IS_NAN      = Unary("isnan",       tf.math.is_nan,       _none,                                REAL,    tf.bool)
LOGICAL_NOT = Unary("logical_not", tf.logical_not,       _none,                                BOOL,    tf.bool)
BITWISE_NOT = Unary("bitwise_not", tf.bitwise.invert,    _none,                                INTEGER)
# fmt: on


@dataclasses.dataclass(frozen=True)
class Scalar(Primitive):
  """An element and a number that is not part of the graph."""

  label: str
  fn: Callable[[tf.Tensor, Any], tf.Tensor] = dataclasses.field(repr=False)
  number: Any

  @property
  def name(self) -> str:
    return f"scalar_{self.label}"

  @property
  def counted_as(self) -> str:
    """After the original's classes, `ScalarMultiplyOperation` and so on."""
    return f"Scalar{self.label.title()}Operation"

  def infer(self, x: Aval) -> Aval:
    NUMBER.check(self.label, x.dtype)
    check_number(self.number, x.dtype)
    return x

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [multiply(dy, self.number) if self.label == "multiply" else dy]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    number = as_number(self.number, op.inputs[0].dtype)
    return mesh.map_trailing(lambda x: self.fn(x, number), x)


@dataclasses.dataclass(frozen=True)
class Binary(Primitive):
  """Applies `fn` to the elements of two tensors, broadcasting by name."""

  label: str
  fn: Callable[..., tf.Tensor] = dataclasses.field(repr=False)
  dfn: Callable[..., Any] = dataclasses.field(repr=False)
  output_shape: Shape
  output_dtype: tf.DType | None = None
  kind: Kind = ANY

  @property
  def name(self) -> str:
    return self.label

  @property
  def keeps_pending(self) -> bool:
    return self.label == "add"

  def infer(self, a: Aval, b: Aval) -> Aval:
    if a.dtype != b.dtype:
      raise ValueError(
        f"{self.label} needs operands of one dtype, got {a.dtype.name} and "
        f"{b.dtype.name}; cast one of them"
      )
    self.kind.check(self.label, a.dtype)
    check_kept(self.label, self.output_shape, union(a.shape, b.shape))
    return Aval(self.output_shape, self.output_dtype or a.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    dxs = self.dfn(*op.inputs, op.outputs[0], dy)
    pairs = zip(dxs, op.inputs, strict=True)
    return [None if dx is None else keep_sum(dx, x.shape) for dx, x in pairs]

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Slices:
    if not any(isinstance(x, PendingSum) for x in xs):
      return self._on_slices(mesh, op, *xs)
    if _same_pending(xs):
      return self._pending(mesh, op, *xs)
    totals = [x.total() if isinstance(x, PendingSum) else x for x in xs]
    return self._on_slices(mesh, op, *totals)

  def _pending(
    self, mesh: MeshImpl, op: Apply, a: PendingSum, b: PendingSum
  ) -> PendingSum:
    """The sum of two pending sums over the same mesh axes, pending itself."""

    def partial() -> Slices:
      return self._on_slices(mesh, op, a.partial(), b.partial())

    def total() -> Slices:
      if mesh.delays_sums or op.inputs[0].shape != op.inputs[1].shape:
        return mesh.allreduce(partial(), a.mesh_axes)
      # Nothing is sent, and the operands are smaller once they are summed.
      first = a.total()
      with mesh.unobserved():
        second = b.total()
      return self._on_slices(mesh, op, first, second)

    return PendingSum(a.mesh_axes, partial, total, like=a)

  def _on_slices(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Slices:
    shapes = [x.shape for x in op.inputs]
    return mesh.map_points(self.fn, xs, shapes, self.output_shape)


def _same_pending(xs: Any) -> bool:
  return all(isinstance(x, PendingSum) for x in xs) and (
    xs[0].mesh_axes == xs[1].mesh_axes
  )


def _to_winners(a: Tensor, b: Tensor, y: Tensor, dy: Tensor) -> list[Tensor]:
  """To the operand that was chosen; a tie shares the gradient equally."""
  a_wins, b_wins = (cast(equal(x, y), dy.dtype) for x in (a, b))
  share = dy / (a_wins + b_wins)
  return [share * a_wins, share * b_wins]


def _none_of_two(a: Tensor, b: Tensor, y: Tensor, dy: Tensor) -> list[None]:
  return [None, None]


def _of_difference(a: Tensor, b: Tensor, y: Tensor, dy: Tensor) -> list[Tensor]:
  slope = (a - b) * dy * 2.0
  return [slope, -slope]


def _of_angle(a: Tensor, b: Tensor, y: Tensor, dy: Tensor) -> list[Tensor]:
  share = dy / (a * a + b * b)
  return [share * b, -(share * a)]


@dataclasses.dataclass(frozen=True)
class BinaryRow:
  """What is to be known of a function of two numbers."""

  fn: Callable[..., tf.Tensor]
  dfn: Callable[..., Any]
  kind: Kind
  dtype: tf.DType | None = None


R = BinaryRow
# fmt: off
BINARY = {
  #                     on a slice       gradients of the operands                      kind     dtype
  "add":              R(tf.add,          lambda a, b, y, dy: [dy, dy],                  NUMBER),
  "subtract":         R(tf.subtract,     lambda a, b, y, dy: [dy, -dy],                 NUMBER),
  "multiply":         R(tf.multiply,     lambda a, b, y, dy: [dy * b, dy * a],          NUMBER),
  "divide":           R(tf.divide,       lambda a, b, y, dy: [dy / b, -(dy * y / b)],   FLOAT),
  "floordiv":         R(tf.math.floordiv, _none_of_two,                                 ORDERED),
  "mod":              R(tf.math.floormod, _none_of_two,                                 ORDERED),
  "minimum":          R(tf.minimum,      _to_winners,                                   ORDERED),
  "maximum":          R(tf.maximum,      _to_winners,                                   ORDERED),
  "squared_difference": R(lambda a, b: tf.square(a - b), _of_difference,                NUMBER),
  "atan2":            R(tf.atan2,        _of_angle,                                     REAL),
  "less":             R(tf.less,         _none_of_two,                                  ORDERED, tf.bool),
  "greater":          R(tf.greater,      _none_of_two,                                  ORDERED, tf.bool),
  "less_equal":       R(tf.less_equal,   _none_of_two,                                  ORDERED, tf.bool),
  "greater_equal":    R(tf.greater_equal, _none_of_two,                                 ORDERED, tf.bool),
  "equal":            R(tf.equal,        _none_of_two,                                  ANY,     tf.bool),
  "not_equal":        R(tf.not_equal,    _none_of_two,                                  ANY,     tf.bool),
  "logical_and":      R(tf.logical_and,  _none_of_two,                                  BOOL),
  "logical_or":       R(tf.logical_or,   _none_of_two,                                  BOOL),
  "logical_xor":      R(tf.math.logical_xor, _none_of_two,                              BOOL),
  "bitwise_and":      R(tf.bitwise.bitwise_and, _none_of_two,                           INTEGER),
  "bitwise_or":       R(tf.bitwise.bitwise_or,  _none_of_two,                           INTEGER),
  "bitwise_xor":      R(tf.bitwise.bitwise_xor, _none_of_two,                           INTEGER),
  "left_shift":       R(tf.bitwise.left_shift,  _none_of_two,                           INTEGER),
  "right_shift":      R(tf.bitwise.right_shift, _none_of_two,                           INTEGER),
}
# fmt: on


def binary_arguments_to_tensors(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
  """Turns a number into a scalar tensor of the other operand's dtype.

  Raises:
    ValueError: neither is a tensor.
  """
  if isinstance(x1, Tensor) and isinstance(x2, Tensor):
    return x1, x2
  if isinstance(x1, Tensor):
    number = as_number(x2, x1.dtype)
    return x1, import_tf_tensor(x1.mesh, number)
  if isinstance(x2, Tensor):
    number = as_number(x1, x2.dtype)
    return import_tf_tensor(x2.mesh, number), x2
  raise ValueError(
    f"neither {x1!r} nor {x2!r} is a mesh tensor; make one of it with "
    "mtf.import_tf_tensor"
  )


def broadcast_shape(
  a: Shape, b: Shape, output_shape: ShapeLike | None
) -> Shape:
  """The dimensions of both, in the order that fits the longer shape."""
  if output_shape is not None:
    return to_shape(output_shape)
  if is_subsequence(a.dims, b.dims):
    return b
  return a if is_subsequence(b.dims, a.dims) else union(a, b)


def binary(
  label: str,
  x1: Any,
  x2: Any,
  output_shape: ShapeLike | None = None,
  row: BinaryRow | None = None,
  name: str | None = None,
) -> Tensor:
  """A row applied to two operands.

  Args:
    label: its name.
    x1: a tensor, or a number.
    x2: a tensor, or a number. One of the two is a tensor.
    output_shape: all dimensions of the result, in order. A dimension that
      neither operand has is broadcast.
    row: the row, by default that of `BINARY`.
    name: a name for the operation, by default the label.

  Raises:
    ValueError: the dtypes differ, or are none that the row takes.
  """
  row = row or BINARY[label]
  x1, x2 = binary_arguments_to_tensors(x1, x2)
  both = agreed_union(label, x1, x2)
  wanted = broadcast_shape(x1.shape, x2.shape, output_shape)
  check_kept(label, wanted, both)
  reached = wanted.keep(both)
  primitive = Binary(label, row.fn, row.dfn, reached, row.dtype, row.kind)
  return broadcast(apply(primitive, x1, x2, name=name), wanted)


def _commutative(
  label: str, x1: Any, x2: Any, output_shape: ShapeLike | None, name: str | None
) -> Tensor:
  """A row of `BINARY` whose operands may change places, one being a number."""
  if isinstance(x2, Tensor) and not isinstance(x1, Tensor):
    x1, x2 = x2, x1
  if isinstance(x2, Tensor) or not isinstance(x1, Tensor):
    return binary(label, x1, x2, output_shape, name=name)
  y: Tensor = apply(Scalar(label, BINARY[label].fn, x2), x1, name=name)
  return y if output_shape is None else broadcast(y, output_shape)


def add(
  x1: Any,
  x2: Any,
  output_shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """Sum, broadcasting by name; one operand may be a number."""
  return _commutative("add", x1, x2, output_shape, name)


def multiply(
  x1: Any,
  x2: Any,
  output_shape: ShapeLike | None = None,
  name: str | None = None,
) -> Tensor:
  """Product, broadcasting by name; one operand may be a number."""
  return _commutative("multiply", x1, x2, output_shape, name)


def greater(x1: Any, x2: Any, output_shape: ShapeLike | None = None) -> Tensor:
  """Whether x1 > x2: bool."""
  return binary("greater", x1, x2, output_shape)


def equal(x1: Any, x2: Any, output_shape: ShapeLike | None = None) -> Tensor:
  """Whether x1 == x2: bool."""
  return binary("equal", x1, x2, output_shape)
