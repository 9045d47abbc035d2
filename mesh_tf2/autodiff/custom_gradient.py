"""Gradients that the user writes, or that compute the forward pass again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.graph import Operation, Tensor
from ..ops.effects import barrier
from ..ops.variables import Variable
from ..spmd.lowering import Lowering
from .clone import clone_operations
from .gradients import gradients


class CustomGradientOperation(Operation):
  """Copies of the outputs of a function, with another gradient.

  The gradient goes to the inputs of the function directly, so that its
  operations need no gradient of their own, and what they computed need not be
  kept.
  """

  def __init__(
    self,
    explicit_inputs: Sequence[Tensor],
    all_inputs: Sequence[Tensor],
    fn_outputs: Sequence[Tensor],
    grad_fn: Callable[..., Sequence[Tensor | None]],
    forward_operations: Sequence[Operation],
    fills_gradients: bool = True,
    name: str | None = None,
  ) -> None:
    super().__init__([*all_inputs, *fn_outputs], name=name or "custom_gradient")
    self._explicit_inputs = list(explicit_inputs)
    self._all_inputs = list(all_inputs)
    self._fn_outputs = list(fn_outputs)
    self._grad_fn = grad_fn
    self.forward_operations = list(forward_operations)
    self.fills_gradients = fills_gradients
    self._outputs = [
      Tensor(self, y.shape, y.dtype, index=i) for i, y in enumerate(fn_outputs)
    ]

  def lower(self, lowering: Lowering) -> None:
    """Copies the slices."""
    for x, y in zip(self._fn_outputs, self._outputs, strict=True):
      lowering.set_tensor_lowering(y, lowering.slices(x))

  def gradient(self, grad_ys: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """What `grad_fn` says."""
    dxs = self._grad_fn(
      self._explicit_inputs,
      self._all_inputs,
      self.forward_operations,
      self._fn_outputs,
      list(grad_ys),
    )
    return [*dxs, *[None] * len(self._fn_outputs)]

  def clone(self, inputs: Sequence[Tensor]) -> CustomGradientOperation:
    """The same on other inputs, with the same forward operations."""
    other = dict(zip(self._inputs, inputs, strict=True))
    return CustomGradientOperation(
      [other[x] for x in self._explicit_inputs],
      [other[x] for x in self._all_inputs],
      [other[y] for y in self._fn_outputs],
      self._grad_fn,
      self.forward_operations,
      self.fills_gradients,
    )

  def adopt(self, clones: Mapping[Operation, Operation]) -> None:
    """What it computes again is what its own inputs went through."""
    self.forward_operations = [
      clones.get(o, o) for o in self.forward_operations
    ]


def custom_gradient(
  fn: Callable[..., Any],
  grad_fn: Callable[..., Sequence[Tensor | None]],
  explicit_inputs: Sequence[Tensor],
  fills_gradients: bool = True,
) -> Any:
  """Calls `fn`, and replaces its gradient.

  Args:
    fn: takes `explicit_inputs`, returns a tensor or a list of them. It may use
      other tensors, and create variables.
    grad_fn: `f(explicit_inputs, all_inputs, forward_operations, outputs,
      output_grads)` returns a gradient for each of `all_inputs`: the explicit
      inputs, then the other floating tensors that `fn` uses.
    explicit_inputs: the arguments of `fn`.
    fills_gradients: whether the gradient of an output that nothing depends on
      is given as zeros; otherwise as None.

  Returns:
    What `fn` returns.
  """
  graph = explicit_inputs[0].graph
  result, operations = graph.capture_operations(lambda: fn(*explicit_inputs))
  outputs = [result] if isinstance(result, Tensor) else list(result)
  inner = [op for op in operations if not isinstance(op, Variable)]
  made = {y for op in inner for y in op.outputs}
  used = dict.fromkeys(
    x
    for op in inner
    for x in op.inputs
    if x not in made and x.dtype.is_floating
  )
  others = [x for x in used if x not in explicit_inputs]
  ys = CustomGradientOperation(
    explicit_inputs,
    [*explicit_inputs, *others],
    outputs,
    grad_fn,
    inner,
    fills_gradients,
  ).outputs
  return ys[0] if isinstance(result, Tensor) else ys


def recompute_grad(
  fn: Callable[..., Any],
  explicit_inputs: Sequence[Tensor],
  control_dependencies: bool = True,
) -> Any:
  """Calls `fn`; its gradient computes it again instead of remembering it.

  Trades time for memory: of what `fn` computes only the results are kept
  (Chen et al., Training deep nets with sublinear memory cost, 2016). Random
  numbers come out the same the second time.

  Args:
    fn: takes `explicit_inputs`, returns a tensor or a list of them.
    explicit_inputs: the arguments of `fn`.
    control_dependencies: whether to wait with the second computation until the
      gradient of the results has arrived.

  Returns:
    What `fn` returns.
  """

  def grad_fn(
    explicit_inputs: Sequence[Tensor],
    all_inputs: Sequence[Tensor],
    forward_operations: Sequence[Operation],
    outputs: Sequence[Tensor],
    output_grads: Sequence[Tensor],
  ) -> Sequence[Tensor | None]:
    after = output_grads if control_dependencies else []
    fresh = barrier(all_inputs, after)
    mapping = dict(zip(all_inputs, fresh, strict=True))
    clones = clone_operations(forward_operations, mapping)
    ys = [mapping.get(y, y) for y in outputs]
    return gradients(ys, fresh, output_grads, clones)

  return custom_gradient(fn, grad_fn, explicit_inputs)
