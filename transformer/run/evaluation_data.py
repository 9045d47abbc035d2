"""What a model is to be evaluated on: each example once, in order."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from mesh_tf2.data.eval_dataset import EvalDataset

from .settings import Settings

NAME = "eval"  # of a data set that has none


def evaluation_tasks(settings: Settings) -> list[EvalDataset]:
  """The data sets to evaluate on.

  `run.eval_dataset_fn` makes either examples, or a list of `EvalDataset`s.

  Raises:
    ValueError: no data set was named.
  """
  evaluation = settings.evaluation
  make = evaluation.dataset_fn
  if make is None:
    raise ValueError(
      "run.eval_dataset_fn is not set; set it to what makes the data set, for "
      "example @text_dataset"
    )

  def call(sequence_length: Mapping[str, int]) -> tf.data.Dataset:
    return make(
      dataset_split=evaluation.split,
      sequence_length=sequence_length,
      vocabulary=settings.vocabulary,
    )

  made = call(settings.sequence_length)
  if isinstance(made, tf.data.Dataset):
    return [EvalDataset(NAME, call)]
  return list(made)
