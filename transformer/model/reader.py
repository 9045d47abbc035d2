"""A model that has read the beginning of sequences and can go on from there.

What is given is read in one go; then one position at a time, each layer keeping
its keys and values from step to step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

import mesh_tf2 as mtf

from .context import FIRST_PART, Context
from .masks import autoregressive_inputs, causal_priority, prefix_priority

if TYPE_CHECKING:
  from .unitransformer import Unitransformer


@dataclasses.dataclass(frozen=True)
class Memory:
  """What a decoder knows of the encoder; empty for a language model.

  Attributes:
    encoder_output: batch, memory_length, d_model.
    encoder_sequence_id: batch, memory_length.
    encoder_inputs: batch, memory_length.
    encoder_layer_outputs: the output of each layer of the encoder.
    shared_params: tables that encoder and decoder share.
  """

  encoder_output: mtf.Tensor | None = None
  encoder_sequence_id: mtf.Tensor | None = None
  encoder_inputs: mtf.Tensor | None = None
  encoder_layer_outputs: list[mtf.Tensor] | None = None
  shared_params: dict[str, Any] | None = None

  def fields(self) -> dict[str, Any]:
    """The attributes by name, as a `Context` takes them."""
    names = [f.name for f in dataclasses.fields(self)]
    return {name: getattr(self, name) for name in names}


class Reader:
  """A model that has read the beginning of sequences and goes on from there.

  Args:
    model: an autoregressive model.
    prompt: batch (and beam), length: the ids given, 0 behind them.
    variable_dtype: of the model's variables.
    memory: of the encoder.
    beam_dim: the beam dimension of `prompt`, if it has one.
    bos_id: the id that is read before the first position.
  """

  def __init__(
    self,
    model: Unitransformer,
    prompt: mtf.Tensor,
    variable_dtype: mtf.VariableDType,
    memory: Memory,
    beam_dim: mtf.Dimension | None = None,
    bos_id: int = 0,
  ) -> None:
    self._model = model
    self._bos_id = bos_id
    self.length = prompt.shape.dims[-1]
    priority = causal_priority(prompt)
    if model.input_full_attention:
      priority = prefix_priority(prompt)
    self._context = Context(
      model=model,
      mesh=prompt.mesh,
      batch_dims=prompt.shape.dims[:-1],
      length_dim=self.length,
      variable_dtype=variable_dtype,
      beam_dim=beam_dim,
      mode=FIRST_PART,
      position=causal_priority(prompt),
      position_is_default=True,
      sequence_id=1,
      new_states=[],
      initial_position=prompt_length(prompt),
      constant_states=[],
      write_priority=priority,
      read_priority=priority,
      inputs=prompt,
      **memory.fields(),
    )
    model.call_with_context(self._context, self._shifted(prompt))
    self.states = list(self._context.new_states or [])

  def _shifted(self, prompt: mtf.Tensor) -> mtf.Tensor:
    before = autoregressive_inputs(prompt)
    if not self._bos_id:
      return before
    first = mtf.equal(causal_priority(prompt), 0)
    return mtf.where(first, self._bos_id, before, before.shape)

  def logits(
    self, position: mtf.Tensor, ids: mtf.Tensor, states: Sequence[mtf.Tensor]
  ) -> tuple[mtf.Tensor, list[mtf.Tensor]]:
    """Logits of the token at `position`, and the states after it.

    Args:
      position: int32: a scalar, or batch.
      ids: batch (and beam), length: the sequences up to `position`.
      states: the states before it.

    Returns:
      Logits (batch, beam, vocab), and the new states.
    """
    before = mtf.gather(ids, position - 1, self.length)
    if self._bos_id:
      first = mtf.equal(position, 0)
      before = mtf.where(first, self._bos_id, before, before.shape)
    context = self._context.at_step(position, states)
    logits = self._model.call_with_context(context, before)
    return logits, list(context.new_states or [])


def prompt_length(prompt: mtf.Tensor) -> mtf.Tensor:
  """How many ids of each row are given: int32."""
  given = mtf.cast(mtf.not_equal(prompt, 0), tf.int32)
  return mtf.reduce_sum(given, reduced_dim=prompt.shape.dims[-1])
