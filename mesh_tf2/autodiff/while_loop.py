"""A loop whose number of rounds is known only when it runs.

Its condition and its body are graphs of their own, lowered inside one
`tf.while_loop`. Loop variables keep their layout from round to round. What the
body sums up over all rounds (its accumulators) is reduced over the mesh once,
after the last round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from .loop import LoopOperation, Parts, check_carried
from .loop_lowering import Rounds
from .subgraph import capture


def while_loop(
  cond_fn: Callable[..., Tensor],
  body_fn: Callable[..., Any],
  inputs: Sequence[Tensor],
  num_loop_vars: int | None = None,
  has_accumulators: bool = False,
  **tf_kwargs: Any,
) -> list[Tensor]:
  """Runs `body_fn` while `cond_fn` holds.

  It has a gradient: what each round began with is kept, and the round is
  computed again on the way back. Where the number of rounds is known, `scan`
  needs less.

  Args:
    cond_fn: takes the loop variables, returns a bool scalar.
    body_fn: takes the loop variables, returns a list of their new values, of
      the same shapes and dtypes. With `has_accumulators`, further tensors may
      follow, each of which is summed over all rounds.
    inputs: the first values of the loop variables.
    num_loop_vars: return that many of them only; by default all.
    has_accumulators: whether the body returns accumulators.
    **tf_kwargs: for `tf.while_loop`, such as `maximum_iterations`.

  Returns:
    The loop variables after the last round, then the accumulators.

  Raises:
    ShapeError: a loop variable changes its shape or dtype, or there is none.
    ValueError: the body assigns to a variable.

  Example:
    >>> import mesh_tf2 as mtf
    >>> program = mtf.Program()
    >>> @program.function
    ... def doubled(mesh, x):
    ...   x = mtf.import_tf_tensor(mesh, x, "")
    ...   (y,) = mtf.while_loop(lambda y: y < 100.0, lambda y: [y + y], [x])
    ...   return y, mtf.gradients([y], [x])[0]
    >>> [float(y) for y in doubled(3.0)]
    [192.0, 64.0]
  """
  if not inputs:
    raise ShapeError("while_loop needs a loop variable, got none")
  mesh, name = inputs[0].mesh, "while_loop"
  body = capture(body_fn, mesh, [x.aval for x in inputs], name)
  condition = capture(cond_fn, mesh, body.inputs, name)
  _check_results(inputs, condition.results, body.results, has_accumulators)
  outputs = LoopOperation(
    mesh,
    inputs,
    body,
    Parts(len(inputs)),
    Rounds(condition=condition),
    tf_kwargs,
    name,
  ).outputs
  return outputs if num_loop_vars is None else outputs[:num_loop_vars]


def _check_results(
  inputs: Sequence[Tensor],
  cond: Sequence[Tensor],
  body: Sequence[Tensor],
  has_accumulators: bool,
) -> None:
  if len(cond) != 1 or len(cond[0].shape) or cond[0].dtype != tf.bool:
    raise ShapeError(
      "while_loop: the condition must be a bool scalar, got "
      f"{', '.join(map(repr, cond))}"
    )
  if len(body) < len(inputs) or (
    len(body) > len(inputs) and not has_accumulators
  ):
    raise ShapeError(
      f"while_loop: the body returns {len(body)} tensors for {len(inputs)} "
      "loop variables; more are allowed with has_accumulators=True only"
    )
  check_carried("while_loop", inputs, body)
