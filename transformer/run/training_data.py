"""The batches that a model is trained on, and how far it has got in them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .features import check_features, known_features
from .settings import Settings

_AHEAD = 2  # batches made while a step runs


class TrainingData:
  """Batches without end, in an order that a seed decides.

  Args:
    settings: name the data set.
    seed: of the order.

  Raises:
    ValueError: no data set was named, or it is not for this type of model.
  """

  def __init__(self, settings: Settings, seed: int) -> None:
    make = settings.training.dataset_fn
    if make is None:
      raise ValueError(
        "run.train_dataset_fn is not set; set it to what makes the data set, "
        "for example @text_dataset"
      )
    dataset = make(
      dataset_split="train",
      sequence_length=settings.sequence_length,
      vocabulary=settings.vocabulary,
      seed=seed,
    )
    check_features(dataset.element_spec, settings.model_type)
    batches = known_features(dataset).batch(
      settings.batch_size, drop_remainder=True
    )
    self.batch_spec: Any = batches.element_spec
    self.iterator: Any = iter(batches.prefetch(_AHEAD))

  def save(self, prefix: str) -> None:
    """Writes the position in the data to files that begin with `prefix`."""
    tf.train.Checkpoint(iterator=self.iterator).write(prefix)

  def restore(self, prefix: str) -> None:
    """Goes on from a position that `save` has written."""
    tf.train.Checkpoint(iterator=self.iterator).read(prefix)
