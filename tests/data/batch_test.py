"""Batches for training and for evaluation."""

import pytest
import tensorflow as tf

from mesh_tf2.data.batch import (
  evaluation_batches,
  pad_dataset_with_zeroed_out_examples,
  training_batches,
)


def examples(count):
  numbers = tf.range(1, count + 1)
  return tf.data.Dataset.from_tensor_slices(
    {"a": numbers[:, None] * [[1, 1]], "b": numbers[:, None]}
  )


def test_training_batches_are_always_full():
  batches = training_batches(examples(7).repeat(), 3)
  assert batches.element_spec["a"].shape == [3, 2]
  found = [b["b"].ravel().tolist() for b in batches.take(3).as_numpy_iterator()]
  assert found == [[1, 2, 3], [4, 5, 6], [7, 1, 2]]


@pytest.mark.parametrize("count", [1, 5, 6, 7])
@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_evaluation_sees_each_example_once(count, batch_size):
  batches = evaluation_batches(examples(count), batch_size)
  assert batches.element_spec[0]["a"].shape == [batch_size, 2]
  seen, rows = [], 0
  for batch, real in batches.as_numpy_iterator():
    seen += batch["b"][:real].ravel().tolist()
    assert not batch["a"][real:].any()
    assert not batch["b"][real:].any()
    rows += len(batch["b"])
  assert seen == list(range(1, count + 1))
  assert rows == -(-count // batch_size) * batch_size


def test_hosts_can_be_given_the_same_number_of_batches():
  batches = evaluation_batches(examples(4), 3, num_batches=4)
  reals = [int(real) for _, real in batches.as_numpy_iterator()]
  assert reals == [3, 1, 0, 0]


def test_examples_of_zeros_follow_without_end():
  padded = pad_dataset_with_zeroed_out_examples(examples(2))
  found = [e["a"].tolist() for e in padded.take(4).as_numpy_iterator()]
  assert found == [[1, 1], [2, 2], [0, 0], [0, 0]]
