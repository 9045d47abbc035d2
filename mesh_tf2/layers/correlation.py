"""How features go together."""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.shape import Dimension, Shape
from ..ops.binary import add, multiply, sub
from ..ops.cast import cast
from ..ops.linear.einsum import einsum
from ..ops.linear.reshape import rename_dimension
from ..ops.linear.sum_broadcast import reduce_sum
from ..ops.reductions import reduce_mean
from ..ops.unary import rsqrt, square
from .precision import at_least_float32


def corr(
  x: Tensor,
  dim: Dimension,
  epsilon: float = 1e-20,
  name: str = "pearson_correlation",
) -> Tensor:
  """Pearson's correlation of each two positions of a dimension.

  Args:
    x: has `dim`; its other dimensions count the observations.
    dim: the features.
    epsilon: added to each sum of squares.
    name: a name for the operation.

  Returns:
    [<dim>_1, <dim>_2], in [-1, 1].
  """
  wide = at_least_float32(x)
  features = Shape([dim])
  centred = sub(wide, reduce_mean(wide, output_shape=features), x.shape)
  squares = reduce_sum(square(centred), output_shape=features)
  normal = multiply(centred, rsqrt(add(squares, epsilon)), x.shape)
  first, second = (
    rename_dimension(normal, dim.name, f"{dim.name}_{i}") for i in (1, 2)
  )
  pairs = Shape([Dimension(f"{dim.name}_{i}", dim.size) for i in (1, 2)])
  return cast(einsum([first, second], pairs, name=name), x.dtype)
