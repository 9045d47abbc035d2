"""Sizes of batches, numbers of micro-batches and of steps."""

import pytest

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import batch_sizes

ROW = {"inputs": 256, "targets": 512}


@pytest.mark.parametrize(
  ("method_and_value", "size"),
  [
    (8, 8),
    (("sequences_per_batch", 8), 8),
    (("tokens_per_batch", 4096), 8),
    (("sequences_per_replica", 8), 32),
    (("tokens_per_replica", 4096), 32),
  ],
)
def test_a_batch_has_the_size_that_the_method_says(method_and_value, size):
  got = batch_sizes.compute_batch_size(
    ROW, "batch:4;model:2", "batch:batch;d_ff:model", method_and_value
  )
  assert got == size


def test_replicas_are_those_of_batch_and_outer_batch_together():
  got = batch_sizes.compute_batch_size(
    ROW,
    "outer:2;inner:4",
    "outer_batch:outer;batch:inner",
    ("sequences_per_replica", 3),
  )
  assert got == 24


@pytest.mark.parametrize(
  ("row", "method_and_value", "message"),
  [
    (ROW, 6, "6 sequences cannot be split over 4 .*multiple of 4"),
    (ROW, 0, "a batch of 0 sequences"),
    (ROW, ("tokens_per_batch", 1000), "longest sequence, 512 tokens"),
    (ROW, ("rows", 8), "there is no method 'rows'; take one of sequences_per"),
    (None, ("tokens_per_batch", 512), "needs run.sequence_length"),
  ],
)
def test_an_impossible_batch_is_refused(row, method_and_value, message):
  with pytest.raises(ValueError, match=message):
    batch_sizes.compute_batch_size(
      row, "batch:4", "batch:batch", method_and_value
    )


@pytest.mark.parametrize("wrong", ["x", 2.5, None, (1,), ("tokens", "x")])
def test_a_batch_size_is_a_number_or_a_pair(wrong):
  with pytest.raises(ValueError, match="a number of sequences, or a pair"):
    batch_sizes.compute_batch_size({"targets": 8}, "", "", wrong)


def test_a_batch_of_sequences_needs_no_lengths():
  size = batch_sizes.compute_batch_size(
    None, "batch:4", "batch:batch", ("sequences_per_replica", 2)
  )
  assert size == 8


@pytest.mark.parametrize(
  ("tokens", "pieces"), [(None, 1), (512, 16), (2048, 4), (3000, 4), (1e6, 1)]
)
def test_there_are_as_many_micro_batches_as_in_the_original(tokens, pieces):
  got = batch_sizes.serialize_num_microbatches(
    mtf.Dimension("batch", 64),
    {"targets": 512},
    "batch:4",
    "batch:batch",
    None if tokens is None else int(tokens),
  )
  assert got == pieces


def test_a_sequence_that_is_longer_than_a_micro_batch_stands_alone():
  got = batch_sizes.serialize_num_microbatches(
    mtf.Dimension("batch", 6), {"targets": 512}, "", "", 100
  )
  assert got == 6


@pytest.mark.parametrize(
  ("batch_size", "row"),
  [
    (8, {"inputs": 4, "targets": 16}),
    (8, 16),
    (("sequences_per_batch", 8), 16),
    (("tokens_per_batch", 128), None),
  ],
)
def test_training_goes_through_the_tokens_that_were_asked_for(batch_size, row):
  assert batch_sizes.auto_train_steps(batch_size, row, 1300) == 10


def test_steps_by_tokens_per_replica_are_refused():
  with pytest.raises(ValueError, match="'tokens_per_replica' depends on the"):
    batch_sizes.auto_train_steps(("tokens_per_replica", 128), 16)
