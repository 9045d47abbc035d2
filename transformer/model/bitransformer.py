"""An encoder and a decoder that attends to it."""

from __future__ import annotations

from typing import Any

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from ..vocab.embedding import get_vocab_embedding_cls
from . import masks
from .context import INFER, TRAIN
from .reader import Memory
from .search import decode_with_encoder
from .unitransformer import Unitransformer

configurable = gin.configurable(module="mesh_tf2.transformer.transformer")


@configurable
class Bitransformer:
  """A sequence to a sequence.

  Args:
    encoder: reads the inputs.
    decoder: reads the targets so far, and predicts the next one.
    shared_embedding: whether both have one table of ids, and one of learned
      positions if both have as many of them.

  Raises:
    ValueError: the tables have different sizes and cannot be shared.
  """

  def __init__(
    self,
    encoder: Unitransformer,
    decoder: Unitransformer,
    shared_embedding: bool = True,
  ) -> None:
    self.encoder = encoder
    self.decoder = decoder
    self.shared_embedding = shared_embedding
    sizes = [(m.model_dim, m.input_vocab_dim) for m in (encoder, decoder)]
    if shared_embedding and sizes[0] != sizes[1]:
      raise ValueError(
        "Bitransformer.shared_embedding needs one size of d_model and vocab, "
        f"the encoder has {sizes[0]}, the decoder {sizes[1]}; make them equal "
        "or set it to False"
      )

  decode = decode_with_encoder

  @property
  def output_vocab_dim(self) -> mtf.Dimension | None:
    """The ids that are predicted, padding included."""
    return self.decoder.output_vocab_dim

  @property
  def z_loss(self) -> float:
    """The decoder's."""
    return self.decoder.z_loss

  def loss_denominator(
    self, targets: mtf.Tensor, num_microbatches: int
  ) -> float:
    """What the sum of the losses of all positions is divided by."""
    return self.decoder.loss_denominator(targets, num_microbatches)

  def shared_params(
    self, mesh: mtf.Mesh, variable_dtype: mtf.VariableDType
  ) -> dict[str, Any]:
    """The tables that encoder and decoder share, in the scope `shared`."""
    if not self.shared_embedding:
      return {}
    encoder, decoder = self.encoder, self.decoder
    params = {}
    with tf.compat.v1.variable_scope("shared"):
      params["embedding"] = get_vocab_embedding_cls()(
        mesh,
        encoder.input_vocab_dim,
        encoder.model_dim,
        variable_dtype,
        name="embedding",
        ensemble_dim=None,
      )
      both_learn = encoder.learns_positions and decoder.learns_positions
      if both_learn and encoder.max_length_dim == decoder.max_length_dim:
        params["positional_embedding"] = mtf.layers.embedding_weights(
          mesh,
          encoder.max_length_dim,
          encoder.model_dim,
          variable_dtype,
          "positional_embedding",
        )
    return params

  def encode(
    self,
    inputs: mtf.Tensor,
    variable_dtype: mtf.VariableDType,
    mode: str = INFER,
    sequence_id: mtf.Tensor | None = None,
    position: mtf.Tensor | None = None,
  ) -> Memory:
    """Runs the encoder.

    Args:
      inputs: ids: batch, length.
      variable_dtype: of the variables.
      mode: "train", "eval" or "infer".
      sequence_id: batch, length; by default 1 for tokens, 0 for padding.
      position: batch, length; by default the position in the row.

    Returns:
      What the decoder needs of it, as arguments of the decoder's
      `call_simple`, or of `sample_autoregressive`.
    """
    memory, _ = self._encode(
      inputs,
      variable_dtype,
      mode,
      sequence_id=sequence_id,
      position=position,
      compute_loss=False,
    )
    return memory

  def _encode(
    self,
    inputs: mtf.Tensor,
    variable_dtype: mtf.VariableDType,
    mode: str,
    sequence_id: mtf.Tensor | None,
    **kwargs: Any,
  ) -> tuple[Memory, mtf.Tensor | None]:
    if sequence_id is None:
      sequence_id = masks.real_tokens(inputs)
    shared = self.shared_params(inputs.mesh, variable_dtype)
    layer_outputs: list[mtf.Tensor] = []
    output, loss = self.encoder.call_simple(
      inputs,
      None,
      mode=mode,
      variable_dtype=variable_dtype,
      sequence_id=sequence_id,
      shared_params=shared,
      layer_outputs=layer_outputs,
      **kwargs,
    )
    memory = Memory(
      _as_memory(output),
      _as_memory(sequence_id),
      _as_memory(inputs),
      [_as_memory(x) for x in layer_outputs],
      shared,
    )
    return memory, loss

  def call_simple(  # noqa: PLR0913  the original's signature
    self,
    inputs: mtf.Tensor,
    targets: mtf.Tensor,
    compute_loss: bool,
    mode: str = TRAIN,
    variable_dtype: mtf.VariableDType | None = None,
    encoder_sequence_id: mtf.Tensor | None = None,
    decoder_sequence_id: mtf.Tensor | None = None,
    decoder_subsequence_id: mtf.Tensor | None = None,
    encoder_position: mtf.Tensor | None = None,
    decoder_position: mtf.Tensor | None = None,
    num_microbatches: int = 1,
  ) -> tuple[mtf.Tensor, mtf.Tensor | None]:
    """Runs encoder and decoder on whole sequences.

    Args:
      inputs: the ids that the encoder reads: batch, length.
      targets: the ids to predict: batch, length; 0 and negative ids are not
        scored.
      compute_loss: whether to compute the loss.
      mode: "train", "eval" or "infer".
      variable_dtype: of the variables; float32 by default.
      encoder_sequence_id: which of the sequences packed into a row an input
        belongs to, 0 for padding. Without it, id 0 is padding.
      decoder_sequence_id: the same of the targets. A target sees the inputs
        with its own number.
      decoder_subsequence_id: takes the place of `decoder_sequence_id` where
        targets see targets.
      encoder_position: of each input in its sequence; by default in its row.
      decoder_position: of each target in its sequence; by default in its row.
      num_microbatches: into how many of these the batch was cut; the loss is
        divided by it.

    Returns:
      The logits (batch, length, vocab; float32), and the loss, a float32
      scalar, or None.
    """
    dtype = variable_dtype or mtf.VariableDType()
    memory, encoder_loss = self._encode(
      inputs,
      dtype,
      mode,
      sequence_id=encoder_sequence_id,
      position=encoder_position,
      compute_loss=compute_loss,
      num_microbatches=num_microbatches,
    )
    logits, loss = self.decoder.call_simple(
      None,
      targets,
      compute_loss,
      mode,
      dtype,
      sequence_id=decoder_sequence_id,
      subsequence_id=decoder_subsequence_id,
      position=decoder_position,
      num_microbatches=num_microbatches,
      **memory.fields(),
    )
    if loss is not None and encoder_loss is not None:
      loss = mtf.add(loss, encoder_loss)
    return logits, loss


def _as_memory(x: mtf.Tensor) -> mtf.Tensor:
  """A tensor of the inputs, as the decoder sees it."""
  return mtf.rename_dimension(x, "length", "memory_length")
