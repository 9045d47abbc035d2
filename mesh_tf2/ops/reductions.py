"""Reductions that are made of others: means, first elements, pooling."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension, ShapeLike
from .cast import cast
from .elementwise import multiply
from .gather import gather
from .linear.reshape import replace_dimensions
from .linear.sum_broadcast import by_name_only, keep_sum, reduced_shape


def reduce_mean(
  x: Tensor,
  disable_positional_args: None = None,
  output_shape: ShapeLike | None = None,
  reduced_dim: object = None,
  name: str | None = None,
) -> Tensor:
  """The mean over a dimension, or over all that `output_shape` lacks.

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
  x = x if x.dtype.is_floating else cast(x, tf.float32)
  total = keep_sum(x, shape)
  return multiply(total, shape.size / max(x.shape.size, 1), name=name)


def reduce_first(tensor: Tensor, reduced_dim: Dimension) -> Tensor:
  """The elements at position 0 of a dimension, without that dimension."""
  return gather(tensor, 0, reduced_dim)


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
      f"pool_tensor_1d: {pool_dim} does not divide into groups of {pool_size}"
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
