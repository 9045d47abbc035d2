"""One step of training: from a batch to new values of the variables."""

from __future__ import annotations

import math
from collections.abc import Mapping

import tensorflow as tf

import mesh_tf2 as mtf

from .batch_sizes import serialize_num_microbatches
from .context import Context
from .features import batch_dim, import_features, model_arguments
from .variable_filter import freeze

# What a step returns, each a scalar.
METRICS = {
  "loss": tf.float32,
  "tokens": tf.int64,  # targets that are not padding
  "learning_rate": tf.float32,  # not a number if the optimizer chooses it
  "gradient_norm": tf.float32,
  "finite": tf.bool,  # whether loss and gradients are; if not, nothing changed
}


def make_train_step(context: Context) -> mtf.ProgramFunction:
  """A function that trains on a batch.

  Args:
    context: program, model and settings.

  Returns:
    From a dictionary of int32 tensors [batch, length] to `METRICS`. A call is a
    step of the program, even if its loss was no number and it changed nothing.
  """

  @context.program.function
  def train_step(
    mesh: mtf.Mesh, features: Mapping[str, tf.Tensor]
  ) -> dict[str, mtf.Tensor | tf.Tensor]:
    outer = context.settings.machine.outer_batch
    tensors = import_features(mesh, features, outer)
    grads, loss = _gradients(context, tensors)
    norm = mtf.optimize.global_norm(grads)
    finite = mtf.optimize.all_finite([loss, norm])
    rate = _learning_rate(context, mesh.graph.step)
    _update(context, mesh, grads, rate, finite)
    seen = mtf.cast(mtf.greater(tensors["targets"], 0), tf.int32)
    return {
      "loss": mtf.cast(loss, tf.float32),
      "tokens": mtf.cast(mtf.reduce_sum(seen), tf.int64),
      "learning_rate": tf.constant(math.nan) if rate is None else rate,
      "gradient_norm": norm,
      "finite": finite,
    }

  return train_step


def _gradients(
  context: Context, features: Mapping[str, mtf.Tensor]
) -> tuple[list[mtf.Tensor], mtf.Tensor]:
  settings = context.settings
  batch = batch_dim(features)
  pieces = serialize_num_microbatches(
    batch_dim=batch,
    sequence_length={
      name: x.shape.get_dim_by_name("length").size
      for name, x in features.items()
    },
    mesh_shape=settings.machine.mesh_shape,
    layout_rules=settings.machine.layout_rules,
  )

  def model_fn(features: Mapping[str, mtf.Tensor]) -> dict[str, mtf.Tensor]:
    _, loss = context.model.call_simple(
      compute_loss=True,
      mode="train",
      variable_dtype=context.variable_dtype,
      num_microbatches=pieces,
      **model_arguments(features, settings.model_type),
    )
    freeze(loss.graph, settings.training.variable_filter)
    return {"loss": loss}

  grads, outputs = mtf.serialize_training_step(
    features, model_fn, batch, pieces
  )
  return grads, outputs["loss"]


def _learning_rate(context: Context, step: tf.Tensor) -> tf.Tensor | None:
  training = context.settings.training
  if training.learning_rate is None:
    return None
  return tf.cast(training.learning_rate(step, training.total_steps), tf.float32)


def _update(
  context: Context,
  mesh: mtf.Mesh,
  grads: list[mtf.Tensor],
  rate: tf.Tensor | None,
  finite: mtf.Tensor,
) -> None:
  """Has the optimizer assign to the variables, if all numbers are finite."""
  make = context.settings.training.optimizer
  if make is None:
    raise ValueError(
      "run.optimizer is not set; set it to a class, for example "
      "@optimize.AdafactorOptimizer"
    )
  if rate is None:
    try:
      optimizer = make()
    except TypeError as error:
      raise ValueError(
        f"run.learning_rate_schedule is not set, and run.optimizer does not "
        f"do without: {error}"
      ) from None
  else:
    optimizer = make(learning_rate=mtf.import_tf_tensor(mesh, rate, []))
  graph = mesh.graph
  updates = optimizer.apply_grads(grads, graph.trainable_variables)
  mtf.optimize.only_if(finite, updates)
