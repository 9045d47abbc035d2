"""The loss of a model that predicts ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

import mesh_tf2 as mtf

from . import masks

if TYPE_CHECKING:
  from .context import Context
  from .unitransformer import Unitransformer


def training_loss(
  model: Unitransformer,
  context: Context,
  logits: mtf.Tensor,
  targets: mtf.Tensor,
  output_vocab_dim: mtf.Dimension,
) -> mtf.Tensor:
  """Cross entropy, summed over what is scored, over the denominator.

  Args:
    model: has the parameters of the loss.
    context: of the call.
    logits: batch, length, vocab.
    targets: batch, length.
    output_vocab_dim: vocab.

  Returns:
    A float32 scalar (or wider).
  """
  loss = mtf.layers.softmax_cross_entropy_with_logits(
    logits,
    targets,
    output_vocab_dim,
    z_loss=model.z_loss if context.train else 0.0,
    label_smoothing=model.label_smoothing,
    vocab_size=model.output_vocab_size,
  )
  weights = scored_tokens(model, targets, loss.dtype)
  total = mtf.einsum([loss, weights], mtf.Shape([]))
  return mtf.multiply(
    total, 1.0 / model.loss_denominator(targets, context.num_microbatches)
  )


def scored_tokens(
  model: Unitransformer, targets: mtf.Tensor, dtype: tf.DType
) -> mtf.Tensor:
  """1 for the targets that count, 0 for the others.

  Those that do not are 0, or negative, or, with `loss_on_targets_only`, inputs
  of a delimited language model.
  """
  weights = mtf.cast(mtf.greater(targets, 0), dtype)
  if model.loss_on_targets_only:
    is_input = masks.delimited_lm_inputs_mask(targets)
    weights = mtf.multiply(weights, mtf.cast(mtf.logical_not(is_input), dtype))
  return weights
