"""A window: some hundred or thousand examples, handled as one.

Work that is done example by example costs tens of microseconds each time that
`tf.data` calls a function. So everything between reading and batching is done a
window at a time: a window is a dictionary of `tf.RaggedTensor`, int32, one row
for each example. A window without rows marks the end of a pass.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf

Window: TypeAlias = Mapping[str, tf.RaggedTensor]


def ids_windows(dataset: tf.data.Dataset, size: int) -> tf.data.Dataset:
  """Windows of a dataset whose examples are dictionaries of id vectors."""

  def to_int32(example: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {key: tf.cast(ids, tf.int32) for key, ids in example.items()}

  return dataset.map(to_int32).ragged_batch(size)


def ragged(rows: Iterable[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
  """All ids, int32, and the length of each row, int64."""
  rows = list(rows)
  lengths = np.fromiter(map(len, rows), np.int64, len(rows))
  ids = itertools.chain.from_iterable(rows)
  return np.fromiter(ids, np.int32, lengths.sum()), lengths


def from_parts(ids: tf.Tensor, lengths: tf.Tensor) -> tf.RaggedTensor:
  """A ragged tensor from what `ragged` returned through a NumPy function."""
  return tf.RaggedTensor.from_row_lengths(
    tf.ensure_shape(ids, [None]),
    tf.ensure_shape(lengths, [None]),
    validate=False,
  )


def with_end_of_pass(windows: tf.data.Dataset) -> tf.data.Dataset:
  """Adds the window without rows that marks the end of a pass."""
  empty = {
    key: tf.RaggedTensor.from_row_lengths(
      tf.zeros([0], tf.int32), tf.zeros([0], tf.int64)
    )
    for key in windows.element_spec
  }
  return windows.concatenate(tf.data.Dataset.from_tensors(empty))


def num_rows(window: Window) -> tf.Tensor:
  """How many examples a window has: an int64 scalar."""
  return next(iter(window.values())).nrows()
