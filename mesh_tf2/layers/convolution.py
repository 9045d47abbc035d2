"""Convolution layers: a kernel, and the convolution with it.

Batch, spatial and channel dimensions may be split over the mesh; the kernel's
spatial dimensions `fd`, `fh` and `fw` may not. What is split is not seen in the
result; `mtf.conv` says what it costs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension, Shape
from ..ops.cast import cast
from ..ops.linear.convolution.conv import conv, conv_transpose
from ..ops.linear.convolution.stencil import Numbers
from ..ops.linear.reshape import reshape
from ..ops.variables import VariableDType, get_variable

_FILTER_NAMES = ("fd", "fh", "fw")


@dataclasses.dataclass(frozen=True)
class ConvLayer:
  """A convolution that makes its own kernel.

  Attributes:
    label: the name of its scope, if it has no other one.
    filter_size: a number for each spatial dimension.
    strides: likewise, or one number for all.
    padding: "SAME" or "VALID".
    filter_initializer: of the kernel; by default Glorot's uniform one.
    variable_dtype: of the kernel; by default float32, used in the dtype of x.
    name: of its scope.
    dilations: like `strides`.
    groups: the number of groups of channels.
  """

  label: str
  filter_size: Sequence[int]
  strides: Numbers
  padding: str
  filter_initializer: Any
  variable_dtype: VariableDType | None
  name: str | None
  dilations: Numbers = 1
  groups: int = 1

  def convolve(self, x: Tensor, output_dim: Dimension, ndims: int) -> Tensor:
    """The convolution of `x` over `ndims` spatial dimensions."""
    self._check(x, ndims)
    inputs = x.shape[-1]
    if self.groups > 1:
      inputs = Dimension(f"{inputs.name}_group", inputs.size // self.groups)
    w = self._kernel(x, inputs, output_dim)
    return conv(x, w, self.strides, self.padding, self.dilations, self.groups)

  def transpose(self, x: Tensor, output_dim: Dimension, ndims: int) -> Tensor:
    """The transposed convolution of `x`."""
    self._check(x, ndims)
    w = self._kernel(x, output_dim, x.shape[-1])
    return conv_transpose(x, w, self.strides, self.padding)

  def _check(self, x: Tensor, ndims: int) -> None:
    if len(self.filter_size) != ndims:
      raise ShapeError(
        f"{self.label}: filter_size is a number for each of {ndims} spatial "
        f"dimensions, got {self.filter_size!r}"
      )
    if len(x.shape) < ndims + 1:
      raise ShapeError(
        f"{self.label} takes batch dimensions, {ndims} spatial ones and "
        f"channels, got [{x.shape}]"
      )
    if self.groups < 1 or x.shape[-1].size % self.groups:
      raise ShapeError(
        f"{self.label}: {x.shape[-1]} does not divide into {self.groups} groups"
      )

  def _kernel(self, x: Tensor, *channels: Dimension) -> Tensor:
    names = _FILTER_NAMES[-len(self.filter_size) :]
    pairs = zip(names, self.filter_size, strict=True)
    shape = Shape([*(Dimension(*pair) for pair in pairs), *channels])
    dtype = self.variable_dtype or VariableDType(activation_dtype=x.dtype)
    with layer_scope(x.graph, self.name, self.label):
      w = get_variable(
        x.mesh, "kernel", shape, dtype, initializer=self.filter_initializer
      )
    return cast(w, x.dtype)


def conv1d(
  x: Tensor,
  output_dim: Dimension,
  filter_size: int = 3,
  stride: int = 1,
  **kw_args: Any,
) -> Tensor:
  """Convolution over the last dimension but one.

  It is a `conv2d` over an image of height 1, so the kernel has the dimension
  `fh:1`.

  Args:
    x: batch dimensions, length, channels.
    output_dim: the channels of the result.
    filter_size: the width of the filter.
    stride: from one output to the next.
    **kw_args: for `conv2d`.

  Returns:
    Batch dimensions, length, `output_dim`.

  Raises:
    ShapeError: the arguments do not fit `x`.
  """
  if len(x.shape) < 2:
    raise ShapeError(f"conv1d takes a length and channels, got [{x.shape}]")
  height = Dimension("fake_height", 1)
  image = Shape([*x.shape[:-2], height, *x.shape[-2:]])
  y = conv2d(
    reshape(x, image), output_dim, (1, filter_size), (1, stride), **kw_args
  )
  return reshape(y, y.shape - height)


def conv2d(  # noqa: PLR0913  the original's signature
  x: Tensor,
  output_dim: Dimension,
  filter_size: Sequence[int] = (3, 3),
  strides: Numbers = (1, 1),
  padding: str = "SAME",
  filter_initializer: Any = None,
  variable_dtype: VariableDType | None = None,
  name: str | None = None,
  dilations: Numbers = 1,
  groups: int = 1,
) -> Tensor:
  """Convolution over two spatial dimensions, with a kernel of its own.

  Args:
    x: batch dimensions (any number), height, width, channels.
    output_dim: the channels of the result; not named like those of `x`, unless
      there are several groups.
    filter_size: the height and the width of the filter.
    strides: from one output to the next.
    padding: "SAME" gives ceil(n / stride) outputs, "VALID" only those that see
      no padding.
    filter_initializer: of the kernel; by default Glorot's uniform distribution.
    variable_dtype: of the kernel; by default float32, used in the dtype of `x`.
    name: the scope of the variable `kernel`: fh, fw, input channels (those of
      one group), output channels.
    dilations: the distance between the positions that a filter sees.
    groups: an output channel sees the input channels of its group.

  Returns:
    Batch dimensions, height, width, `output_dim`.

  Raises:
    ShapeError: the arguments do not fit `x`.
  """
  layer = ConvLayer(
    "conv2d",
    filter_size,
    strides,
    padding,
    filter_initializer,
    variable_dtype,
    name,
    dilations,
    groups,
  )
  return layer.convolve(x, output_dim, 2)


def conv3d(  # noqa: PLR0913  the original's signature
  x: Tensor,
  output_dim: Dimension,
  filter_size: Sequence[int] = (3, 3, 3),
  strides: Numbers = (1, 1, 1),
  padding: str = "SAME",
  filter_initializer: Any = None,
  variable_dtype: VariableDType | None = None,
  name: str | None = None,
  dilations: Numbers = 1,
  groups: int = 1,
) -> Tensor:
  """Convolution over depth, height and width; see `conv2d`."""
  layer = ConvLayer(
    "conv3d",
    filter_size,
    strides,
    padding,
    filter_initializer,
    variable_dtype,
    name,
    dilations,
    groups,
  )
  return layer.convolve(x, output_dim, 3)


def conv2d_transpose(
  x: Tensor,
  output_dim: Dimension,
  filter_size: Sequence[int] = (2, 2),
  strides: Numbers = (2, 2),
  padding: str = "SAME",
  filter_initializer: Any = None,
  variable_dtype: VariableDType | None = None,
  name: str | None = None,
) -> Tensor:
  """Transposed convolution over two spatial dimensions.

  Args:
    x: batch dimensions (any number), height, width, channels.
    output_dim: the channels of the result; not named like those of `x`.
    filter_size: the height and the width of the filter.
    strides: by how much height and width grow.
    padding: "SAME" makes n * stride of n positions, "VALID" makes
      n * stride + max(size - stride, 0).
    filter_initializer: of the kernel; by default Glorot's uniform distribution.
    variable_dtype: of the kernel; by default float32, used in the dtype of `x`.
    name: the scope of the variable `kernel`: fh, fw, output channels, input
      channels.

  Returns:
    Batch dimensions, height, width, `output_dim`.

  Raises:
    ShapeError: the arguments do not fit `x`.
  """
  layer = ConvLayer(
    "conv2d_transpose",
    filter_size,
    strides,
    padding,
    filter_initializer,
    variable_dtype,
    name,
  )
  return layer.transpose(x, output_dim, 2)


def conv3d_transpose(
  x: Tensor,
  output_dim: Dimension,
  filter_size: Sequence[int] = (2, 2, 2),
  strides: Numbers = (2, 2, 2),
  padding: str = "SAME",
  filter_initializer: Any = None,
  variable_dtype: VariableDType | None = None,
  name: str | None = None,
) -> Tensor:
  """Transposed convolution in three dimensions; see `conv2d_transpose`."""
  layer = ConvLayer(
    "conv3d_transpose",
    filter_size,
    strides,
    padding,
    filter_initializer,
    variable_dtype,
    name,
  )
  return layer.transpose(x, output_dim, 3)
