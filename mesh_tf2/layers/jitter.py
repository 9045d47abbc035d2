"""Noise that makes a model ready for the errors of narrow floats."""

from __future__ import annotations

from ..core.graph import Tensor
from ..ops.binary import multiply
from ..ops.cast import cast
from ..ops.random import random_uniform
from .precision import at_least_float32


def multiplicative_jitter(x: Tensor, epsilon: float = 1e-2) -> Tensor:
  """Each element times a random number of its own, in [1 - e, 1 + e).

  Args:
    x: floats.
    epsilon: e; 0 for no noise.

  Returns:
    The shape and dtype of `x`.
  """
  if epsilon == 0:
    return x
  wide = at_least_float32(x)
  noise = random_uniform(
    x.mesh, x.shape, 1.0 - epsilon, 1.0 + epsilon, wide.dtype
  )
  return cast(multiply(wide, noise), x.dtype)
