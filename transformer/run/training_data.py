"""The batches that a model is trained on, and how far it has got in them."""

from __future__ import annotations

from typing import Any

from mesh_tf2.data.batch import training_batches
from mesh_tf2.data.iterator import CheckpointableIterator

from .features import check_features, known_features
from .settings import Settings


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
    examples = make(
      dataset_split="train",
      sequence_length=settings.sequence_length,
      vocabulary=settings.vocabulary,
      seed=seed,
    )
    check_features(examples.element_spec, settings.model_type)
    batches = training_batches(known_features(examples), settings.batch_size)
    self.batch_spec: Any = batches.element_spec
    self._iterator = CheckpointableIterator(batches, f"seed {seed}")

  @property
  def iterator(self) -> Any:
    """The batches, for use inside a `tf.function`."""
    return self._iterator.iterator

  def save(self, path: str) -> None:
    """Writes the position in the data to files that begin with `path`."""
    self._iterator.save(path)

  def restore(self, path: str) -> None:
    """Goes on from a position that `save` has written.

    Raises:
      ValueError: it is one in other data.
    """
    self._iterator.restore(path)

  def close(self) -> None:
    """Stops reading ahead."""
    self._iterator.close()
