"""Which positions an output position looks at, along one dimension.

Output i looks at the inputs i * stride + k * dilation - before for k = 0, ...,
size - 1. What lies outside of the input is padding.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from ....core.errors import ShapeError


class Padding(enum.Enum):
  """Whether an output may look at positions outside of the input."""

  SAME = "SAME"  # ceil(n / stride) outputs
  VALID = "VALID"  # only those outputs that see nothing but inputs


@dataclasses.dataclass(frozen=True)
class Stencil:
  """A filter's size, stride, dilation and padding along one dimension."""

  size: int
  stride: int
  dilation: int
  padding: Padding

  @property
  def span(self) -> int:
    """The distance from the first input seen to the last one, both counted."""
    return (self.size - 1) * self.dilation + 1

  def outputs(self, inputs: int) -> int:
    """How many outputs there are."""
    seen = self.span if self.padding is Padding.VALID else 1
    return max(-(-(inputs - seen + 1) // self.stride), 0)

  def window(self, outputs: int) -> int:
    """How many inputs so many neighbouring outputs look at."""
    return (outputs - 1) * self.stride + self.span if outputs else 0

  def before(self, inputs: int) -> int:
    """How many positions of padding there are before the first input."""
    if self.padding is Padding.VALID:
      return 0
    return max(self.window(self.outputs(inputs)) - inputs, 0) // 2

  def natural_inputs(self, outputs: int) -> int:
    """How many inputs a transposed convolution makes of so many outputs."""
    if self.padding is Padding.SAME:
      return outputs * self.stride
    return outputs * self.stride + max(self.span - self.stride, 0)


Numbers = int | Sequence[int]


def stencils(
  name: str,
  sizes: Sequence[int],
  strides: Numbers,
  padding: str,
  dilations: Numbers = 1,
) -> tuple[Stencil, ...]:
  """A stencil for each spatial dimension.

  Args:
    name: of the operation, for errors.
    sizes: of the filter.
    strides: one number, one for each dimension, or those between a 1 for the
      batch and a 1 for the channels.
    padding: "SAME" or "VALID".
    dilations: like `strides`.

  Raises:
    ShapeError: one of the arguments is of no such form.
  """
  if padding not in Padding.__members__:
    raise ShapeError(
      f'{name}: padding must be "SAME" or "VALID", got {padding!r}'
    )
  n = len(sizes)
  return tuple(
    Stencil(*numbers, Padding[padding])
    for numbers in zip(
      positive_numbers(name, "the filter's sizes", sizes, n),
      positive_numbers(name, "strides", strides, n),
      positive_numbers(name, "dilations", dilations, n),
      strict=True,
    )
  )


def positive_numbers(
  name: str, what: str, given: Numbers, count: int
) -> list[int]:
  """One number for each of `count` spatial dimensions."""
  found = [given] * count if isinstance(given, int) else list(given)
  if len(found) == count + 2 and found[0] == found[-1] == 1:
    found = found[1:-1]
  if len(found) != count or min(found, default=1) < 1:
    raise ShapeError(
      f"{name}: {what} must be a positive number for each of {count} spatial "
      f"dimensions, got {given!r}"
    )
  return found
