"""Continuing sequences token by token: the likeliest one, or a sampled one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from .masks import causal_priority
from .reader import Memory, Reader, prompt_length

if TYPE_CHECKING:
  from .unitransformer import Unitransformer

_NEVER = -1e9  # the logit of a token that must not be chosen


def sample(
  logits: mtf.Tensor, temperature: float = 0.0, keep_top_k: int = -1
) -> mtf.Tensor:
  """Chooses a token for each row of logits.

  Args:
    logits: batch, vocab.
    temperature: 0 for the likeliest token, the first one if there are several.
    keep_top_k: choose among so many likeliest tokens, and those as likely as
      the last of them; not positive for all.

  Returns:
    batch: int32.
  """
  vocab = logits.shape.dims[-1]
  if 0 < keep_top_k < vocab.size:
    least = mtf.nth_largest_element(logits, keep_top_k - 1, vocab)
    kept = mtf.greater_equal(logits, least)
    logits = mtf.where(kept, logits, _NEVER, logits.shape)
  return mtf.sample_with_temperature(logits, vocab, temperature)


@gin.configurable(module="Unitransformer")
def sample_autoregressive(  # noqa: PLR0913  names fixed by the original
  model: Unitransformer,
  partial_sequences: mtf.Tensor,
  stop_at_token: int | None = 1,
  max_steps: int | None = None,
  temperature: float = 0.0,
  variable_dtype: mtf.VariableDType = mtf.VariableDType(tf.float32),  # noqa: B008
  encoder_output: mtf.Tensor | None = None,
  encoder_sequence_id: mtf.Tensor | None = None,
  encoder_inputs: mtf.Tensor | None = None,
  shared_params: dict[str, Any] | None = None,
  has_partial_sequences: bool = True,
  encoder_layer_outputs: list[mtf.Tensor] | None = None,
  never_end: bool = False,
  remove_partial_sequences: bool = False,
  sampling_keep_top_k: int = -1,
  bos_id: int = 0,
) -> mtf.Tensor:
  """Continues sequences token by token.

  Args:
    model: an autoregressive model.
    partial_sequences: batch, length: the ids given, 0 behind them. Each row
      is continued from its own end.
    stop_at_token: a row ends with its first such token after what was given;
      None for no such token.
    max_steps: the most tokens to add to a row; by default up to the length.
    temperature: of the sampling; 0 takes the likeliest token.
    variable_dtype: of the model's variables.
    encoder_output: batch, memory_length, d_model.
    encoder_sequence_id: batch, memory_length.
    encoder_inputs: batch, memory_length.
    shared_params: tables that encoder and decoder share.
    has_partial_sequences: False if `partial_sequences` is all 0.
    encoder_layer_outputs: the output of each layer of the encoder.
    never_end: whether to go on after `stop_at_token`.
    remove_partial_sequences: whether to return the continuations only, moved
      to the beginning of the row.
    sampling_keep_top_k: choose among so many likeliest tokens; -1 for all.
    bos_id: the id that is read before the first position.

  Returns:
    batch, length: ids; 0 behind the end.
  """
  memory = Memory(
    encoder_output,
    encoder_sequence_id,
    encoder_inputs,
    encoder_layer_outputs,
    shared_params,
  )
  reader = Reader(
    model, partial_sequences, variable_dtype, memory, None, bos_id
  )
  length = reader.length
  begin = prompt_length(partial_sequences)
  if not has_partial_sequences:
    reader.states = [mtf.zeros_like(x) for x in reader.states]

  def done(position: mtf.Tensor, ids: mtf.Tensor) -> mtf.Tensor:
    """Which rows are finished: batch."""
    end = mtf.greater_equal(position, length.size)
    if max_steps is not None:
      steps = position - begin
      end = mtf.logical_or(end, mtf.greater_equal(steps, max_steps))
    if stop_at_token is None or never_end:
      return end
    places = causal_priority(ids)
    added = mtf.greater_equal(places, begin, ids.shape)
    stop = mtf.logical_and(mtf.equal(ids, stop_at_token), added)
    return mtf.logical_or(end, mtf.reduce_any(stop, reduced_dim=length))

  def more(
    position: mtf.Tensor, ids: mtf.Tensor, *states: mtf.Tensor
  ) -> mtf.Tensor:
    return mtf.logical_not(mtf.reduce_all(done(position, ids)))

  def body(
    position: mtf.Tensor, ids: mtf.Tensor, *states: mtf.Tensor
  ) -> list[mtf.Tensor]:
    logits, new_states = reader.logits(position, ids, states)
    token = sample(logits, temperature, sampling_keep_top_k)
    token = mtf.where(done(position, ids), 0, token, token.shape)
    here = mtf.equal(causal_priority(ids), position, ids.shape)
    ids = mtf.where(here, token, ids, ids.shape)
    return [position + 1, ids, *new_states]

  _, ids, *_ = mtf.while_loop(
    more, body, [begin, partial_sequences, *reader.states]
  )
  if not remove_partial_sequences:
    return ids
  return move_to_front(ids, begin)


def move_to_front(ids: mtf.Tensor, begin: mtf.Tensor) -> mtf.Tensor:
  """Drops the first `begin` ids of each row; 0 fills up the end.

  Args:
    ids: batch, length.
    begin: batch: int32.
  """
  length = ids.shape.dims[-1]
  places = mtf.add(causal_priority(ids), begin, ids.shape)
  return mtf.gather(
    mtf.rename_dimension(ids, length.name, "_source_length"),
    places,
    mtf.Dimension("_source_length", length.size),
    output_shape=ids.shape,
  )
