"""Slots: what an optimizer remembers of a variable from step to step.

A slot is an untrainable float32 variable. Its name is the full name of its
variable with a suffix, wherever it is created, because checkpoints are read by
name. Its dimensions are named after the variable's (`core/slot_names.py`), and
the arithmetic of an optimizer is done under these names. By default they are
laid out as the variable's. A layout rule such as `slot_d_model:batch` splits
slots and arithmetic further (ZeRO-1: Rajbhandari et al., ZeRO: memory
optimizations toward training trillion parameter models, SC 2020). Then the sum
of gradients is scattered, cutting a replicated value sends nothing, and the
update is gathered: together no more than an all-reduce sends.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.names import absolute_names
from ..core.shape import Shape
from ..core.slot_names import slot_shape
from ..ops.cast import cast
from ..ops.linear.reshape import reshape
from ..ops.variables import Variable, get_variable


def slot(var: Variable, suffix: str, shape: Shape | None = None) -> Tensor:
  """A slot of a variable. It begins with zeros.

  Args:
    var: the variable.
    suffix: of the name, after the full name of `var`.
    shape: of the slot, by default all of `to_slot(var.value, var).shape`.
  """
  with absolute_names():
    return get_variable(
      var.mesh,
      var.full_name + suffix,
      slot_shape(var.shape) if shape is None else shape,
      tf.float32,
      initializer=0.0,
      trainable=False,
    )


def to_slot(x: Tensor, var: Variable) -> Tensor:
  """A tensor of the shape of `var`, laid out as its slots, in float32.

  Args:
    x: the variable's value, its gradient, or the like.
    var: the variable.

  Raises:
    ShapeError: `x` has another shape.
  """
  if x.shape != var.shape:
    raise ShapeError(
      f"variable {var.full_name} has shape [{var.shape}], its gradient "
      f"[{x.shape}]; transpose or reshape it"
    )
  return cast(in_slot_layout(x), tf.float32)


def to_variable(x: Tensor, var: Variable) -> Tensor:
  """A tensor of the shape of a slot, laid out as `var`."""
  return reshape(x, var.shape)


# What is done with gradients before an optimizer sees them is done in the
# layout of slots, too. Were a single gradient asked for in its own layout, its
# sum would have to be taken there, and scattering it would save nothing.


def in_slot_layout(x: Tensor) -> Tensor:
  """A gradient or a value, laid out as the slots of its variable.

  The sum of a gradient that is still to be taken is taken here, once: where a
  rule splits slots over what it is summed over, each processor gets its part.
  """
  known = _known(x)
  # What was made inside a loop is not part of the program around it.
  if x not in known or known[x].operation not in x.graph.operations:
    known[x] = reshape(x, slot_shape(x.shape))
  return known[x]


def map_gradient(
  fn: Callable[[Tensor], Tensor], x: Tensor, dtype: tf.DType = tf.float32
) -> Tensor:
  """A function of each element of a gradient, in the layout of its slots.

  Args:
    fn: from float32 to float32, of the same shape.
    x: the gradient.
    dtype: of the result.

  Returns:
    A gradient, laid out as its variable for whoever asks; optimizers do not.
  """
  changed = cast(fn(cast(in_slot_layout(x), tf.float32)), dtype)
  y = reshape(changed, x.shape)
  _known(x)[y] = changed
  return y


def _known(x: Tensor) -> dict[Tensor, Tensor]:
  found: dict[Tensor, Tensor] = x.graph.notes.setdefault(in_slot_layout, {})
  return found
