"""The examples of an evaluation, each once, in order."""

from __future__ import annotations

import tensorflow as tf

from .settings import Settings


def evaluation_dataset(settings: Settings) -> tf.data.Dataset:
  """Examples of fixed length of the split that is to be evaluated.

  Raises:
    ValueError: no data set was named.
  """
  evaluation = settings.evaluation
  if evaluation.dataset_fn is None:
    raise ValueError(
      "run.eval_dataset_fn is not set; set it to what makes the data set, for "
      "example @text_dataset"
    )
  return evaluation.dataset_fn(
    dataset_split=evaluation.split,
    sequence_length=settings.sequence_length,
    vocabulary=settings.vocabulary,
  )
