"""Attention of a sequence to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from .attention import attention, visibility_mask_to_attention_bias
from .attention_params import AttentionParams, attention_params
from .relative_bias import relative_attention_bias
from .transformer_layer import TransformerLayer

if TYPE_CHECKING:
  from ..model.context import Context

configurable = gin.configurable(
  module="mesh_tf2.transformer.transformer_layers"
)


@configurable
class SelfAttention(TransformerLayer):
  """Multi-head attention of each position to those that it may see.

  Args:
    num_heads: how many queries there are for each position.
    num_memory_heads: how many keys and values: 0 for as many; 1 for one that
      all queries share; or a divisor of `num_heads`.
    key_value_size: the size of a query, a key and a value.
    shared_kv: whether keys and values are the same.
    dropout_rate: of the weights of attention.
    attention_kwargs: further arguments of `attention_func`.
    relative_attention_type: None, "bias", "bias_shared" or "contextual": see
      `relative_attention_bias`.
    relative_attention_num_buckets: how many buckets of distances there are.
    attention_func: a function to use instead of `attention`.
    combine_dims: see `AttentionParams`.
    keep_query_heads_dims: see `AttentionParams`.
    fold_scaling_into_initializer: see `AttentionParams`.
  """

  def __init__(  # noqa: PLR0913  names that gin files bind
    self,
    num_heads: int = 8,
    num_memory_heads: int = 0,
    key_value_size: int = 128,
    shared_kv: bool = False,
    dropout_rate: float = 0.0,
    attention_kwargs: dict[str, Any] | None = None,
    relative_attention_type: str | None = None,
    relative_attention_num_buckets: int = 32,
    attention_func: Callable[..., mtf.Tensor] | None = None,
    combine_dims: bool = True,
    keep_query_heads_dims: bool = False,
    fold_scaling_into_initializer: bool = True,
  ) -> None:
    self.num_heads = num_heads
    self.num_memory_heads = num_memory_heads
    self.key_value_size = key_value_size
    self.shared_kv = shared_kv
    self.dropout_rate = dropout_rate
    self.attention_kwargs = dict(attention_kwargs or {})
    self.relative_attention_type = relative_attention_type
    self.relative_attention_num_buckets = relative_attention_num_buckets
    self.attention_fn = attention_func or attention
    self.combine_dims = combine_dims
    self.keep_query_heads_dims = keep_query_heads_dims
    self.fold_scaling_into_initializer = fold_scaling_into_initializer

  @property
  def kv_dim(self) -> mtf.Dimension:
    """The dimension of a key and of a value."""
    return mtf.Dimension("d_kv", self.key_value_size)

  def make_params(self, context: Context) -> AttentionParams:
    """The projections, in the current variable scope."""
    return attention_params(
      context,
      self.kv_dim,
      self.num_heads,
      num_memory_heads=self.num_memory_heads,
      shared_kv=self.shared_kv,
      combine_dims=self.combine_dims,
      keep_query_heads_dims=self.keep_query_heads_dims,
      fold_scaling_into_initializer=self.fold_scaling_into_initializer,
    )

  def attention_kwargs_from_context(self, context: Context) -> dict[str, Any]:
    """The further arguments of the attention function in this call."""
    return {
      "dropout_rate": self.dropout_rate if context.train else 0.0,
      "dropout_broadcast_dims": [context.length_dim],
      **self.attention_kwargs,
    }

  def call(
    self,
    context: Context,
    x: mtf.Tensor,
    losses: list[mtf.Tensor] | None = None,
  ) -> mtf.Tensor:
    """Applies the layer; decoding caches keys and values.

    Args:
      context: of the call.
      x: batch, length, d_model; without the length in the mode "incremental".
      losses: has no influence.
    """
    params = self.make_params(context)
    q = params.compute_q(x)
    if context.mode == "incremental":
      new = params.compute_keys_and_values(x)
      kv = self._insert(context, new)
    else:
      kv = params.compute_keys_and_values(
        self.rename_length_to_memory_length(x, context)
      )
    if context.mode in ("first_part", "incremental"):
      context.record_new_states(kv)
    bias = self.compute_bias(context, x, params.query_heads_dims)
    o = self.attention_fn(
      q,
      kv[0],
      kv[-1],
      self.memory_length(context),
      self.kv_dim,
      self.kv_dim,
      bias,
      context=context,
      **self.attention_kwargs_from_context(context),
    )
    return params.compute_output(o, output_shape=x.shape)

  def memory_length(self, context: Context) -> mtf.Dimension:
    """The positions that are attended to."""
    return mtf.Dimension("memory_length", context.length_dim.size)

  def rename_length_to_memory_length(
    self, x: mtf.Tensor, context: Context
  ) -> mtf.Tensor:
    """A tensor of the queries' positions as one of the memory's."""
    return mtf.rename_dimension(
      x, context.length_dim.name, self.memory_length(context).name
    )

  def _insert(
    self, context: Context, new: list[mtf.Tensor]
  ) -> list[mtf.Tensor]:
    """The cached keys and values, with those of this position put in."""
    here = mtf.equal(context.position, self._memory_range(context))
    return [
      mtf.where(here, x, old, old.shape)
      for x, old in zip(new, context.get_states(len(new)), strict=True)
    ]

  def _memory_range(self, context: Context) -> mtf.Tensor:
    return mtf.range(context.mesh, self.memory_length(context), tf.int32)

  def compute_bias(
    self,
    context: Context,
    x: mtf.Tensor,
    heads_dims: list[mtf.Dimension],
  ) -> mtf.Tensor | None:
    """What is added to the logits: the mask, and the relative bias.

    Args:
      context: of the call.
      x: the input of the layer.
      heads_dims: the heads of the queries.

    Returns:
      Some of the dimensions of the logits; None if nothing is added.
    """
    mask = context.cached(
      "self_attention_mask", lambda: self._visibility_bias(context)
    )
    if self.relative_attention_type is None:
      return mask
    bias = relative_attention_bias(
      self.relative_attention_type,
      context,
      x,
      self._relative_position(context),
      num_buckets=self.relative_attention_num_buckets,
      bidirectional=not context.model.fully_autoregressive,
      heads_dims=heads_dims,
    )
    bias = mtf.layers.at_least_float32(bias)
    return bias if mask is None else mtf.add(bias, mask)

  def _relative_position(self, context: Context) -> mtf.Tensor:
    position = context.get_position()
    if context.mode == "incremental":
      memory = self._memory_range(context)
    else:
      memory = self.rename_length_to_memory_length(position, context)
    dims = dict.fromkeys([*position.shape, *memory.shape])
    return mtf.sub(memory, position, mtf.Shape(dims))

  def _visibility_bias(self, context: Context) -> mtf.Tensor | None:
    """The mask that all layers share, as a bias in float32 or wider."""
    visible = [*self._by_priority(context), *self._by_sequence(context)]
    if not visible:
      return None
    both = visible[0]
    for other in visible[1:]:
      both = mtf.logical_and(both, other)
    dtype = context.activation_dtype
    wide = dtype if dtype == tf.float64 else tf.float32
    return visibility_mask_to_attention_bias(both, wide)

  def _by_priority(self, context: Context) -> list[mtf.Tensor]:
    read, write = context.read_priority, context.write_priority
    if read is None or write is None:
      return []
    write = self.rename_length_to_memory_length(write, context)
    return [mtf.greater_equal(read, write)]

  def _by_sequence(self, context: Context) -> list[mtf.Tensor]:
    sequence_id = context.sequence_id
    if context.subsequence_id is not None:
      sequence_id = context.subsequence_id
    if not isinstance(sequence_id, mtf.Tensor):
      return []
    if context.length_dim not in sequence_id.shape:
      return []
    memory = self.rename_length_to_memory_length(sequence_id, context)
    return [mtf.equal(sequence_id, memory)]
