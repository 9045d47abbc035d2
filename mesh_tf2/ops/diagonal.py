"""The diagonal of two dimensions.

Each element is looked up: nothing is multiplied, and of a split dimension
nothing travels but the diagonal.
"""

from __future__ import annotations

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension
from .gather import gather
from .linear.along import dimension_of
from .source import mtf_range


def diagonal(x: Tensor, dim: Dimension | str, other: Dimension | str) -> Tensor:
  """The elements whose positions along two dimensions are the same.

  Args:
    x: a tensor with both dimensions.
    dim: the one that is kept, or its name. Summing over it gives the trace.
    other: the one that goes; as large as `dim`.

  Raises:
    ShapeError: the sizes differ, or `x` lacks one of the dimensions.
  """
  dim = dimension_of("diagonal", x, dim)
  other = dimension_of("diagonal", x, other)
  if dim == other or dim.size != other.size:
    raise ShapeError(
      f"diagonal of {dim} and {other}: two dimensions of one size are needed; "
      "slice the longer one first"
    )
  positions = mtf_range(x.mesh, dim, tf.int32)
  return gather(x, positions, other, x.shape - other)
