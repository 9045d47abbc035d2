"""One stack of layers: a language model, an encoder, or a decoder."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from ..layers.attention import INVISIBLE
from ..vocab.embedding import get_vocab_embedding_cls
from ..vocab.positions import (
  learned_positional_embedding,
  sinusoid_positional_embedding,
)
from . import masks
from .context import INCREMENTAL, TRAIN, Context
from .loss import training_loss
from .sampling import sample_autoregressive

if TYPE_CHECKING:
  from .layer_stack import LayerStack

configurable = gin.configurable(module="mesh_tf2.transformer.transformer")

LossFn = Callable[..., mtf.Tensor]


@configurable
class Unitransformer:
  """Embedding, positions, a stack of layers, and logits.

  Args:
    layer_stack: the layers.
    d_model: the size of the activations of a token.
    input_vocab_size: how many ids there are to read. Tables are padded to a
      multiple of `vocab_divisor`.
    output_vocab_size: how many ids there are to predict; None for an encoder,
      whose output are activations. Ids that only pad the table are never
      predicted: their logits are `INVISIBLE`.
    autoregressive: whether a position sees only those up to itself.
    max_length: how many positions the table of learned positions has.
    shared_embedding_and_softmax_weights: whether logits are made with the table
      of the embedding.
    label_smoothing: how much of the weight of a target is spread over all
      `output_vocab_size` ids. (The original also spreads it over the padding.)
    z_loss: in training, this times log(Z)^2 is added to the loss of a position.
    name: the scope of the variables.
    layout: the layout rules, for layers that look at them.
    mesh_shape: the shape of the mesh, for layers that look at it.
    vocab_divisor: see `input_vocab_size`; a multiple of the number of
      processors that the vocabulary is split over.
    loss_fn: `f(model, context, logits, targets, output_vocab_dim) -> scalar`,
      instead of cross entropy.
    positional_embedding: whether there are learned positions. Without any
      positions, `position` is ignored.
    sinusoid_positional_embedding: whether positions are sinusoids instead.
    input_full_attention: whether the inputs of a delimited language model all
      see each other.
    loss_on_targets_only: whether the inputs of a delimited language model are
      not scored.
    loss_denominator: what the sum over positions is divided by; by default the
      number of positions, padding included, times that of micro-batches.
    token_dropout_rate: in training, how many of the ids read become 0.

  Raises:
    ValueError: parameters that do not go together.
  """

  def __init__(  # noqa: PLR0913  names that gin files bind
    self,
    layer_stack: LayerStack,
    d_model: int = 1024,
    input_vocab_size: int = gin.REQUIRED,
    output_vocab_size: int | None = gin.REQUIRED,
    autoregressive: bool = gin.REQUIRED,
    max_length: int = gin.REQUIRED,
    shared_embedding_and_softmax_weights: bool = False,
    label_smoothing: float = 0.0,
    z_loss: float = 1e-4,
    name: str = "transformer",
    layout: Any = None,
    mesh_shape: Any = None,
    vocab_divisor: int = 128,
    loss_fn: LossFn | None = None,
    positional_embedding: bool = True,
    sinusoid_positional_embedding: bool = False,
    input_full_attention: bool = False,
    loss_on_targets_only: bool = False,
    loss_denominator: float | None = None,
    token_dropout_rate: float = 0.0,
  ) -> None:
    self.layer_stack = layer_stack
    self.model_dim = mtf.Dimension("d_model", d_model)
    self.max_length_dim = mtf.Dimension("max_length", max_length)
    self.input_vocab_size = input_vocab_size
    self.input_vocab_dim = _vocab_dim(input_vocab_size, vocab_divisor)
    self.output_vocab_size = output_vocab_size
    self.output_vocab_dim = (
      None
      if output_vocab_size is None
      else _vocab_dim(output_vocab_size, vocab_divisor)
    )
    self.autoregressive = autoregressive
    self.shared_embedding_and_softmax_weights = (
      shared_embedding_and_softmax_weights
    )
    self.label_smoothing = label_smoothing
    self.z_loss = z_loss
    self.name = name
    self.layout = layout
    self.mesh_shape = mesh_shape
    self.loss_fn = loss_fn or training_loss
    self.sinusoid_positional_embedding = sinusoid_positional_embedding
    self.positional_embedding = (
      positional_embedding or sinusoid_positional_embedding
    )
    self.input_full_attention = input_full_attention
    self.loss_on_targets_only = loss_on_targets_only
    self.token_dropout_rate = token_dropout_rate
    self._loss_denominator = loss_denominator
    self._check()

  def _check(self) -> None:
    if self.autoregressive and self.output_vocab_dim is None:
      raise ValueError(
        "Unitransformer: an autoregressive model predicts ids; give it an "
        "output_vocab_size"
      )
    if self.input_full_attention and not self.autoregressive:
      raise ValueError(
        "Unitransformer.input_full_attention is for autoregressive models: in "
        "others, all positions see each other"
      )
    if (
      self.shared_embedding_and_softmax_weights
      and self.output_vocab_dim is not None
      and self.output_vocab_dim != self.input_vocab_dim
    ):
      raise ValueError(
        "Unitransformer.shared_embedding_and_softmax_weights needs vocabularies"
        f" of one size, got {self.input_vocab_dim} and {self.output_vocab_dim}"
      )

  sample_autoregressive = sample_autoregressive

  @property
  def fully_autoregressive(self) -> bool:
    """Whether no position ever sees one that comes after it."""
    return self.autoregressive and not self.input_full_attention

  @property
  def learns_positions(self) -> bool:
    """Whether there is a table of learned positions."""
    return self.positional_embedding and not self.sinusoid_positional_embedding

  def loss_denominator(
    self, targets: mtf.Tensor, num_microbatches: int
  ) -> float:
    """What the sum of the losses of all positions is divided by."""
    if self._loss_denominator is not None:
      return float(self._loss_denominator)
    return float(targets.size * num_microbatches)

  def call_simple(  # noqa: PLR0913  the original's signature
    self,
    inputs: mtf.Tensor | None,
    targets: mtf.Tensor | None,
    compute_loss: bool,
    mode: str = TRAIN,
    variable_dtype: mtf.VariableDType | None = None,
    sequence_id: mtf.Tensor | None = None,
    subsequence_id: mtf.Tensor | None = None,
    position: mtf.Tensor | None = None,
    encoder_output: mtf.Tensor | None = None,
    encoder_sequence_id: mtf.Tensor | None = None,
    encoder_inputs: mtf.Tensor | None = None,
    shared_params: dict[str, Any] | None = None,
    layer_outputs: list[mtf.Tensor] | None = None,
    encoder_layer_outputs: list[mtf.Tensor] | None = None,
    num_microbatches: int = 1,
  ) -> tuple[mtf.Tensor, mtf.Tensor | None]:
    """Runs the model on whole sequences.

    Args:
      inputs: the ids to read: batch, length. None for an autoregressive model,
        which then reads `autoregressive_inputs(targets, sequence_id)`.
      targets: the ids to predict: batch, length; 0 and negative ids are not
        scored. None for an encoder.
      compute_loss: whether to compute the loss.
      mode: "train", "eval" or "infer".
      variable_dtype: of the variables; float32 by default.
      sequence_id: which of the sequences packed into a row a token belongs to,
        0 for padding. Without it, rows are not packed and id 0 is padding.
      subsequence_id: takes the place of `sequence_id` in self-attention.
      position: of each token in its sequence; by default in its row.
      encoder_output: batch, memory_length, d_model.
      encoder_sequence_id: batch, memory_length.
      encoder_inputs: the ids that the encoder has read: batch, memory_length.
      shared_params: "embedding", "positional_embedding": tables to use.
      layer_outputs: a list to put the output of each layer into.
      encoder_layer_outputs: the same of the encoder.
      num_microbatches: into how many of these the batch was cut; the loss is
        divided by it.

    Returns:
      The logits (batch, length, vocab; float32), or the activations of an
      encoder; and the loss, a float32 scalar, or None if there is none.
    """
    if self.autoregressive and targets is not None:
      ids = targets
    elif inputs is not None:
      ids = inputs
    else:
      raise ValueError(f"{self.name} has neither inputs nor targets to read")
    if sequence_id is None and (ids is targets or not self.autoregressive):
      sequence_id = masks.real_tokens(ids)
    if inputs is None:
      inputs = masks.autoregressive_inputs(ids, sequence_id)
    priority = self._priority(ids)
    context = Context(
      model=self,
      mesh=inputs.mesh,
      batch_dims=inputs.shape.dims[:-1],
      length_dim=inputs.shape.dims[-1],
      variable_dtype=variable_dtype or mtf.VariableDType(),
      mode=mode,
      position=position if self.positional_embedding else None,
      position_is_default=position is None or not self.positional_embedding,
      sequence_id=sequence_id,
      subsequence_id=subsequence_id,
      losses=[] if compute_loss else None,
      layer_outputs=layer_outputs,
      encoder_output=encoder_output,
      encoder_sequence_id=encoder_sequence_id,
      encoder_inputs=encoder_inputs,
      shared_params=shared_params,
      encoder_layer_outputs=encoder_layer_outputs,
      write_priority=priority,
      read_priority=priority,
      inputs=inputs,
      num_microbatches=num_microbatches,
    )
    logits = self.call_with_context(context, inputs)
    if context.losses is None:
      return logits, None
    if self.output_vocab_dim is not None and targets is not None:
      context.losses.append(
        self.loss_fn(self, context, logits, targets, self.output_vocab_dim)
      )
    return logits, mtf.add_n(context.losses) if context.losses else None

  def _priority(self, ids: mtf.Tensor) -> mtf.Tensor | None:
    if not self.autoregressive:
      return None
    if self.input_full_attention:
      return masks.prefix_priority(ids)
    return masks.causal_priority(ids)

  def call_with_context(
    self, context: Context, inputs: mtf.Tensor
  ) -> mtf.Tensor:
    """Runs the model in a given context: all of it but the loss.

    Args:
      context: of the call; its mode may be that of a step of decoding.
      inputs: the ids to read: the dimensions of the batch, and the length
        unless the mode is "incremental".

    Returns:
      The logits, in float32 at least: the dimensions of `inputs`, vocab. For
      an encoder the activations: the dimensions of `inputs`, d_model.
    """
    with tf.compat.v1.variable_scope(self.name):
      embedding = self._embedding(context)
      if self.token_dropout_rate and context.train:
        inputs = mtf.dropout(inputs, True, rate=self.token_dropout_rate)
      x = embedding.ids_to_embedding(inputs, context)
      x = mtf.cast(x, context.activation_dtype)
      if self.positional_embedding:
        x = mtf.add(x, self._positions(context), x.shape)
      x = self.layer_stack.call(context, x)
      vocab_dim = self.output_vocab_dim
      if vocab_dim is None:
        return x
      logits = self._logits(context, x, embedding, vocab_dim)
      return self._without_padding(logits, vocab_dim)

  def _embedding(self, context: Context) -> Any:
    shared = context.shared_params or {}
    if "embedding" in shared:
      return shared["embedding"]
    return get_vocab_embedding_cls()(
      context.mesh,
      self.input_vocab_dim,
      self.model_dim,
      context.variable_dtype,
      name="embedding",
      ensemble_dim=None,
    )

  def _positions(self, context: Context) -> mtf.Tensor:
    position = context.get_position()
    if not self.learns_positions:
      return sinusoid_positional_embedding(
        position, self.model_dim, context.activation_dtype
      )
    self._check_length(context)
    shared = context.shared_params or {}
    table = shared.get("positional_embedding")
    if table is None:
      table = mtf.layers.embedding_weights(
        context.mesh,
        self.max_length_dim,
        self.model_dim,
        context.variable_dtype,
        "positional_embedding",
      )
    return learned_positional_embedding(table, position, self.max_length_dim)

  def _check_length(self, context: Context) -> None:
    length, limit = context.length_dim.size, self.max_length_dim.size
    if length <= limit:
      return
    message = (
      f"the sequences of {self.name} have length {length}, the table of "
      f"positions {limit}: set Unitransformer.max_length to {length} or more"
    )
    if context.position_is_default or context.mode == INCREMENTAL:
      raise ValueError(message)
    warnings.warn(
      f"{message}, unless every sequence in a packed row is shorter; later "
      "positions get zeros",
      stacklevel=2,
    )

  def _logits(
    self,
    context: Context,
    x: mtf.Tensor,
    embedding: Any,
    vocab_dim: mtf.Dimension,
  ) -> mtf.Tensor:
    if self.shared_embedding_and_softmax_weights:
      return embedding.hidden_to_logits(x, context)
    return mtf.layers.dense(
      x,
      vocab_dim,
      reduced_dims=[self.model_dim],
      use_bias=False,
      variable_dtype=context.variable_dtype,
      name="logits",
    )

  def _without_padding(
    self, logits: mtf.Tensor, vocab_dim: mtf.Dimension
  ) -> mtf.Tensor:
    """Makes the ids that only pad the vocabulary impossible."""
    size = self.output_vocab_size
    wide = mtf.layers.at_least_float32(logits)
    if vocab_dim not in logits.shape or size == vocab_dim.size:
      return wide
    ids = mtf.range(logits.mesh, vocab_dim, tf.int32)
    is_padding = mtf.cast(mtf.greater_equal(ids, size), wide.dtype)
    return mtf.add(wide, mtf.multiply(is_padding, INVISIBLE), wide.shape)


def _vocab_dim(size: int, divisor: int) -> mtf.Dimension:
  return mtf.Dimension("vocab", -(-size // divisor) * divisor)
