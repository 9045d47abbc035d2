"""Softmax and the logarithm of the sum of exponentials.

If the dimension is split over a mesh axis, there are two allreduces of what is
left without it: of the maximum, and of the sum. 16-bit floats are computed in
float32.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from ..core.graph import Apply, Aval, Primitive, Tensor, apply
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .binary import add, multiply, sub
from .cast import cast
from .linear.sum_broadcast import reduce_sum
from .operands import Kind, check_tensor
from .unary import exp, negative, softplus


@dataclasses.dataclass(frozen=True)
class Softmax(Primitive):
  """exp(x) / sum(exp(x)) along a dimension."""

  dim: Dimension
  flops_per_point = 5

  def infer(self, x: Aval) -> Aval:
    _check("softmax", x, self.dim)
    return x

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    # With y = softmax(x): dx = y * (dy - sum(dy * y)).
    y, dy_wide = _wide(op.outputs[0]), _wide(dy)
    product = multiply(dy_wide, y)
    total = reduce_sum(product, reduced_dim=self.dim)
    return [cast(sub(product, multiply(y, total, y.shape)), dy.dtype)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape = op.inputs[0].shape
    last = Shape([*(shape - self.dim), self.dim])

    def local(x: tf.Tensor) -> tf.Tensor:
      x, dtype = on_slice.align(x, shape, last), x.dtype
      # In two dimensions: some kernels refuse more than five.
      flat = tf.reshape(_wide_slice(x), [-1, self.dim.size])
      y = tf.reshape(tf.cast(tf.nn.softmax(flat), dtype), x.shape)
      return on_slice.align(y, last, shape)

    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    if axis is None:
      return mesh.map_trailing(local, x)
    top, total = _split_sum(mesh, op, x, self.dim, axis)
    at = shape.index(self.dim) - len(shape)

    def normalise(x: tf.Tensor, top: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
      top, total = tf.expand_dims(top, at), tf.expand_dims(total, at)
      return tf.cast(tf.exp(_wide_slice(x) - top) / total, x.dtype)

    return mesh.map_trailing(normalise, x, top, total)


@dataclasses.dataclass(frozen=True)
class LogSumExp(Primitive):
  """log(sum(exp(x))) along a dimension."""

  dim: Dimension
  flops_per_point = 4

  def infer(self, x: Aval) -> Aval:
    _check("reduce_logsumexp", x, self.dim)
    return Aval(x.shape - self.dim, x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    # dx = dy * softmax(x), and softmax(x) = exp(x - y)
    x, y = op.inputs[0], op.outputs[0]
    if _wide(x) is x:
      return [multiply(exp(sub(x, y, x.shape)), dy, x.shape)]
    return [multiply(apply(Softmax(self.dim), x), dy, x.shape)]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    shape, dtype = op.inputs[0].shape, op.inputs[0].dtype
    at = shape.index(self.dim) - len(shape)

    def local(x: tf.Tensor) -> tf.Tensor:
      return tf.cast(tf.reduce_logsumexp(_wide_slice(x), at), dtype)

    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    if axis is None:
      return mesh.map_trailing(local, x)
    top, total = _split_sum(mesh, op, x, self.dim, axis)
    return mesh.map_trailing(
      lambda top, total: tf.cast(tf.math.log(total) + top, dtype), top, total
    )

  def iteration(self, op: Apply) -> Shape:
    return op.inputs[0].shape


def _split_sum(
  mesh: MeshImpl, op: Apply, x: Slices, dim: Dimension, mesh_axis: int
) -> tuple[Slices, Slices]:
  """max(x) and sum(exp(x - max(x))) over all processors' parts of `dim`."""
  shape = op.inputs[0].shape
  at = shape.index(dim) - len(shape)
  top = mesh.allreduce(
    mesh.map_trailing(lambda x: tf.reduce_max(_wide_slice(x), at), x),
    (mesh_axis,),
    "MAX",
  )
  # Where all logits are -inf, subtracting the maximum would make NaN.
  top = mesh.map_trailing(
    lambda top: tf.where(tf.math.is_finite(top), top, tf.zeros_like(top)), top
  )

  def add_up(x: tf.Tensor, top: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.exp(_wide_slice(x) - tf.expand_dims(top, at)), at)

  partial = mesh.map_trailing(add_up, x, top)
  return top, mesh.allreduce(partial, (mesh_axis,), "SUM")


def _wide_slice(x: tf.Tensor) -> tf.Tensor:
  return tf.cast(x, tf.float32) if x.dtype.size < 4 else x


def _wide(x: Tensor) -> Tensor:
  return cast(x, tf.float32) if x.dtype.size < 4 else x


def _check(name: str, x: Aval, dim: Dimension) -> None:
  Kind.REAL.check(name, x.dtype)
  x.shape.index(dim)


def reduce_logsumexp(
  x: Tensor,
  reduced_dim: Dimension,
  extra_logit: Any = None,
  name: str | None = None,
) -> Tensor:
  """log(sum(exp(x))) along a dimension, safe from overflow.

  Args:
    x: floats.
    reduced_dim: a dimension of `x`.
    extra_logit: a number, or a tensor without `reduced_dim`: one more element.
    name: a name for the operation.

  Returns:
    A tensor without `reduced_dim`.
  """
  y = apply(LogSumExp(reduced_dim), x, name=name)
  if extra_logit is None:
    return y
  # log(exp(y) + exp(e)) = y + log(1 + exp(e - y))
  return add(y, softplus(add(negative(y), extra_logit, y.shape)))


def log_softmax(
  x: Tensor,
  reduced_dim: Dimension,
  extra_logit: Any = None,
  name: str | None = None,
) -> Tensor:
  """The logarithm of the softmax: x - log(sum(exp(x))).

  Args:
    x: floats.
    reduced_dim: a dimension of `x`.
    extra_logit: a number, or a tensor without `reduced_dim`: one more element
      in the sum.
    name: a name for the operation.
  """
  check_tensor("log_softmax", x)
  _check("log_softmax", x.aval, reduced_dim)
  wide = _wide(x)
  total = reduce_logsumexp(wide, reduced_dim, extra_logit, name)
  return cast(sub(wide, total, x.shape), x.dtype)


def softmax(
  x: Tensor,
  reduced_dim: Dimension,
  extra_logit: Any = None,
  name: str | None = None,
) -> Tensor:
  """exp(x) / sum(exp(x)) along a dimension.

  Args:
    x: floats.
    reduced_dim: a dimension of `x`.
    extra_logit: a number, or a tensor without `reduced_dim`: one more element
      in the sum.
    name: a name for the operation.
  """
  if extra_logit is None:
    return apply(Softmax(reduced_dim), x, name=name)
  check_tensor("softmax", x)
  _check("softmax", x.aval, reduced_dim)
  wide = log_softmax(_wide(x), reduced_dim, extra_logit, name)
  return cast(exp(wide), x.dtype)
