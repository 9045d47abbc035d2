"""Passes over a data set without end, each in an order of its own.

The order is a function of the seed and of the number of the pass, and of
nothing else. `dataset.shuffle(...).repeat()` will not do: a saved iterator of
it, restored in another process, goes through the passes that follow in other
orders than the iterator that was saved. It also saves every example that waits
in its buffer by itself, which takes a minute for a small corpus. Here a block
of examples is one tensor for each feature, and a place in its permutation.
"""

from collections.abc import Callable, Mapping

import tensorflow as tf

_MOST_BLOCKS = 1 << 32  # in a pass

Transform = Callable[[tf.data.Dataset], tf.data.Dataset]


def block_size(buffer_size: int, window: int) -> int:
  """The next multiple of `window`, so that a block is whole windows."""
  return -(-buffer_size // window) * window


def repeat_shuffled(
  blocks: tf.data.Dataset, window: int, seed: int, transform: Transform
) -> tf.data.Dataset:
  """Passes without end: each holds every example once, in its own order.

  Args:
    blocks: one pass, in large batches: dictionaries of tensors or of ragged
      tensors. Every block is shuffled within itself, so that one block for all
      makes every order equally likely.
    window: examples per batch of what is handed on.
    seed: of the orders; TensorFlow's global seed has no part in them.
    transform: what to make of a pass, which comes in batches of `window`.

  Returns:
    What `transform` made of the passes, one after the other.
  """

  def one_pass(number: tf.Tensor) -> tf.data.Dataset:
    return transform(shuffled(blocks, window, seed, number))

  passes = tf.data.Dataset.range(tf.int64.max).flat_map(one_pass)
  return passes.apply(
    tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
  )


def shuffled(
  blocks: tf.data.Dataset, window: int, seed: int, number: int | tf.Tensor = 0
) -> tf.data.Dataset:
  """One pass over `blocks`, each shuffled, in batches of `window`.

  Args:
    blocks: one pass, in large batches.
    window: examples per batch of what is handed on.
    seed: of the order.
    number: of the pass.

  Returns:
    A dataset of the same structure in smaller batches.
  """

  def windows(
    block_number: tf.Tensor, block: Mapping[str, tf.Tensor]
  ) -> tf.data.Dataset:
    rows = _num_rows(next(iter(block.values())))
    seeds = tf.stack([seed, number * _MOST_BLOCKS + block_number])
    order = tf.random.experimental.stateless_shuffle(tf.range(rows), seeds)

    def take(start: tf.Tensor) -> dict[str, tf.Tensor]:
      chosen = order[start : start + window]
      return {key: tf.gather(value, chosen) for key, value in block.items()}

    return tf.data.Dataset.range(0, rows, window).map(take)

  return blocks.enumerate().flat_map(windows)


def _num_rows(feature: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
  if isinstance(feature, tf.RaggedTensor):
    return feature.nrows()
  return tf.shape(feature, tf.int64)[0]
