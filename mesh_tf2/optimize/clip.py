"""Gradients whose norm together is bounded.

Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural
networks, ICML 2013.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from ..core.graph import Tensor
from ..ops.binary import add_n, divide, maximum, sub
from ..ops.cast import cast
from ..ops.elementwise import add, multiply
from ..ops.linear.sum_broadcast import reduce_sum
from ..ops.unary import sqrt, square
from .slots import in_slot_layout, map_gradient


def global_norm(xs: Sequence[Tensor | None]) -> Tensor:
  """The Euclidean norm of all elements of all tensors, a float32 scalar.

  Args:
    xs: gradients or values of any shape and floating dtype; None counts as
      nothing. Of a tensor that is split, a single number is reduced over the
      mesh.

  Raises:
    ValueError: there is no tensor.
  """
  squares = [
    reduce_sum(square(cast(in_slot_layout(x), tf.float32)), output_shape=[])
    for x in xs
    if x is not None
  ]
  if not squares:
    raise ValueError("global_norm: no tensor is given, only None or nothing")
  return sqrt(add_n(squares))


def clip_by_global_norm(
  grads: Sequence[Tensor | None], clip_norm: float | Tensor
) -> tuple[list[Tensor | None], Tensor]:
  """Gradients, scaled down together until their norm is `clip_norm`.

      grads *= clip_norm / max(norm, clip_norm)

  Args:
    grads: gradients; None stays None.
    clip_norm: the largest norm, positive; a number or a scalar.

  Returns:
    The gradients, in their own dtypes, and their norm before, float32. If that
    is not finite, no gradient is a number: see `LossScaling` for leaving out
    such a step.

  Raises:
    ValueError: `clip_norm` is a number that is not positive, or no gradient is
      given.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mesh = mtf.Mesh(mtf.Graph(), "mesh")
    >>> g = mtf.constant(mesh, 3.0, [])
    >>> grads, norm = mtf.optimize.clip_by_global_norm([g, None, g], 1.0)
  """
  if not isinstance(clip_norm, Tensor) and not clip_norm > 0:
    raise ValueError(
      f"clip_by_global_norm: clip_norm is {clip_norm}; it has to be positive"
    )
  norm = global_norm(grads)
  scale = divide(clip_norm, maximum(norm, clip_norm))
  scale = add(scale, sub(norm, norm))  # no number where the norm is infinite

  def clip(g: Tensor) -> Tensor:
    return map_gradient(lambda g: multiply(g, scale), g, g.dtype)

  return [None if g is None else clip(g) for g in grads], norm
