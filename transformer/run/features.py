"""From a batch of a data set to the arguments of a model.

Ids, positions and segment ids are int32 [batch, length]; the batch may have an
outer part. The lengths of inputs and targets may differ; their dimensions share
the name `length`.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def check_features(
  features: Mapping[str, tf.TensorSpec], model_type: str
) -> None:
  """Checks that a data set has what a type of model wants.

  Args:
    features: of an example, by name.
    model_type: see `build_model`.

  Raises:
    ValueError: a feature is missing, is there in vain, or has no fixed length.
  """
  names = set(features)
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
  for name in sorted(names & KNOWN):
    shape = features[name].shape
    if shape.rank != 1 or shape[0] is None:
      raise ValueError(
        f"feature {name!r} of the data set has the shape {shape}; it must be a "
        "row of fixed length: pack or pad the examples"
      )


def known_features(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """A data set without the features that no model reads."""
  if set(dataset.element_spec) <= KNOWN:
    return dataset
  return dataset.map(
    lambda example: {k: x for k, x in example.items() if k in KNOWN}
  )


def import_features(
  mesh: mtf.Mesh, features: Mapping[str, tf.Tensor], outer_batch: int = 1
) -> dict[str, mtf.Tensor]:
  """Mesh tensors [batch, length] from TensorFlow tensors of these sizes.

  Args:
    mesh: the mesh.
    features: batch, length: int32.
    outer_batch: cut the batch into [outer_batch, batch], if this is not 1: a
      batch can then be split over two dimensions of a mesh.
  """
  return {
    name: _import(mesh, x, name, outer_batch) for name, x in features.items()
  }


def _import(
  mesh: mtf.Mesh, x: tf.Tensor, name: str, outer_batch: int
) -> mtf.Tensor:
  batch, length = x.shape
  dims = [
    mtf.Dimension("batch", batch // outer_batch),
    mtf.Dimension("length", length),
  ]
  if outer_batch > 1:
    dims.insert(0, mtf.Dimension("outer_batch", outer_batch))
    x = tf.reshape(x, [d.size for d in dims])
  return mtf.import_fully_replicated(mesh, x, dims, name=name)


def batch_dim(features: Mapping[str, mtf.Tensor]) -> mtf.Dimension:
  """The (inner) batch dimension that all features have."""
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
