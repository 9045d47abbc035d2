"""Gradients of convolutions under names that say the number of dimensions.

They are the original's. The general ones are in `conv.py`.
"""

from __future__ import annotations

from ....core.errors import ShapeError
from ....core.graph import Tensor
from ....core.shape import Shape, ShapeLike, to_shape
from .conv import conv, conv_backprop_filter, conv_backprop_input
from .stencil import Numbers


def conv2d_backprop_input(
  input_shape: ShapeLike,
  conv_filter: Tensor,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None = None,
) -> Tensor:
  """`conv_backprop_input` over two spatial dimensions."""
  _check_rank("conv2d_backprop_input", 2, conv_filter.shape)
  return conv_backprop_input(
    input_shape, conv_filter, dy, strides, padding, name=name
  )


def conv3d_backprop_input(
  input_shape: ShapeLike,
  conv_filter: Tensor,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None = None,
) -> Tensor:
  """`conv_backprop_input` over three spatial dimensions."""
  _check_rank("conv3d_backprop_input", 3, conv_filter.shape)
  return conv_backprop_input(
    input_shape, conv_filter, dy, strides, padding, name=name
  )


def conv2d_backprop_filter(
  conv_input: Tensor,
  filter_shape: ShapeLike,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None = None,
) -> Tensor:
  """`conv_backprop_filter` over two spatial dimensions."""
  _check_rank("conv2d_backprop_filter", 2, to_shape(filter_shape))
  return conv_backprop_filter(
    conv_input, filter_shape, dy, strides, padding, name=name
  )


def conv3d_backprop_filter(
  conv_input: Tensor,
  filter_shape: ShapeLike,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None = None,
) -> Tensor:
  """`conv_backprop_filter` over three spatial dimensions."""
  _check_rank("conv3d_backprop_filter", 3, to_shape(filter_shape))
  return conv_backprop_filter(
    conv_input, filter_shape, dy, strides, padding, name=name
  )


def conv2d_transpose_backprop_input(
  input_shape: ShapeLike,
  conv_filter: Tensor,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None = None,
) -> Tensor:
  """The gradient of `conv_transpose` for its input, in two dimensions.

  Args:
    input_shape: the shape of the input of the transposed convolution.
    conv_filter: its filter.
    dy: the gradient of its output.
    strides: one number, or one for each spatial dimension.
    padding: "SAME" or "VALID".
    name: a name for the operation.

  Raises:
    ShapeError: `dy` is not of the shape of an output.
  """
  _check_rank("conv2d_transpose_backprop_input", 2, conv_filter.shape)
  return _transpose_input(input_shape, conv_filter, dy, strides, padding, name)


def conv3d_transpose_backprop_input(
  input_shape: ShapeLike,
  conv_filter: Tensor,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None = None,
) -> Tensor:
  """Like `conv2d_transpose_backprop_input`, in three dimensions."""
  _check_rank("conv3d_transpose_backprop_input", 3, conv_filter.shape)
  return _transpose_input(input_shape, conv_filter, dy, strides, padding, name)


def conv2d_transpose_backprop_filter(
  conv_input: Tensor,
  filter_shape: ShapeLike,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None = None,
) -> Tensor:
  """The gradient of `conv_transpose` for its filter, in two dimensions.

  Args:
    conv_input: the input of the transposed convolution.
    filter_shape: the shape of its filter.
    dy: the gradient of its output.
    strides: one number, or one for each spatial dimension.
    padding: "SAME" or "VALID".
    name: a name for the operation.

  Raises:
    ShapeError: `dy` is not of the shape of an output.
  """
  _check_rank("conv2d_transpose_backprop_filter", 2, to_shape(filter_shape))
  return conv_backprop_filter(
    dy, filter_shape, conv_input, strides, padding, name=name
  )


def conv3d_transpose_backprop_filter(
  conv_input: Tensor,
  filter_shape: ShapeLike,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None = None,
) -> Tensor:
  """Like `conv2d_transpose_backprop_filter`, in three dimensions."""
  _check_rank("conv3d_transpose_backprop_filter", 3, to_shape(filter_shape))
  return conv_backprop_filter(
    dy, filter_shape, conv_input, strides, padding, name=name
  )


def _transpose_input(
  input_shape: ShapeLike,
  conv_filter: Tensor,
  dy: Tensor,
  strides: Numbers,
  padding: str,
  name: str | None,
) -> Tensor:
  dx = conv(dy, conv_filter, strides, padding, name=name)
  if dx.shape != (wanted := to_shape(input_shape)):
    raise ShapeError(
      f"a transposed convolution of [{wanted}] does not give [{dy.shape}]: the "
      f"gradient of its input would be [{dx.shape}]"
    )
  return dx


def _check_rank(name: str, ndims: int, filter_shape: Shape) -> None:
  if len(filter_shape) != ndims + 2:
    raise ShapeError(
      f"{name} takes a filter of {ndims} spatial dimensions and two of "
      f"channels, got [{filter_shape}]"
    )
