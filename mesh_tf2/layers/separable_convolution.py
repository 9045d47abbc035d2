"""Separable convolution: over positions and over channels, one at a time.

The length may be split over the mesh: a shift for each position of the filter
sends the border to the next processor.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension
from ..ops.binary import add
from ..ops.linear.shift import shift
from .dense import dense
from .dense_initializers import VarianceScalingInitializer


def separable_conv1d(  # noqa: PLR0913  the original's signature
  x: Tensor,
  output_dim: Dimension,
  min_relative_pos: int = -1,
  max_relative_pos: int = 1,
  depthwise_filter_initializer_scale: float = 1.0,
  pointwise_filter_initializer_scale: float = 1.0,
  name: str | None = None,
  use_bias: bool = True,
  kernel_depth_weights: Sequence[Tensor] | None = None,
) -> Tensor:
  """A filter over positions for each channel, then a dense layer.

  Args:
    x: batch dimensions, length, channels.
    output_dim: the channels of the result.
    min_relative_pos: the first position that an output sees, counted from its
      own; -2 is the last but one before it.
    max_relative_pos: the last position that an output sees; 0 makes it causal.
    depthwise_filter_initializer_scale: of the first part's kernels.
    pointwise_filter_initializer_scale: of the dense layer's kernel.
    name: the scope of the variables: `depthwise_conv_hack/depthwise_dense_<i>/
      kernel` for each position, a bias with the first, and
      `pointwise_dense/kernel` and `bias`. The names are the original's.
    use_bias: whether to add biases.
    kernel_depth_weights: kernels to use instead of variables, one for each
      position; each has the channels of `x`, or some of the dimensions of `x`.

  Returns:
    Batch dimensions, length, `output_dim`.

  Raises:
    ValueError: there are no positions, or another number of kernels.
  """
  count = max_relative_pos - min_relative_pos + 1
  if count < 1:
    raise ValueError(
      "separable_conv1d: min_relative_pos must not be more than "
      f"max_relative_pos, got {min_relative_pos} and {max_relative_pos}"
    )
  kernels: Sequence[Tensor | None] = kernel_depth_weights or [None] * count
  if len(kernels) != count:
    raise ValueError(
      f"separable_conv1d: {len(kernels)} kernels for {count} positions, from "
      f"{min_relative_pos} to {max_relative_pos}; give one for each"
    )
  *_, length, channels = x.shape.dims
  scale = depthwise_filter_initializer_scale / count
  with layer_scope(x.graph, name, "separable_conv1d"):
    with layer_scope(x.graph, None, "depthwise_conv_hack"):
      parts = [
        dense(
          shift(x, -(min_relative_pos + i), length, wrap=False),
          new_dims=[],
          reduced_dims=[],
          expert_dims=[channels],
          kernel_weights=kernel,
          name=f"depthwise_dense_{i}",
          use_bias=use_bias and i == 0,
          kernel_initializer=VarianceScalingInitializer(scale),
        )
        for i, kernel in enumerate(kernels)
      ]
    return dense(
      functools.reduce(add, parts),
      new_dims=[output_dim],
      reduced_dims=[channels],
      name="pointwise_dense",
      use_bias=use_bias,
      kernel_initializer=VarianceScalingInitializer(
        pointwise_filter_initializer_scale
      ),
    )
