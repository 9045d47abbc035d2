"""Any TensorFlow function, run on each processor's own slices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape, ShapeLike, to_shape
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl

GradFunction = Callable[..., Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Slicewise(Primitive):
  """`fn` on every slice; dimensions that are not listed must not be split."""

  label: str
  fn: Callable[..., Any]
  avals: tuple[Aval, ...]
  splittable: frozenset[str]
  grad_function: GradFunction | None = None
  is_single: bool = True

  @property
  def name(self) -> str:
    return self.label

  def infer(self, *xs: Aval) -> Aval | tuple[Aval, ...]:
    return self.avals[0] if self.is_single else self.avals

  def gradient(self, op: Apply, *dys: Tensor) -> Sequence[Tensor | None]:
    if self.grad_function is None:
      return gradient_by_tape(self.fn, op, dys)
    dxs = self.grad_function(op, *dys)
    return [None if isinstance(dx, int) else dx for dx in dxs]

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Any:
    ys = mesh.slicewise(self.fn, *xs)
    return tuple(ys) if isinstance(ys, list) else ys

  def unsplittable(self, op: Apply) -> frozenset[str]:
    names = {d.name for t in op.inputs + op.outputs for d in t.shape}
    return frozenset(names - self.splittable)


@dataclasses.dataclass(frozen=True)
class TapeGradient(Primitive):
  """The gradient of `fn` on every slice, by `tf.GradientTape`."""

  fn: Callable[..., Any]
  num_inputs: int
  is_elementwise: bool

  def infer(self, *xs: Aval) -> tuple[Aval, ...]:
    return xs[: self.num_inputs]

  def gradient(self, op: Apply, *dys: Tensor) -> Sequence[Tensor | None]:
    return gradient_by_tape(self.differentiate, op, dys, self.is_elementwise)

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Any:
    if self.is_elementwise:
      return mesh.map_trailing(self.differentiate, *xs)
    return mesh.slicewise(self.differentiate, *xs)

  def differentiate(self, *args: tf.Tensor) -> list[tf.Tensor]:
    """The gradients of the inputs, given the inputs and the outputs' ones."""
    ins, dys = args[: self.num_inputs], args[self.num_inputs :]
    with tf.GradientTape() as tape:
      tape.watch(ins)
      ys = tf.nest.flatten(self.fn(*ins))
    dxs: list[tf.Tensor] = tape.gradient(
      ys,
      list(ins),
      list(dys),
      unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    return dxs


def gradient_by_tape(
  fn: Callable[..., Any],
  op: Apply,
  dys: Sequence[Tensor],
  is_elementwise: bool = False,
) -> Sequence[Tensor | None]:
  """The gradients of a function that acts on slices, taken on slices."""
  primitive = TapeGradient(fn, len(op.inputs), is_elementwise)
  dxs = apply(primitive, *op.inputs, *dys)
  pairs = zip(dxs, op.inputs, strict=True)
  return [dx if x.dtype.is_floating else None for dx, x in pairs]


class SlicewiseOperation(Apply):
  """A TensorFlow function that runs on the slices of each processor.

  Users who want the tensors call `slicewise`.

  Args:
    tf_fn: takes the slices of `inputs`, returns a slice for each output; for
      more than one, a list or a tuple.
    inputs: tensors.
    output_shapes: a shape for each output.
    output_dtypes: a dtype for each output.
    splittable_dims: the dimensions that may be split.
    grad_function: `f(op, *grads)` returns a gradient for each input, None or 0
      for none; by default TensorFlow differentiates `tf_fn`.
    name: a name for the operation.
  """

  def __init__(
    self,
    tf_fn: Callable[..., Any],
    inputs: Sequence[Tensor],
    output_shapes: Sequence[ShapeLike],
    output_dtypes: Sequence[Any],
    splittable_dims: Iterable[Dimension],
    grad_function: GradFunction | None = None,
    name: str | None = None,
  ) -> None:
    avals = tuple(
      Aval(to_shape(s), tf.as_dtype(t))
      for s, t in zip(output_shapes, output_dtypes, strict=True)
    )
    primitive = Slicewise(
      name or "slicewise",
      tf_fn,
      avals,
      frozenset(d.name for d in splittable_dims),
      grad_function,
      is_single=len(avals) == 1,
    )
    super().__init__(primitive, inputs, name=name)


def slicewise(
  tf_fn: Callable[..., Any],
  xs: Sequence[Tensor],
  output_shape: Any = None,
  output_dtype: Any = None,
  splittable_dims: Sequence[Dimension] | None = None,
  grad_function: GradFunction | None = None,
  name: str | None = None,
) -> Any:
  """Runs a TensorFlow function on the slices of each processor.

  Args:
    tf_fn: takes the slices of `xs`, returns one slice, or a list of them.
    xs: tensors.
    output_shape: the shape of the result, by default that of `xs[0]`; a list
      of shapes if `output_dtype` is a list.
    output_dtype: its dtype, by default that of `xs[0]`; a list for a function
      that returns several slices.
    splittable_dims: the dimensions that may be split; by default none.
    grad_function: `f(op, *grads)` returns a gradient for each input, None or 0
      for none; by default TensorFlow differentiates `tf_fn`.
    name: a name for the operation.

  Returns:
    A tensor, or a tuple of them if `output_dtype` is a list.
  """
  if not xs:
    raise ValueError("slicewise needs at least one tensor, got none")
  several = isinstance(output_dtype, list)
  shapes: list[ShapeLike] = output_shape if several else [output_shape]
  dtypes = output_dtype if several else [output_dtype]
  avals = tuple(
    Aval(
      xs[0].shape if s is None else to_shape(s), tf.as_dtype(t or xs[0].dtype)
    )
    for s, t in zip(shapes, dtypes, strict=True)
  )
  primitive = Slicewise(
    name or "slicewise",
    tf_fn,
    avals,
    frozenset(d.name for d in splittable_dims or ()),
    grad_function,
    not several,
  )
  ys = apply(primitive, *xs, name=name)
  return tuple(ys) if several else ys


def cwise(
  tf_fn: Callable[..., Any],
  xs: Sequence[Tensor],
  output_dtype: Any = None,
  grad_function: GradFunction | None = None,
  name: str | None = None,
) -> Tensor:
  """`slicewise` for a function that treats every element alike.

  Args:
    tf_fn: takes slices of equal shape, returns one of that shape.
    xs: tensors of equal shape.
    output_dtype: by default that of `xs[0]`.
    grad_function: see `slicewise`.
    name: a name for the operation.
  """
  dims: Shape = xs[0].shape
  if any(set(x.shape) != set(dims) for x in xs):
    raise ValueError(f"cwise takes equal shapes, got {[x.shape for x in xs]}")
  return slicewise(
    tf_fn, xs, dims, output_dtype, dims.dims, grad_function, name or "cwise"
  )
