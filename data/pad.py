"""Rows of one fixed length, an example each, zeros behind it."""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from .dataset_fn import lengths_of
from .window import Window


def pad_windows(
  windows: tf.data.Dataset, lengths: Mapping[str, int]
) -> tf.data.Dataset:
  """Examples of fixed length from windows that were trimmed to it."""

  def pad(window: Window) -> dict[str, tf.Tensor]:
    return {
      key: tf.ensure_shape(
        ids.to_tensor(shape=[None, lengths[key]]), [None, lengths[key]]
      )
      for key, ids in window.items()
    }

  return windows.map(pad).unbatch()


def trim_and_pad_dataset(
  dataset: tf.data.Dataset,
  length: int | Mapping[str, int],
  feature_keys: Sequence[str] | None = None,
) -> tf.data.Dataset:
  """Trims and zero-pads the first axis of features to a fixed length.

  Nothing is done about EOS; see `pack_or_pad` for that.

  Args:
    dataset: dictionaries of tensors.
    length: one length, or one for each feature.
    feature_keys: which features; None for all. Others pass through unchanged.

  Returns:
    A dataset of the same structure with fixed first axes.

  Raises:
    ValueError: if a feature has no length.
  """
  keys = feature_keys or list(dataset.element_spec)
  lengths = lengths_of(keys, length)

  def trim_and_pad(example: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {
      key: _fix(tensor, lengths[key]) if key in lengths else tensor
      for key, tensor in example.items()
    }

  return dataset.map(trim_and_pad)


def _fix(tensor: tf.Tensor, length: int) -> tf.Tensor:
  tensor = tensor[:length]
  missing = length - tf.shape(tensor)[0]
  padded = tf.pad(tensor, [[0, missing]] + [[0, 0]] * (tensor.shape.rank - 1))
  return tf.ensure_shape(padded, [length, *tensor.shape[1:]])
