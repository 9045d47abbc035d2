"""A bound on the gradients that flow through an activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autodiff.custom_gradient import custom_gradient
from ..core.graph import Tensor
from ..core.shape import Dimension, Shape
from ..ops.binary import add, divide, minimum, multiply
from ..ops.cast import cast
from ..ops.effects import scalar_summary
from ..ops.extremes import reduce_max
from ..ops.reductions import reduce_mean
from ..ops.unary import identity, sqrt, square
from .precision import at_least_float32

_TINY = 1e-20  # keeps the quotient finite where the gradient is zero


def clip_activation_gradient(
  x: Tensor, clip_rms_norm: float | None = None
) -> Tensor:
  """`x`, whose gradient is scaled down to a root mean square of at most this.

  The gradient's root mean square goes to TensorBoard, as it comes in.

  Args:
    x: any shape.
    clip_rms_norm: the bound; None for none.
  """
  if clip_rms_norm is None:
    return x

  def grad_fn(
    explicit_inputs: Any,
    all_inputs: Any,
    forward_operations: Any,
    outputs: Any,
    output_grads: Any,
  ) -> list[Tensor]:
    dy = output_grads[0]
    wide = at_least_float32(dy)
    rms = sqrt(reduce_mean(square(wide)))
    scalar_summary(f"{x.operation.name}_gradient_rms", rms)
    factor = minimum(divide(clip_rms_norm, add(rms, _TINY)), 1.0)
    return [cast(multiply(wide, factor, dy.shape), dy.dtype)]

  return custom_gradient(identity, grad_fn, [x])


def summary_for_clip_activation_gradient(
  t: Tensor,
  name: str | None = None,
  batch_dims: Sequence[Dimension] | None = None,
) -> None:
  """Sends the root mean square of a tensor to TensorBoard.

  Args:
    t: an activation, or the gradient of one.
    name: the summary is `<name>_rms`; by default that of the operation that
      made `t`.
    batch_dims: if given, `<name>_max_rms` is the largest root mean square of
      an example, too.
  """
  name = name or t.operation.name
  squares = square(at_least_float32(t))
  scalar_summary(f"{name}_rms", sqrt(reduce_mean(squares)))
  if batch_dims:
    each = sqrt(reduce_mean(squares, output_shape=Shape(batch_dims)))
    scalar_summary(f"{name}_max_rms", reduce_max(each))
