"""What a decoder reads, and which positions it may look at."""

from __future__ import annotations

import tensorflow as tf

import mesh_tf2 as mtf


def autoregressive_inputs(
  targets: mtf.Tensor, sequence_id: mtf.Tensor | None = None
) -> mtf.Tensor:
  """The targets moved by one position, for a model that predicts the next id.

  Args:
    targets: ids with the length as last dimension. A negative id stands for
      the positive one, which is read and not scored.
    sequence_id: which sequence of a packed row a token belongs to.

  Returns:
    The id before each position; 0 at the first position of a row and of every
    packed sequence.
  """
  length_dim = targets.shape.dims[-1]
  before = mtf.shift(mtf.abs(targets), 1, length_dim, wrap=False)
  if not isinstance(sequence_id, mtf.Tensor):
    return before
  previous = mtf.shift(sequence_id, 1, length_dim, wrap=False)
  same = mtf.equal(sequence_id, previous)
  return mtf.multiply(before, mtf.cast(same, before.dtype), before.shape)


def delimited_lm_inputs_mask(ids: mtf.Tensor, eos_id: int = 1) -> mtf.Tensor:
  """Which tokens of `inputs EOS targets EOS inputs EOS ...` are inputs.

  Args:
    ids: the length is the last dimension.
    eos_id: the id that ends inputs and targets.

  Returns:
    Bool: True where the number of EOS before the token is even. The EOS that
    ends the inputs is one of them.
  """
  ends = mtf.cast(mtf.equal(ids, eos_id), tf.int32)
  before = mtf.cumsum(ends, ids.shape.dims[-1], exclusive=True)
  return mtf.equal(mtf.mod(before, 2), 0)


def causal_priority(ids: mtf.Tensor) -> mtf.Tensor:
  """Priorities with which each position sees itself and those before it."""
  return mtf.range(ids.mesh, ids.shape.dims[-1], tf.int32)


def prefix_priority(targets: mtf.Tensor) -> mtf.Tensor:
  """Priorities with which the inputs of a delimited model all see each other.

  Args:
    targets: `inputs EOS targets EOS ...`, not moved yet.

  Returns:
    Int32: 0 among the inputs and at the position after them, where the model
    reads the EOS of the inputs; elsewhere the position.
  """
  length_dim = targets.shape.dims[-1]
  is_input = mtf.cast(delimited_lm_inputs_mask(targets), tf.int32)
  reached = mtf.shift(is_input, 1, length_dim, wrap=False)
  outside = mtf.equal(mtf.maximum(is_input, reached), 0)
  return mtf.multiply(
    causal_priority(targets), mtf.cast(outside, tf.int32), targets.shape
  )


def real_tokens(ids: mtf.Tensor) -> mtf.Tensor:
  """Sequence ids for rows that are not packed: 1 for tokens, 0 for padding."""
  return mtf.cast(mtf.not_equal(ids, 0), tf.int32)
