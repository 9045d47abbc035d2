"""Dense layers: an einsum with a kernel, a bias, an activation function.

Summing over a dimension that is split leaves one allreduce of the result
pending; a new dimension that is split needs no communication.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension, Shape
from ..ops import initializers
from ..ops.binary import add, multiply
from ..ops.cast import cast
from ..ops.linear.reshape import rename_dimension
from ..ops.unary import activation as activation_function
from ..ops.variables import VariableDType, get_variable
from .dense_initializers import DenseInitializer, default_initializer
from .unit_scaling import us_einsum

Dims = Dimension | Sequence[Dimension]
Activation = str | Callable[[Tensor], Tensor]


def dense(  # noqa: PLR0913  the original's signature
  x: Tensor,
  new_dims: Dims,
  reduced_dims: Sequence[Dimension] | None = None,
  expert_dims: Sequence[Dimension] | None = None,
  use_bias: bool = True,
  activation: Activation | None = None,
  master_dtype: Any = tf.float32,
  slice_dtype: Any = tf.float32,
  variable_dtype: VariableDType | None = None,
  kernel_initializer: Any = None,
  kernel_weights: Tensor | None = None,
  name: str | None = None,
) -> Tensor:
  """activation(x * kernel + bias).

  Args:
    x: the input; has `reduced_dims`, and `expert_dims` if they are given.
    new_dims: a dimension, or several.
    reduced_dims: what is summed over, by default the last dimension of `x`.
      One that is also a new dimension is renamed first: `_` is put before it.
    expert_dims: dimensions of `x` for each of which there is a kernel.
    use_bias: whether to add a bias.
    activation: a function, the name of one in `mtf`, or None.
    master_dtype: of the variables in a checkpoint.
    slice_dtype: of the variables in memory.
    variable_dtype: takes the place of both.
    kernel_initializer: a `DenseInitializer`, by default what
      `set_default_kernel_initializer` says; or what `get_variable` takes.
    kernel_weights: a kernel to use instead of a variable.
    name: the scope of the variables `kernel` and `bias`.

  Returns:
    The dimensions of `x` without the reduced ones, then the new ones.
  """
  new = _as_list(new_dims)
  reduced = x.shape.dims[-1:] if reduced_dims is None else list(reduced_dims)
  experts = list(expert_dims or ())
  x, reduced = _without_clash(x, reduced, new)
  dtype = _variable_dtype(variable_dtype, master_dtype, slice_dtype, x)
  with layer_scope(x.graph, name, "dense"):
    if kernel_weights is None:
      kernel_weights = _kernel(
        x, new, reduced, experts, kernel_initializer, dtype
      )
    shape = Shape([*x.shape.drop(reduced).dims, *new])
    y = us_einsum([x, kernel_weights], shape)
    if use_bias:
      zeros = initializers.Constant(0.0)
      b = get_variable(
        x.mesh, "bias", Shape([*experts, *new]), dtype, initializer=zeros
      )
      y = add(y, cast(b, x.dtype), y.shape)
  return y if activation is None else activation_function(activation)(y)


def get_dense_kernel_weights(  # noqa: PLR0913  the original's signature
  x: Tensor,
  new_dims: Dims,
  reduced_dims: Sequence[Dimension],
  expert_dims: Sequence[Dimension] | None,
  kernel_initializer: Any,
  name: str | None = None,
  variable_dtype: VariableDType | None = None,
  master_dtype: Any = tf.float32,
  slice_dtype: Any = tf.float32,
) -> Tensor:
  """The kernel that `dense` would make, in the dtype of `x`.

  Returns:
    A tensor of the expert, the reduced and the new dimensions, in this order.
  """
  dtype = _variable_dtype(variable_dtype, master_dtype, slice_dtype, x)
  with layer_scope(x.graph, name, "dense"):
    return _kernel(
      x,
      _as_list(new_dims),
      list(reduced_dims),
      list(expert_dims or ()),
      kernel_initializer,
      dtype,
    )


def dense_product(
  x: Tensor,
  reduced_dims: Sequence[Dimension],
  new_dims: Dims,
  activation_functions: Activation | Sequence[Activation] | None = None,
  name: str = "dense_product",
  **kwargs: Any,
) -> Tensor:
  """The product of several dense layers, each with its own activation.

  `["gelu", "linear"]` is the gated unit of Shazeer, GLU variants improve
  Transformer, 2020.

  Args:
    x: the input.
    reduced_dims: what is summed over.
    new_dims: the new dimensions.
    activation_functions: one function or name, or a list of them; "linear" is
      the identity.
    name: the scope of the one layer; that of layer i of several is `<name>_i`.
    **kwargs: for `dense`.
  """
  if activation_functions is None:
    activation_functions = "linear"
  functions: list[Activation]
  if isinstance(activation_functions, str) or callable(activation_functions):
    functions = [activation_functions]
  else:
    functions = list(activation_functions)
  names = [f"{name}_{i}" for i in range(len(functions))]
  if len(functions) == 1:
    names = [name]
  factors = [
    dense(x, new_dims, reduced_dims, activation=f, name=n, **kwargs)
    for f, n in zip(functions, names, strict=True)
  ]
  return functools.reduce(multiply, factors)


def _kernel(
  x: Tensor,
  new: list[Dimension],
  reduced: list[Dimension],
  experts: list[Dimension],
  initializer: Any,
  dtype: VariableDType,
) -> Tensor:
  if initializer is None:
    initializer = default_initializer()
  if isinstance(initializer, DenseInitializer):
    initializer = initializer(reduced, new)
  shape = Shape([*experts, *reduced, *new])
  w = get_variable(x.mesh, "kernel", shape, dtype, initializer=initializer)
  return cast(w, x.dtype)


def _without_clash(
  x: Tensor, reduced: list[Dimension], new: list[Dimension]
) -> tuple[Tensor, list[Dimension]]:
  """Renames the reduced dimensions that are new dimensions too."""
  names = {d.name for d in new}
  for i, d in enumerate(reduced):
    if d.name in names:
      x = rename_dimension(x, d.name, f"_{d.name}")
      reduced[i] = Dimension(f"_{d.name}", d.size)
  return x, reduced


def _variable_dtype(
  given: VariableDType | None, master: Any, slice_: Any, x: Tensor
) -> VariableDType:
  return given or VariableDType(master, slice_, x.dtype)


def _as_list(dims: Dims) -> list[Dimension]:
  return [dims] if isinstance(dims, Dimension) else list(dims)
