"""From a batch of a data set to the arguments of a model.

Ids, positions and segment ids are int32 [batch, length]. The lengths of inputs
and targets may differ; their dimensions share the name `length`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

import mesh_tf2 as mtf

ENCODER_DECODER = "bitransformer"

# Argument of the model: the feature that it is.
_ONE_STACK = {
  "sequence_id": "targets_segmentation",
  "subsequence_id": "targets_subsegmentation",
  "position": "targets_position",
}
_TWO_STACKS = {
  "encoder_sequence_id": "inputs_segmentation",
  "decoder_sequence_id": "targets_segmentation",
  "decoder_subsequence_id": "targets_subsegmentation",
  "encoder_position": "inputs_position",
  "decoder_position": "targets_position",
}
KNOWN = {"inputs", "targets", *_ONE_STACK.values(), *_TWO_STACKS.values()}


def check_features(names: Iterable[str], model_type: str) -> None:
  """Raises ValueError unless a data set has what a type of model wants."""
  names = set(names)
  if "targets" not in names:
    raise ValueError(
      f"the data set has no feature 'targets', only {sorted(names)}"
    )
  wants_inputs = model_type in (ENCODER_DECODER, "aligned")
  if wants_inputs and "inputs" not in names:
    raise ValueError(
      f"run.model_type {model_type!r} needs a data set with inputs, and this "
      'one has targets only; set run.model_type = "lm"'
    )
  if not wants_inputs and "inputs" in names:
    raise ValueError(
      f"run.model_type {model_type!r} needs a data set with targets only, and "
      "this one has inputs; have the data set join the two (set "
      'text_dataset.delimited_lm = True and run.model_type = "delimited_lm"), '
      'or set run.model_type = "bitransformer"'
    )


def known_features(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """A data set without the features that no model reads."""
  if set(dataset.element_spec) <= KNOWN:
    return dataset
  return dataset.map(
    lambda example: {k: x for k, x in example.items() if k in KNOWN}
  )


def import_features(
  mesh: mtf.Mesh, features: Mapping[str, tf.Tensor]
) -> dict[str, mtf.Tensor]:
  """Mesh tensors [batch, length] from TensorFlow tensors of these sizes."""
  return {name: _import(mesh, x, name) for name, x in features.items()}


def _import(mesh: mtf.Mesh, x: tf.Tensor, name: str) -> mtf.Tensor:
  batch, length = x.shape
  dims = [mtf.Dimension("batch", batch), mtf.Dimension("length", length)]
  return mtf.import_fully_replicated(mesh, x, dims, name=name)


def batch_dim(features: Mapping[str, mtf.Tensor]) -> mtf.Dimension:
  """The batch dimension that all features have."""
  found: mtf.Dimension = features["targets"].shape.get_dim_by_name("batch")
  return found


def model_arguments(
  features: Mapping[str, mtf.Tensor], model_type: str
) -> dict[str, Any]:
  """The arguments of `call_simple` that are features."""
  names = _TWO_STACKS if model_type == ENCODER_DECODER else _ONE_STACK
  return {
    "inputs": features.get("inputs"),
    "targets": features["targets"],
    **{argument: features.get(name) for argument, name in names.items()},
  }
