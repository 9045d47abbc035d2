"""A bound on the gradients that flow through an activation."""

from __future__ import annotations

from typing import Any

from ..autodiff.custom_gradient import custom_gradient
from ..core.graph import Tensor
from ..ops.binary import add, divide, minimum, multiply
from ..ops.cast import cast
from ..ops.reductions import reduce_mean
from ..ops.unary import identity, sqrt, square
from .precision import at_least_float32

_TINY = 1e-20  # keeps the quotient finite where the gradient is zero


def clip_activation_gradient(
  x: Tensor, clip_rms_norm: float | None = None
) -> Tensor:
  """`x`, whose gradient is scaled down to a root mean square of at most this.

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
    factor = minimum(divide(clip_rms_norm, add(rms, _TINY)), 1.0)
    return [cast(multiply(wide, factor, dy.shape), dy.dtype)]

  return custom_gradient(identity, grad_fn, [x])
