"""Decoding one sequence an example: the likeliest token, or a sampled one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from ..autodiff.while_loop import while_loop
from ..core.graph import Tensor
from ..ops.binary import equal, less, logical_and, not_equal, where
from ..ops.extremes import reduce_all, reduce_any
from ..ops.gather import gather
from ..ops.sampling import sample_with_temperature
from ..ops.source import constant, mtf_range
from ..ops.unary import logical_not
from .beam_search import EOS_ID

LogitsFn = Callable[..., tuple[Tensor, list[Tensor]]]


def greedy_decode(
  logits_fn: LogitsFn,
  initial_ids: Tensor,
  temperature: float = 0.0,
  initial_states: Sequence[Tensor] | None = None,
  eos_id: int = EOS_ID,
  forced_ids: Tensor | None = None,
  use_tpu: bool = True,
) -> Tensor:
  """Decodes token by token.

  Args:
    logits_fn: `f(step, ids, states)` returns the logits (batch, vocab) of the
      token at position `step`, given the ids before it, and the new states.
    initial_ids: batch, length: int32; overwritten from position 0 on.
    temperature: 0 for the likeliest token; else of the sampling.
    initial_states: tensors handed on from step to step.
    eos_id: the token that ends a sequence.
    forced_ids: batch, length: where not 0, taken instead of the model's choice.
    use_tpu: without effect.

  Returns:
    batch, length: the ids. What follows the end has no meaning.
  """
  del use_tpu
  mesh = initial_ids.mesh
  length = initial_ids.shape.dims[-1]

  def more(i: Tensor, ids: Tensor, *states: Tensor) -> Tensor:
    ended = equal(ids, eos_id)
    past = less(mtf_range(mesh, length, tf.int32), i)
    return logical_and(
      less(i, length.size),
      logical_not(_all_have(logical_and(ended, past), ids)),
    )

  def body(i: Tensor, ids: Tensor, *states: Tensor) -> list[Tensor]:
    logits, new_states = logits_fn(i, ids, list(states))
    vocab = logits.shape.dims[-1]
    token = sample_with_temperature(logits, vocab, temperature)
    if forced_ids is not None:
      forced = gather(forced_ids, i, length)
      token = where(not_equal(forced, 0), forced, token)
    here = equal(mtf_range(mesh, length, tf.int32), i)
    return [i + 1, where(here, token, ids, ids.shape), *new_states]

  zero = constant(mesh, 0, dtype=tf.int32)
  start = [zero, initial_ids, *(initial_states or [])]
  return while_loop(more, body, start)[1]


def _all_have(flags: Tensor, ids: Tensor) -> Tensor:
  """Whether every sequence has a True somewhere along its last dimension."""
  length = ids.shape.dims[-1]
  return reduce_all(reduce_any(flags, reduced_dim=length))
