"""Reversible residual layers: what goes in is computed again from what is out.

Gomez et al., The reversible residual network, 2017. However deep the stack,
only its last outputs are kept for the gradient. The values that are computed
again travel backwards as the "gradients" of two more inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..autodiff.clone import clone_operations
from ..autodiff.custom_gradient import custom_gradient
from ..autodiff.gradients import gradients
from ..core.errors import ShapeError
from ..core.graph import Operation, Tensor
from ..ops.binary import add, sub
from ..ops.effects import barrier
from ..ops.source import zeros_like

Backwards = Tensor | None


def reversible_half_residual_and_swap(
  x1: Tensor,
  x1_backwards: Backwards,
  x2: Tensor,
  x2_backwards: Backwards,
  f: Callable[[Tensor], Tensor],
  recompute_grads: bool = True,
) -> tuple[Tensor, Backwards, Tensor, Backwards]:
  """One layer of a reversible stack: (x1, x2) -> (x2, x1 + f(x2)).

  Args:
    x1: any shape.
    x1_backwards: None in the first layer, then what the layer before returned.
    x2: the same shape.
    x2_backwards: likewise.
    f: a function from a tensor to one of the same shape. It may use other
      tensors and create variables.
    recompute_grads: whether what `f` computes is computed again for the
      gradient, instead of being kept.

  Returns:
    The arguments of the next layer: x2, x2_backwards, x1 + f(x2), x1_backwards.

  Raises:
    ShapeError: `f` returned another shape or dtype.

  Example:
    >>> import mesh_tf2 as mtf
    >>> x = mtf.ones(mtf.Mesh(mtf.Graph(), "mesh"), "batch:4 d_model:8")
    >>> state = (x, None, x, None)
    >>> for layer in (mtf.tanh, mtf.sin):
    ...   state = mtf.layers.reversible_half_residual_and_swap(*state, layer)
    >>> x1, _, x2, _ = state
  """

  def step(
    x1: Tensor, x1_backwards: Tensor, x2: Tensor, x2_backwards: Tensor
  ) -> list[Tensor]:
    return [x2, x2_backwards, _residual(x1, f(x2)), x1_backwards]

  if not recompute_grads:
    return x2, x2_backwards, _residual(x1, f(x2)), x1_backwards
  inputs = [
    x1,
    zeros_like(x1) if x1_backwards is None else x1_backwards,
    x2,
    zeros_like(x2) if x2_backwards is None else x2_backwards,
  ]
  y2, y2_backwards, y1, y1_backwards = custom_gradient(
    step, _reverse, inputs, fills_gradients=False
  )
  return y2, y2_backwards, y1, y1_backwards


def _residual(x1: Tensor, fx2: Tensor) -> Tensor:
  if fx2.aval != x1.aval:
    raise ShapeError(
      f"reversible_half_residual_and_swap: f made {fx2.aval!r} of "
      f"{x1.aval!r}; shape and dtype must stay"
    )
  return add(x1, fx2)


def _reverse(
  explicit_inputs: Sequence[Tensor],
  all_inputs: Sequence[Tensor],
  forward_operations: Sequence[Operation],
  outputs: Sequence[Tensor],
  output_grads: Sequence[Tensor | None],
) -> list[Tensor | None]:
  """Computes the inputs from the outputs, then the gradients."""
  others = list(all_inputs[len(explicit_inputs) :])
  dy2, y2_again, dy1, y1_again = output_grads
  # Only in the last layer of the stack nobody has computed the outputs again.
  y2 = outputs[0] if y2_again is None else y2_again
  y1 = outputs[2] if y1_again is None else y1_again
  dy1 = zeros_like(y1) if dy1 is None else dy1
  # Not before the gradient is there, or all layers would be computed at once.
  x2, y1 = barrier([y2, y1], [dy1])
  *inside, addition = forward_operations
  mapping = {explicit_inputs[2]: x2}
  clones = clone_operations(inside, mapping)
  fx2 = addition.inputs[1]
  fx2 = mapping.get(fx2, fx2)
  x1 = sub(y1, fx2)
  grads = gradients([fx2], [x2, *others], [dy1], clones)
  dx2, d_others = grads[0], grads[1:]
  if dx2 is None:
    dx2 = dy2
  elif dy2 is not None:
    dx2 = add(dx2, dy2)
  return [dy1, x1, dx2, x2, *d_others]
