"""How kernels begin: by the sizes of what they map from and to."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence

from ..core.shape import Dimension
from ..ops import initializers
from .unit_scaling import unit_scaling


class DenseInitializer(abc.ABC):
  """Chooses the initial value of a kernel by what it maps from and to."""

  @abc.abstractmethod
  def __call__(
    self, reduced_dims: Sequence[Dimension], new_dims: Sequence[Dimension]
  ) -> initializers.Initializer:
    """An initializer for a kernel from `reduced_dims` to `new_dims`."""


class VarianceScalingInitializer(DenseInitializer):
  """Random numbers of variance scale / n, n being a number of dimensions' size.

  Args:
    scale: the variance times n.
    mode: n: "fan_in" (the size of the reduced dimensions), "fan_out" (of the
      new ones) or "fan_avg" (the mean of both).
    distribution: "normal" is truncated at two standard deviations, and the
      variance is not corrected for that; or "uniform".

  Under unit scaling n is 1, and the contraction divides by the fan-in instead.

  Raises:
    ValueError: an unknown mode or distribution; or, when it is called, a mode
      other than "fan_in" under unit scaling.
  """

  def __init__(
    self,
    scale: float = 1.0,
    mode: str = "fan_in",
    distribution: str = "normal",
  ) -> None:
    mode, distribution = mode.lower(), distribution.lower()
    if mode not in ("fan_in", "fan_out", "fan_avg"):
      raise ValueError(
        "VarianceScalingInitializer: mode must be fan_in, fan_out or fan_avg, "
        f"got {mode!r}"
      )
    if distribution not in ("normal", "uniform"):
      raise ValueError(
        "VarianceScalingInitializer: distribution must be normal or uniform, "
        f"got {distribution!r}"
      )
    self.scale = scale
    self.mode = mode
    self.distribution = distribution

  def __call__(
    self, reduced_dims: Sequence[Dimension], new_dims: Sequence[Dimension]
  ) -> initializers.Initializer:
    """An initializer for a kernel from `reduced_dims` to `new_dims`."""
    fan_in = math.prod(d.size for d in reduced_dims)
    fan_out = math.prod(d.size for d in new_dims)
    fans = {
      "fan_in": fan_in,
      "fan_out": fan_out,
      "fan_avg": (fan_in + fan_out) / 2,
    }
    variance = self.scale
    if not unit_scaling():
      variance /= max(1.0, fans[self.mode])
    elif self.mode != "fan_in":
      raise ValueError(
        f"VarianceScalingInitializer: mode {self.mode!r} means nothing under "
        'unit scaling, which divides by the fan-in; choose "fan_in"'
      )
    if self.distribution == "uniform":
      limit = math.sqrt(3.0 * variance)
      return initializers.RandomUniform(-limit, limit)
    return initializers.RandomNormal(0.0, math.sqrt(variance), cut=2.0)


_make_initializer: Callable[[], DenseInitializer] = VarianceScalingInitializer


def set_default_kernel_initializer(
  make: Callable[[], DenseInitializer],
) -> None:
  """Chooses how kernels begin for which no initializer is given.

  Args:
    make: returns an initializer for a kernel; at first, this is
      `VarianceScalingInitializer`.
  """
  global _make_initializer
  _make_initializer = make


def default_initializer() -> DenseInitializer:
  """The initializer of a kernel for which none is given."""
  return _make_initializer()
