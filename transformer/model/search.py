"""From the inputs of an encoder to the targets of a decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from .reader import Memory, Reader, prompt_length
from .sampling import sample_autoregressive

if TYPE_CHECKING:
  from .unitransformer import Unitransformer


def beam_search(
  model: Unitransformer,
  initial_ids: mtf.Tensor,
  memory: Memory,
  variable_dtype: mtf.VariableDType,
  alpha: float,
  decode_length: mtf.Tensor | None = None,
  bos_id: int = 0,
  eos_id: int = 1,
) -> mtf.Tensor:
  """The best sequence that a beam search finds.

  Args:
    model: an autoregressive model.
    initial_ids: batch, beam, length: zeros.
    memory: of the encoder.
    variable_dtype: of the model's variables.
    alpha: strength of the length penalty.
    decode_length: the most tokens to decode: int32, a scalar or batch.
    bos_id: the id that is read before the first position.
    eos_id: the id that ends a sequence.

  Returns:
    batch, length: ids; 0 behind the end.
  """
  beam = initial_ids.shape.dims[-2]
  reader = Reader(model, initial_ids, variable_dtype, memory, beam, bos_id)
  ids, _ = mtf.beam_search.beam_search(
    reader.logits,
    initial_ids,
    alpha,
    states=[mtf.zeros_like(x) for x in reader.states],
    decode_length=decode_length,
    eos_id=eos_id,
  )
  return mtf.gather(ids, 0, beam)


@gin.configurable("decode", module="Bitransformer")
def decode_with_encoder(  # noqa: PLR0913  names fixed by the original
  model: Any,
  inputs: mtf.Tensor,
  variable_dtype: mtf.VariableDType = mtf.VariableDType(tf.float32),  # noqa: B008
  beam_size: int = 1,
  alpha: float = 0.6,
  temperature: float = 0.0,
  sampling_keep_top_k: int = -1,
  decode_length_multiplier: float = 1.5,
  decode_length_constant: float = 10,
  max_decode_length: int | None = None,
  eos_id: int = 1,
  bos_id: int = 0,
) -> mtf.Tensor:
  """Decodes the targets for some inputs.

  Args:
    model: an encoder and a decoder.
    inputs: batch, length: ids, 0 behind them.
    variable_dtype: of the model's variables.
    beam_size: 1 for greedy decoding or sampling, one sequence a row.
    alpha: strength of the length penalty of a beam search.
    temperature: of the sampling; 0 takes the likeliest token.
    sampling_keep_top_k: sample from so many likeliest tokens; -1 for all.
    decode_length_multiplier: a beam search stops at this multiple of the
      input's length ...
    decode_length_constant: ... plus this.
    max_decode_length: the length of the result; by default that of `inputs`.
    eos_id: the id that ends a sequence.
    bos_id: the id that is read before the first position.

  Returns:
    batch, length: ids; 0 behind the end.

  Raises:
    ValueError: a beam search is to sample.
  """
  if beam_size > 1 and (temperature != 0 or sampling_keep_top_k > 0):
    raise ValueError(
      "Bitransformer.decode: a beam search takes no temperature and no "
      f"sampling_keep_top_k; got beam_size={beam_size}, "
      f"temperature={temperature}, sampling_keep_top_k={sampling_keep_top_k}; "
      "set beam_size=1 to sample"
    )
  memory = model.encode(inputs, variable_dtype)
  *batch, length = inputs.shape.dims
  length = mtf.Dimension("length", max_decode_length or length.size)
  if beam_size == 1:
    return sample_autoregressive(
      model.decoder,
      mtf.zeros(inputs.mesh, [*batch, length], tf.int32),
      temperature=temperature,
      variable_dtype=variable_dtype,
      has_partial_sequences=False,
      sampling_keep_top_k=sampling_keep_top_k,
      stop_at_token=eos_id,
      bos_id=bos_id,
      **memory.fields(),
    )
  given = mtf.to_float(prompt_length(inputs))
  limit = mtf.cast(
    given * decode_length_multiplier + decode_length_constant, tf.int32
  )
  beam = mtf.Dimension("beam", beam_size)
  return beam_search(
    model.decoder,
    mtf.zeros(inputs.mesh, [*batch, beam, length], tf.int32),
    memory,
    variable_dtype,
    alpha,
    mtf.minimum(limit, length.size),
    bos_id,
    eos_id,
  )
