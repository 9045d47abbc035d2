"""Pooling of images and volumes, by the original's names.

Windows neither overlap nor leave gaps; for others, see `mtf.max_pool`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..ops.pool import avg_pool, max_pool


def max_pool2d(
  x: Tensor, ksize: Sequence[int] = (2, 2), name: str | None = "max_pool2d"
) -> Tensor:
  """The largest element of each window of an image.

  Args:
    x: batch dimensions (any number), height, width, channels.
    ksize: height and width of a window.
    name: a name for the operation.

  Returns:
    Batch dimensions, height and width divided by those of a window and rounded
    down, channels.

  Raises:
    ShapeError: the windows do not fit into `x`.
  """
  _check("max_pool2d", ksize, 2)
  return x if tuple(ksize) == (1, 1) else max_pool(x, ksize, name=name)


def max_pool3d(
  x: Tensor, ksize: Sequence[int] = (2, 2, 2), name: str | None = "max_pool3d"
) -> Tensor:
  """The largest element of each window of a volume; see `max_pool2d`."""
  _check("max_pool3d", ksize, 3)
  return x if tuple(ksize) == (1, 1, 1) else max_pool(x, ksize, name=name)


def avg_pool2d(
  x: Tensor, ksize: Sequence[int] = (2, 2), name: str | None = "avg_pool2d"
) -> Tensor:
  """The mean of each window of an image; see `max_pool2d`."""
  _check("avg_pool2d", ksize, 2)
  return x if tuple(ksize) == (1, 1) else avg_pool(x, ksize, name=name)


def avg_pool3d(
  x: Tensor, ksize: Sequence[int] = (2, 2, 2), name: str | None = "avg_pool3d"
) -> Tensor:
  """The mean of each window of a volume; see `max_pool2d`."""
  _check("avg_pool3d", ksize, 3)
  return x if tuple(ksize) == (1, 1, 1) else avg_pool(x, ksize, name=name)


def _check(name: str, ksize: Sequence[int], ndims: int) -> None:
  if len(ksize) != ndims:
    raise ShapeError(
      f"{name}: ksize is a number for each of {ndims} spatial dimensions, got "
      f"{ksize!r}"
    )
