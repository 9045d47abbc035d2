"""Losses per position, in float32."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension
from ..ops.binary import add, less, maximum, multiply, not_equal, sub
from ..ops.cast import cast
from ..ops.gather import gather
from ..ops.linear.einsum import einsum
from ..ops.softmax import reduce_logsumexp
from ..ops.source import mtf_range
from ..ops.unary import exp, log, mtf_abs, negative, relu, square
from .precision import at_least_float32


def softmax_cross_entropy_with_logits(
  logits: Tensor,
  targets: Tensor,
  vocab_dim: Dimension,
  z_loss: float = 0.0,
  label_smoothing: float = 0.0,
  vocab_size: int | None = None,
) -> Tensor:
  """-sum(targets * log_softmax(logits)), computed in float32 or wider.

  Hard targets are never spread out over the vocabulary. With label smoothing
  (Szegedy et al., 2016), the target's weight is 1 - label_smoothing +
  label_smoothing / V, and that of each of the other V - 1 ids is
  label_smoothing / V.

  Args:
    logits: has `vocab_dim`.
    targets: ids of any integer dtype, with the dimensions of `logits` but
      `vocab_dim`; or the probability of each id, with all of them.
    vocab_dim: the classes.
    z_loss: this times log(Z)^2 is added, where Z is the sum of the exponentials
      of the logits: it keeps log(Z) close to 0.
    label_smoothing: in [0, 1); for ids only.
    vocab_size: V, by default the size of `vocab_dim`. Classes from V on only
      pad the dimension: label smoothing gives them no weight.

  Returns:
    The dimensions of `logits` but `vocab_dim`.

  Raises:
    ShapeError: the shapes do not fit.
    ValueError: label smoothing with soft targets.
  """
  wide = at_least_float32(logits)
  kept = wide.shape - vocab_dim
  log_z = reduce_logsumexp(wide, vocab_dim)
  if targets.dtype.is_integer:
    if set(targets.shape) != set(kept):
      raise _misfit(logits, targets, kept)
    smoothing = _Smoothing(
      label_smoothing, vocab_dim, vocab_size or vocab_dim.size
    )
    loss = sub(log_z, smoothing.mean_logit(wide, targets), kept)
  else:
    if set(targets.shape) != set(wide.shape):
      raise _misfit(logits, targets, wide.shape)
    if label_smoothing:
      raise ValueError(
        "softmax_cross_entropy_with_logits: label_smoothing is for integer "
        "targets; smooth soft targets yourself"
      )
    soft = cast(targets, wide.dtype)
    # sum(p * (log_z - logit)), which is right even where sum(p) is not 1.
    loss = einsum([soft, sub(log_z, wide, wide.shape)], kept)
  if z_loss:
    loss = add(loss, multiply(square(log_z), z_loss), kept)
  return loss


@dataclasses.dataclass(frozen=True)
class _Smoothing:
  """Targets that are mostly one id, and a little of all real ids."""

  amount: float
  vocab_dim: Dimension
  vocab_size: int

  def mean_logit(self, logits: Tensor, targets: Tensor) -> Tensor:
    """The mean of the logits under the smoothed targets."""
    # Negative ids stand for tokens that are not scored.
    ids = maximum(targets, 0)
    kept = logits.shape - self.vocab_dim
    chosen = gather(logits, ids, self.vocab_dim, output_shape=kept)
    if not self.amount:
      return chosen
    off = self.amount / self.vocab_size
    real = less(
      mtf_range(logits.mesh, self.vocab_dim, tf.int32), self.vocab_size
    )
    spread = einsum([logits, cast(real, logits.dtype)], kept)
    return add(multiply(chosen, 1.0 - self.amount), multiply(spread, off), kept)


def _misfit(logits: Tensor, targets: Tensor, wanted: Any) -> ShapeError:
  return ShapeError(
    f"cross entropy of logits [{logits.shape}]: targets of dtype "
    f"{targets.dtype.name} have shape [{targets.shape}], wanted [{wanted}]"
  )


def sigmoid_cross_entropy_with_logits(
  logits: Tensor, targets: Tensor
) -> Tensor:
  """-targets * log(p) - (1 - targets) * log(1 - p), where p = sigmoid(logits).

  Args:
    logits: any shape.
    targets: in [0, 1], of the same shape.

  Returns:
    The same shape, in float32 or wider.

  Raises:
    ShapeError: the shapes differ.
  """
  if logits.shape != targets.shape:
    raise ShapeError(
      f"sigmoid cross entropy of logits [{logits.shape}]: targets have shape "
      f"[{targets.shape}]; the two must be the same"
    )
  x = at_least_float32(logits)
  y = cast(targets, x.dtype)
  # max(x, 0) - x * y + log(1 + exp(-|x|)), in which nothing overflows.
  tail = log(add(exp(negative(mtf_abs(x))), 1.0))
  return add(sub(relu(x), multiply(x, y)), tail)


def weights_nonzero(targets: Tensor, dtype: Any = tf.float32) -> Tensor:
  """1 where an id is not 0, the padding."""
  return cast(not_equal(targets, 0), dtype)
