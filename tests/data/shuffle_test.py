"""Shuffling by blocks."""

import collections
import math

import pytest
import tensorflow as tf

from mesh_tf2.data.shuffle import block_size, repeat_shuffled, shuffled


def numbers(count, size):
  return tf.data.Dataset.range(count).map(lambda n: {"n": n}).batch(size)


def listed(batches):
  return [batch["n"].tolist() for batch in batches.as_numpy_iterator()]


@pytest.mark.parametrize(
  ("buffer_size", "window", "size"), [(1, 5, 5), (5, 5, 5), (6, 5, 10)]
)
def test_a_block_is_whole_windows(buffer_size, window, size):
  assert block_size(buffer_size, window) == size


def test_every_block_is_shuffled_within_itself_and_cut_into_windows():
  batches = listed(shuffled(numbers(23, 10), 4, seed=1))
  assert [len(batch) for batch in batches] == [4, 4, 2, 4, 4, 2, 3]
  flat = [n for batch in batches for n in batch]
  blocks = [flat[:10], flat[10:20], flat[20:]]
  assert [sorted(block) for block in blocks] == [
    list(range(10)),
    list(range(10, 20)),
    list(range(20, 23)),
  ]
  assert blocks[0] != [n - 10 for n in blocks[1]]


def test_ragged_rows_stay_together_across_features():
  rows = tf.ragged.range(tf.range(6))
  block = tf.data.Dataset.from_tensors({"n": tf.range(6), "ragged": rows})
  for batch in shuffled(block, 4, seed=1):
    assert batch["ragged"].row_lengths().numpy().tolist() == (
      batch["n"].numpy().tolist()
    )


def test_every_order_is_equally_likely():
  passes = repeat_shuffled(numbers(3, 3), 3, 7, lambda batches: batches)
  assert passes.cardinality() == tf.data.INFINITE_CARDINALITY
  count = 1200
  orders = collections.Counter(
    tuple(batch["n"]) for batch in passes.take(count).as_numpy_iterator()
  )
  assert len(orders) == 6
  expected = count / 6
  chi_squared = sum((n - expected) ** 2 / expected for n in orders.values())
  assert chi_squared < 5 + 5 * math.sqrt(2 * 5)
