"""How large a batch is, in how many pieces it is trained, and for how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gin

import mesh_tf2 as mtf

from .mesh_shapes import MODULE

METHODS = (
  "sequences_per_batch",
  "tokens_per_batch",
  "sequences_per_replica",
  "tokens_per_replica",
)

BatchSize = int | tuple[str, int]
Lengths = Mapping[str, int] | None


def compute_batch_size(
  sequence_length: Lengths,
  mesh_shape: mtf.Shape | str,
  layout_rules: mtf.LayoutRules | str,
  method_and_value: BatchSize,
) -> int:
  """The number of sequences in a batch.

  Args:
    sequence_length: tokens per row of each feature; the longest counts.
    mesh_shape: the mesh.
    layout_rules: says over how many replicas of the model the batch is split.
    method_and_value: the number itself, or a pair of one of `METHODS` and what
      it counts.

  Returns:
    How many sequences all processors together see at once.

  Raises:
    ValueError: it is neither, the method is unknown, or the number of tokens is
      no multiple of the length of a sequence.
    LayoutError: the batch cannot be split as the layout wants it.
  """
  replicas = num_replicas(mesh_shape, layout_rules)
  if isinstance(method_and_value, int):
    size = method_and_value
  else:
    method, value = _pair(method_and_value)
    size = _from_method(sequence_length, replicas, method, value)
  if size < 1 or size % replicas:
    raise mtf.LayoutError(
      f"run.batch_size: a batch of {size} sequences cannot be split over "
      f"{replicas} processors of the mesh [{mtf.convert_to_shape(mesh_shape)}] "
      f"by the layout '{mtf.convert_to_layout_rules(layout_rules)}'; choose a "
      f"multiple of {replicas}"
    )
  return size


def num_replicas(
  mesh_shape: mtf.Shape | str, layout_rules: mtf.LayoutRules | str
) -> int:
  """Into how many parts the layout splits the batch."""
  return math.prod(
    mtf.tensor_dim_to_mesh_dim_size(
      layout_rules, mesh_shape, mtf.Dimension(name, 1)
    )
    for name in ("outer_batch", "batch")
  )


def _pair(given: Any) -> tuple[str, int]:
  """A method and a number, as they should have been given."""
  is_pair = isinstance(given, (tuple, list)) and len(given) == 2
  if not is_pair or not isinstance(given[1], int):
    raise ValueError(
      f"run.batch_size is {given!r}; it is a number of sequences, or a pair "
      'such as ("tokens_per_batch", 2048)'
    )
  return given[0], given[1]


def _from_method(
  sequence_length: Lengths, replicas: int, method: str, value: int
) -> int:
  if method not in METHODS:
    raise ValueError(
      f"run.batch_size: there is no method {method!r}; take one of "
      f"{', '.join(METHODS)}, or a number of sequences"
    )
  if method.startswith("tokens"):
    length = longest(sequence_length, "run.batch_size")
    value, rest = divmod(value, length)
    if rest:
      raise ValueError(
        f"run.batch_size: {method} must be a multiple of the longest sequence, "
        f"{length} tokens; it leaves a rest of {rest}"
      )
  return value * replicas if method.endswith("replica") else value


def longest(sequence_length: int | Lengths, asked_by: str) -> int:
  """The length of the longest row, in tokens.

  Raises:
    ValueError: there are no lengths.
  """
  if isinstance(sequence_length, int):
    return sequence_length
  if not sequence_length:
    raise ValueError(
      f"{asked_by} counts tokens and needs run.sequence_length; set that, or "
      "give a number of sequences"
    )
  return max(sequence_length.values())


@gin.configurable(module=MODULE)
def auto_train_steps(
  batch_size: BatchSize,
  sequence_length: int | Lengths,
  train_tokens: int = 2**36,
) -> int:
  """How many steps go through `train_tokens` tokens, padding counted.

  Args:
    batch_size: sequences per batch; or a pair of a method that counts per
      batch, and what it counts.
    sequence_length: tokens per row; the longest feature counts.
    train_tokens: how many to go through.

  Returns:
    The number of full steps.

  Raises:
    ValueError: the sequence length is not known.
  """
  if isinstance(batch_size, int):
    length = longest(sequence_length, "auto_train_steps")
    return train_tokens // (batch_size * length)
  method, value = batch_size
  if method == "tokens_per_batch":
    return train_tokens // value
  if method == "sequences_per_batch":
    return auto_train_steps(value, sequence_length, train_tokens)
  raise ValueError(
    f"auto_train_steps: the size of a batch by {method!r} depends on the mesh; "
    "give the number of sequences"
  )


@gin.configurable(module=MODULE)
def serialize_num_microbatches(
  batch_dim: mtf.Dimension,
  sequence_length: Mapping[str, int],
  mesh_shape: mtf.Shape | str,
  layout_rules: mtf.LayoutRules | str,
  tokens_per_microbatch_per_replica: int | None = None,
) -> int:
  """Into how many micro-batches a step is cut.

  Args:
    batch_dim: the batch dimension, all replicas' parts together.
    sequence_length: tokens per row of each feature; the longest counts.
    mesh_shape: the mesh.
    layout_rules: says over how many replicas the batch is split.
    tokens_per_microbatch_per_replica: how many tokens a replica handles at
      once; a single sequence may be longer. None for no limit.

  Returns:
    The smallest number that divides a replica's part of the batch and keeps
    the limit, if one sequence at a time keeps it.
  """
  if not tokens_per_microbatch_per_replica:
    return 1
  here = mtf.tensor_dim_to_size_per_split(layout_rules, mesh_shape, batch_dim)
  length = longest(sequence_length, "serialize_num_microbatches")
  at_once = max(1, tokens_per_microbatch_per_replica // length)
  fewest = -(-here // at_once)
  return next(n for n in range(fewest, here + 1) if here % n == 0)
