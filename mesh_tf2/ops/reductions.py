"""Reductions that are made of others: means, norms, first elements, pooling."""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor, apply
from ..core.shape import Dimension, Shape, ShapeLike
from .binary import equal, sub, where
from .cast import cast
from .elementwise import Unary, multiply
from .extremes import reduce_max
from .gather import gather
from .linear.along import dimension_of
from .linear.reshape import replace_dimensions
from .linear.sum_broadcast import by_name_only, keep_sum, reduced_shape
from .operands import Kind
from .source import zeros_like
from .unary import mtf_abs, square


def reduce_mean(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """The mean over a dimension, or over all that `output_shape` lacks.

  The sum of float16, which may be too large for it, is in float32.

  Args:
    x: numbers. The mean of integers is float32.
    disable_positional_args: must be None; give what follows by name.
    output_shape: some of the dimensions of `x`, in any order.
    reduced_dim: a dimension of `x`.
    name: a name for the operation.

  Raises:
    ShapeError: a dimension is not one of `x`.
  """
  by_name_only(disable_positional_args)
  shape = reduced_shape(x, output_shape, reduced_dim)
  dtype = _floating(x.dtype)
  total = keep_sum(cast(x, tf.float32 if dtype == tf.float16 else dtype), shape)
  return cast(
    multiply(total, shape.size / max(x.shape.size, 1), name=name), dtype
  )


def reduce_variance(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """The mean square of the distance to the mean; see `reduce_mean`.

  16-bit floats are added up in float32.
  """
  by_name_only(disable_positional_args)
  shape = reduced_shape(x, output_shape, reduced_dim)
  return cast(_variance(_wide(x), shape), _floating(x.dtype), name)


def reduce_std(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """The root of `reduce_variance`. Where it is 0, so is its gradient."""
  by_name_only(disable_positional_args)
  shape = reduced_shape(x, output_shape, reduced_dim)
  root = apply(_ROOT, _variance(_wide(x), shape))
  return cast(root, _floating(x.dtype), name)


def norm(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
  ord: float = 2,
) -> Tensor:
  """The length of the vectors along a dimension; see `reduce_mean`.

  Where it is 0, so is its gradient. 16-bit floats are added up in float32.

  Args:
    x: numbers. The norm of integers is float32.
    disable_positional_args: must be None; give what follows by name.
    output_shape: some of the dimensions of `x`, in any order; the others
      together make one vector.
    reduced_dim: a dimension of `x`. With neither, all of `x` is one vector.
    name: a name for the operation.
    ord: which norm: 2 for the root of the sum of squares, 1 for the sum of
      absolute values, `float("inf")` for the largest of them.

  Raises:
    ShapeError: a dimension is not one of `x`.
    ValueError: `ord` is another number.
  """
  by_name_only(disable_positional_args)
  shape = reduced_shape(x, output_shape, reduced_dim)
  wide = _wide(x)
  if ord == 2:
    y = apply(_ROOT, keep_sum(square(wide), shape))
  elif ord == 1:
    y = keep_sum(mtf_abs(wide), shape)
  elif ord == math.inf:
    y = reduce_max(mtf_abs(wide), output_shape=shape)
  else:
    raise ValueError(f"norm: ord is {ord!r}; it is 1, 2 or float('inf')")
  return cast(y, _floating(x.dtype), name)


def _variance(x: Tensor, shape: Shape) -> Tensor:
  mean = reduce_mean(x, output_shape=shape)
  away = square(sub(x, mean, x.shape))
  return reduce_mean(away, output_shape=shape)


def _root_gradient(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
  """`dy` / 2y; 0 where y is 0, where no slope is better than another one."""
  return where(equal(y, 0), zeros_like(dy), dy * 0.5 / y)


_ROOT = Unary("sqrt", tf.sqrt, _root_gradient, Kind.REAL)


def _floating(dtype: tf.DType) -> tf.DType:
  return dtype if dtype.is_floating or dtype.is_complex else tf.float32


def _wide(x: Tensor) -> Tensor:
  """In a dtype in which it can be added up: float32 at least."""
  is_narrow = x.dtype.is_floating and x.dtype.size < 4
  return cast(x, tf.float32 if is_narrow else _floating(x.dtype))


def reduce_first(tensor: Tensor, reduced_dim: Dimension) -> Tensor:
  """The elements at position 0 of a dimension, without that dimension."""
  dim = dimension_of("reduce_first", tensor, reduced_dim)
  return gather(tensor, 0, dim)


def pool_tensor_1d(
  tensor: Tensor,
  pool_dim: Dimension,
  reduce_fn: Callable[..., Tensor] = reduce_mean,
  pool_size: int = 2,
) -> Tensor:
  """Reduces groups of neighbouring elements along a dimension.

  Args:
    tensor: a tensor.
    pool_dim: a dimension of it.
    reduce_fn: takes a tensor and `reduced_dim`.
    pool_size: the size of a group; divides that of `pool_dim`.

  Returns:
    A tensor in which `pool_dim` is `pool_size` times smaller.

  Raises:
    ShapeError: the dimension does not divide evenly.
  """
  if pool_size < 1 or pool_dim.size % pool_size:
    raise ShapeError(
      f"pool_tensor_1d: {pool_dim} does not divide into groups of {pool_size}; "
      f"take a pool_size that divides {pool_dim.size}"
    )
  high = Dimension(pool_dim.name, pool_dim.size // pool_size)
  low = Dimension("_low", pool_size)
  grouped = replace_dimensions(tensor, pool_dim, [high, low])
  return reduce_fn(grouped, reduced_dim=low)


def stride_tensor_1d(
  tensor: Tensor, pool_dim: Dimension, pool_size: int = 2
) -> Tensor:
  """Keeps the first of every `pool_size` elements along a dimension."""
  return pool_tensor_1d(tensor, pool_dim, reduce_first, pool_size)
