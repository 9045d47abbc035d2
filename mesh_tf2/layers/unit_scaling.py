"""Unit scaling: weights of variance one, and contractions that scale down.

Usually a weight's initial variance is 1 / n, where n is how much is summed over
it. Under this convention the weight has variance one, and the contraction
divides by sqrt(n): all weights are of one size, whatever the model's, and so
are the steps that an optimizer takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.graph import Tensor
from ..ops.binary import multiply
from ..ops.linear.einsum import einsum


def unit_scaling_convention(value: bool = False) -> bool:
  """Whether the convention holds: `value`, to which configurations bind."""
  return value


Switch = Callable[[], bool]

_switch: Switch = unit_scaling_convention


def set_unit_scaling(switch: bool | Switch) -> Switch:
  """Turns the convention on or off for all graphs built from now on.

  Args:
    switch: whether it holds, or a function that says so whenever it is asked.

  Returns:
    The switch until now, which may be set again.

  Example:
    >>> import mesh_tf2 as mtf
    >>> before = mtf.layers.set_unit_scaling(True)
    >>> mtf.layers.unit_scaling()
    True
    >>> before = mtf.layers.set_unit_scaling(before)
  """
  global _switch
  before, _switch = _switch, switch if callable(switch) else lambda: switch
  return before


def unit_scaling() -> bool:
  """Whether the convention holds now."""
  return _switch()


def us_einsum(xs: Sequence[Tensor], *args: Any, **kwargs: Any) -> Tensor:
  """An einsum; under unit scaling, divided by sqrt(size of what is summed).

  Args:
    xs: tensors of one dtype.
    *args: for `einsum`.
    **kwargs: for `einsum`.
  """
  y = einsum(xs, *args, **kwargs)
  if not unit_scaling():
    return y
  summed = {d for x in xs for d in x.shape} - set(y.shape)
  return multiply(y, math.prod(d.size for d in summed) ** -0.5)
