"""Pooling: the largest, or the mean, of the neighbours of each position.

Every dimension may be split over the mesh; `pool_primitives.py` says what that
costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor, apply
from ..core.shape import Shape
from .binary import multiply
from .linear.convolution.stencil import (
  Numbers,
  Padding,
  Stencil,
  positive_numbers,
  stencils,
)
from .pool_primitives import MaxPool, Pools, SumPool, SumPoolAdjoint, ToLargest
from .source import import_tf_tensor


def max_pool(
  x: Tensor,
  ksize: Sequence[int],
  strides: Numbers | None = None,
  padding: str = "VALID",
  name: str | None = None,
) -> Tensor:
  """The largest element of each window.

  In the gradient, every element that is as large as its window's largest gets
  the whole gradient of that window, as in `reduce_max`.

  Args:
    x: batch dimensions (any number), one to three spatial ones, channels.
    ksize: the size of a window along each spatial dimension.
    strides: from one window to the next; by default `ksize`, so that windows
      neither overlap nor leave gaps.
    padding: "VALID" drops windows that are not whole; "SAME" keeps
      ceil(n / stride) of them, and takes what is there.
    name: a name for the operation.

  Returns:
    Batch dimensions, spatial ones of the same names, channels.

  Raises:
    ShapeError: the arguments do not fit `x`.
  """
  return apply(
    MaxPool(_pools("max_pool", ksize, strides, padding)), x, name=name
  )


def avg_pool(
  x: Tensor,
  ksize: Sequence[int],
  strides: Numbers | None = None,
  padding: str = "VALID",
  name: str | None = None,
) -> Tensor:
  """The mean of each window; padding does not count. See `max_pool`.

  Raises:
    ShapeError: the arguments do not fit `x`.
    ValueError: `x` is of integers.
  """
  if not x.dtype.is_floating:
    raise ValueError(
      f"avg_pool takes floating point numbers, got {x.dtype.name}; cast them"
    )
  pools = _pools("avg_pool", ksize, strides, padding)
  return _per_element(pools, x.shape, apply(SumPool(pools), x, name=name))


def _pools(
  name: str, ksize: Sequence[int], strides: Numbers | None, padding: str
) -> Pools:
  sizes = list(ksize)
  if not 1 <= len(sizes) <= 3:
    raise ShapeError(
      f"{name}: ksize is a number for each of one to three spatial dimensions, "
      f"got {ksize!r}"
    )
  steps = sizes if strides is None else strides
  return Pools(stencils(name, sizes, steps, padding))


def _per_element(pools: Pools, inputs: Shape, y: Tensor) -> Tensor:
  """`y` divided by how many elements of the input each window has."""
  n = len(pools.stencils)
  pairs = list(zip(inputs[-n - 1 : -1], y.shape[-n - 1 : -1], strict=True))
  for (d, out), s in zip(pairs, pools.stencils, strict=True):
    counts = _counts(s, d.size)
    if s.padding is Padding.SAME:
      share = tf.constant(1 / counts, y.dtype)
      y = multiply(y, import_tf_tensor(y.mesh, share, Shape([out])), y.shape)
    else:
      y = multiply(y, 1 / s.size)
  return y


def _counts(stencil: Stencil, inputs: int) -> Any:
  """How many elements of the input each window has, along one dimension."""
  begin = np.arange(stencil.outputs(inputs)) * stencil.stride
  begin -= stencil.before(inputs)
  end = np.minimum(begin + stencil.size, inputs)
  return (end - np.maximum(begin, 0)).astype(np.float64)


POOL_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
  "AVG_2D": (2, tf.nn.avg_pool2d),
  "AVG_3D": (3, tf.nn.avg_pool3d),
  "MAX_2D": (2, tf.nn.max_pool2d),
  "MAX_3D": (3, tf.nn.max_pool3d),
}


def pool_fn(pool_fn_string: str) -> Callable[..., Any]:
  """TensorFlow's function for AVG_2D, AVG_3D, MAX_2D or MAX_3D.

  Raises:
    ValueError: another name.
  """
  return _known(pool_fn_string)[1]


def pool_backprop(
  x: Tensor,
  y: Tensor,
  dy: Tensor,
  ksize: Sequence[int],
  strides: Numbers,
  pool_fn_string: str,
  name: str | None = None,
) -> Tensor:
  """The gradient of pooling without padding, for its input.

  Args:
    x: the input.
    y: the output.
    dy: the gradient of the output.
    ksize: the size of a window along each spatial dimension.
    strides: from one window to the next.
    pool_fn_string: AVG_2D, AVG_3D, MAX_2D or MAX_3D.
    name: a name for the operation.

  Returns:
    A tensor of the shape of `x`.

  Raises:
    ShapeError: `y` or `dy` is not of the shape of the output.
    ValueError: an unknown `pool_fn_string`.
  """
  ndims, _ = _known(pool_fn_string)
  sizes = positive_numbers("pool_backprop", "ksize", ksize, ndims)
  pools = _pools("pool_backprop", sizes, strides, "VALID")
  if pool_fn_string.startswith("MAX"):
    return apply(ToLargest(pools), x, y, dy, name=name)
  dy = _per_element(pools, x.shape, dy)
  return apply(SumPoolAdjoint(pools, x.shape), dy, name=name)


def _known(name: str) -> tuple[int, Callable[..., Any]]:
  if name not in POOL_FUNCTIONS:
    raise ValueError(
      f"unknown pooling {name!r}; it is one of {', '.join(POOL_FUNCTIONS)}"
    )
  return POOL_FUNCTIONS[name]
