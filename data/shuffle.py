"""Passes over a data set without end, each in an order of its own.

`dataset.shuffle(...).repeat()` would do, were it not that a saved iterator of
it, restored in another process, goes through the passes that follow in other
orders than the iterator that was saved. Here the order of a pass is a function
of the seed and of the number of the pass, and nothing else.
"""

from collections.abc import Callable

import tensorflow as tf

# Any but 0: with the number 0, TensorFlow compares our seed, a tensor, with 0.
_GRAPH_SEED = 1
_SEEDS_APART = 1_000_003


def repeat_shuffled(
  dataset: tf.data.Dataset,
  buffer_size: int,
  seed: int,
  transform: Callable[[tf.data.Dataset], tf.data.Dataset] = lambda d: d,
) -> tf.data.Dataset:
  """Passes without end: each holds every example once, shuffled anew.

  Args:
    dataset: one pass, in order.
    buffer_size: examples that shuffling chooses from.
    seed: of the orders; TensorFlow's global seed has no part in them.
    transform: what to make of a shuffled pass.

  Returns:
    What `transform` made of the passes, one after the other.
  """

  def one_pass(number: tf.Tensor) -> tf.data.Dataset:
    tf.random.set_seed(_GRAPH_SEED)  # of the function that is being traced
    shuffled = dataset.shuffle(
      buffer_size,
      seed=seed * _SEEDS_APART + number,
      reshuffle_each_iteration=False,
    )
    return transform(shuffled)

  passes = tf.data.Dataset.range(tf.int64.max).flat_map(one_pass)
  endless = tf.data.experimental.assert_cardinality(
    tf.data.INFINITE_CARDINALITY
  )
  options = tf.data.Options()
  # An unused generator of seeds, which `shuffle` makes in any case, would
  # otherwise forbid to save iterators.
  options.experimental_external_state_policy = (
    tf.data.experimental.ExternalStatePolicy.IGNORE
  )
  endless = tf.data.experimental.assert_cardinality(
    tf.data.INFINITE_CARDINALITY
  )
  return passes.apply(endless).with_options(options)
