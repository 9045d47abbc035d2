"""Einsum: multiply where names agree, sum away the names that are not kept.

Summing over a dimension that is split over a mesh axis leaves one allreduce
over that axis pending.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, overload

import tensorflow as tf

from ...core.errors import ShapeError
from ...core.graph import Apply, Aval, Primitive, Tensor, apply
from ...core.shape import Dimension, Shape, ShapeLike, to_shape, union
from ...spmd import slices as on_slice
from ...spmd import wide
from ...spmd.laid_out import Slices
from ...spmd.mesh import MeshImpl
from ..operands import Kind, agreed_union, check_tensor
from .einsum_text import ARROW, shape_of_result
from .sum_broadcast import broadcast


@dataclasses.dataclass(frozen=True)
class Einsum(Primitive):
  """Multiplies the inputs and keeps the dimensions of `output_shape`."""

  output_shape: Shape
  counter = "einsum_op"
  flops_per_point = 2
  work_counter = "einsum"

  def infer(self, *xs: Aval) -> Aval:
    Kind.NUMBER.check("einsum", xs[0].dtype)
    if unknown := self.output_shape.drop(union(*(x.shape for x in xs))):
      raise ShapeError(f"einsum cannot make [{unknown}]: no input has it")
    if len({x.dtype for x in xs}) > 1:
      raise ValueError(
        f"einsum needs inputs of one dtype, got {[x.dtype.name for x in xs]}; "
        "cast them first"
      )
    return Aval(self.output_shape, xs[0].dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    def dx(i: int, x: Tensor) -> Tensor:
      factors = [dy, *op.inputs[:i], *op.inputs[i + 1 :]]
      return einsum(factors, x.shape)

    return [dx(i, x) for i, x in enumerate(op.inputs)]

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Slices:
    shapes = [x.shape for x in op.inputs]
    points = union(*shapes)
    mesh_axes = mesh.axes(points.drop(self.output_shape))
    dense = any(len(s) == len(points) for s in [*shapes, self.output_shape])
    if dense or not op.inputs[0].dtype.is_floating:
      multiply = functools.partial(self._multiply, shapes, points)
      return mesh.map_trailing_sum(multiply, xs, mesh_axes)
    letters = dict(zip(points, string.ascii_lowercase, strict=False))

    def spell(shape: Shape) -> str:
      return "".join(letters[d] for d in shape)

    equation = f"{','.join(map(spell, shapes))}->{spell(self.output_shape)}"
    return mesh.einsum_sum(equation, xs, mesh_axes)

  def _multiply(
    self,
    shapes: Sequence[Shape],
    points: Shape,
    *xs: tf.Tensor,
    lead: tuple[int, ...],
  ) -> tf.Tensor:
    """Multiplies with broadcasting: no contraction is worth a matmul here."""
    pairs = zip(xs, shapes, strict=True)
    y = functools.reduce(
      functools.partial(on_slice.on_points, operator.mul),
      (on_slice.align(x, s, points) for x, s in pairs),
    )
    kept, gone = points.keep(self.output_shape), points.drop(self.output_shape)
    axes = [points.index(d) - len(points) for d in gone]
    y = wide.reduce_sum(y, [*lead, *axes]) if lead or axes else y
    return on_slice.transpose(y, [kept.index(d) for d in self.output_shape])

  def iteration(self, op: Apply) -> Shape:
    return union(*(x.shape for x in op.inputs))


@overload
def einsum(
  xs: Sequence[Tensor],
  output_shape: ShapeLike | None = None,
  reduced_dims: Iterable[Dimension] | None = None,
  name: str | None = None,
) -> Tensor: ...
@overload
def einsum(
  xs: str, /, *operands: Tensor, name: str | None = None
) -> Tensor: ...


def einsum(
  xs: Any,
  output_shape: Any = None,
  reduced_dims: Any = None,
  name: Any = None,
  *operands: Any,
) -> Tensor:
  """Multiplies tensors, broadcasting by name, and sums dimensions away.

  It is written in one of three ways:

  * `einsum([x, w], output_shape)`, as below;
  * `einsum("batch d_model, d_model d_ff -> batch d_ff", x, w)`: the names of
    the dimensions of each operand, in any order, and those of the result;
  * `einsum([x, w], "batch d_model, d_model d_ff -> batch d_ff")`, the same.

  Args:
    xs: tensors of one dtype, which are numbers; or a text.
    output_shape: the dimensions of the result. One that no input has is
      broadcast. Or a text.
    reduced_dims: the dimensions to sum over, instead of `output_shape`.
    name: a name for the operation.
    *operands: where `xs` is a text, the tensors, which follow it.

  Returns:
    A tensor of shape `output_shape`. With neither argument given, dimensions
    that occur in two inputs or more are summed over, and the rest is kept in
    order of appearance.

  Raises:
    ShapeError: `output_shape` and `reduced_dims` disagree, `xs` is empty, a
      name stands for two sizes, or a text does not fit the tensors. The message
      points at the word that is wrong.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mesh = mtf.Mesh(mtf.Graph(), "mesh")
    >>> x = mtf.ones(mesh, "batch:8 d_model:16")
    >>> w = mtf.get_variable(mesh, "w", "d_model:16 d_ff:64")
    >>> mtf.einsum([x, w]).shape
    batch:8 d_ff:64
    >>> mtf.einsum([x, w], "d_ff:64").shape  # sums over the batch, too
    d_ff:64
    >>> mtf.einsum("batch d_model, d_model d_ff -> d_ff batch", x, w).shape
    d_ff:64 batch:8
  """
  if isinstance(xs, str):
    given = [output_shape, reduced_dims, name, *operands]
    name = next((x for x in given if isinstance(x, str)), None)
    tensors = [x for x in given if not (x is None or isinstance(x, str))]
    xs, output_shape, reduced_dims = tensors, xs, None
    is_text = True
  else:
    is_text = isinstance(output_shape, str) and ARROW in output_shape
  if isinstance(xs, Tensor):
    raise TypeError(f"einsum takes a list of tensors, got {xs}; write [x, y]")
  if not xs:
    raise ShapeError("einsum needs at least one tensor, got none")
  if strange := [x for x in xs if not isinstance(x, Tensor)]:
    raise TypeError(f"einsum multiplies mesh tensors, got {strange[0]!r}")
  if is_text:
    output_shape = shape_of_result(output_shape, xs)
  points = agreed_union("einsum", *xs)
  shape = _output_shape(xs, points, output_shape, reduced_dims)
  reached = shape.keep(points)
  if len(xs) == 1 and xs[0].shape == reached:
    return broadcast(xs[0], shape)
  return broadcast(apply(Einsum(reached), *xs, name=name), shape)


def _output_shape(
  xs: Sequence[Tensor],
  points: Shape,
  output_shape: ShapeLike | None,
  reduced_dims: Iterable[Dimension] | None,
) -> Shape:
  if reduced_dims is not None:
    gone = Shape(reduced_dims)
    if unknown := gone.drop(points):
      raise ShapeError(
        f"einsum cannot reduce [{unknown}]: no input has it; take some of "
        f"[{points}]"
      )
    if output_shape is None:
      return points.drop(gone)
    if set(to_shape(output_shape)) & set(points) != set(points.drop(gone)):
      raise ShapeError(
        f"einsum: reducing [{gone}] of [{points}] does not leave "
        f"[{to_shape(output_shape)}]; give one of the two"
      )
  if output_shape is not None:
    return to_shape(output_shape)
  counts = Counter(d for x in xs for d in x.shape)
  return Shape(d for d in points if counts[d] == 1)


def matmul(
  a: Tensor,
  b: Tensor,
  output_shape: ShapeLike | None = None,
  reduced_dims: Iterable[Dimension] | None = None,
  name: str | None = None,
) -> Tensor:
  """`einsum` of two tensors."""
  return einsum([a, b], output_shape, reduced_dims, name)


def transpose(
  x: Tensor, new_shape: ShapeLike, name: str = "transpose"
) -> Tensor:
  """The same dimensions in the order of `new_shape`. No communication."""
  check_tensor("transpose", x)
  shape = to_shape(new_shape)
  if set(shape) != set(x.shape):
    raise ShapeError(
      f"transpose: [{shape}] is no order of [{x.shape}]; take all of its "
      "dimensions, each once"
    )
  return x if shape == x.shape else apply(Einsum(shape), x, name=name)
