"""From text to rows of fixed length, one example each."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2.data.byte_vocabulary import ByteVocabulary
from mesh_tf2.data.dataset_fn import PassReport, lengths_of
from mesh_tf2.data.encode import (
  encode_all_features,
  encode_dataset,
  encode_windows,
)
from mesh_tf2.data.pad import pad_windows, trim_and_pad_dataset
from mesh_tf2.data.trim import log_pass, trim_rows, trim_windows
from mesh_tf2.data.vocabulary import Vocabulary

TEXTS = [f"{'ab' * i}é" for i in range(5)] + ["", "last"]
IDS = [[b + 3 for b in text.encode()] for text in TEXTS]


class Fives(Vocabulary):
  """Every letter is a 5."""

  vocab_size = 6

  def encode(self, text):
    return [5] * len(text)

  def decode(self, ids):
    return "x" * len(ids)


def text_dataset():
  return tf.data.Dataset.from_tensor_slices(
    {"inputs": TEXTS, "targets": TEXTS[::-1], "number": range(len(TEXTS))}
  )


def rows(dataset):
  return [
    {key: ids.tolist() for key, ids in example.items()}
    for example in dataset.as_numpy_iterator()
  ]


def test_string_features_become_ids_that_end_with_eos():
  encoded = encode_all_features(text_dataset(), ByteVocabulary())
  vector = tf.TensorSpec([None], tf.int32)
  assert encoded.element_spec == {"inputs": vector, "targets": vector}
  assert rows(encoded) == [
    {"inputs": [*a, 1], "targets": [*b, 1]}
    for a, b in zip(IDS, IDS[::-1], strict=True)
  ]


def test_encoding_without_eos_is_the_same_but_for_eos():
  encoded = rows(encode_dataset(text_dataset(), ByteVocabulary()))
  assert [row["inputs"] for row in encoded] == IDS


def test_a_pair_of_vocabularies_encodes_inputs_and_targets_differently():
  encoded = rows(
    encode_all_features(text_dataset(), (ByteVocabulary(), Fives()))
  )
  assert [row["inputs"] for row in encoded] == [[*row, 1] for row in IDS]
  assert encoded[0]["targets"] == [5, 5, 5, 5, 1]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_windows_hold_the_same_ids_whatever_their_size(size):
  texts = text_dataset().map(lambda e: {"targets": e["inputs"]})
  windows = encode_windows(texts.batch(size), ByteVocabulary())
  found = [row for w in windows for row in w["targets"].to_list()]
  assert found == [[*row, 1] for row in IDS]


@pytest.mark.parametrize(
  ("row", "kept"),
  [
    ([5, 6, 7, 8, 1], [5, 6, 1]),  # EOS survives
    ([5, 6, 7, 8], [5, 6, 7]),  # none is made up
    ([5, 1, 6, 1], [5, 1, 1]),
    ([5, 6, 1], [5, 6, 1]),
    ([5, 0, 6, 0], [5, 0, 6]),
    ([1], [1]),
    ([], []),
  ],
)
def test_a_row_is_cut_so_that_an_eos_at_its_end_stays(row, kept):
  ragged = tf.ragged.constant([[9, 1], row, [9] * 7], dtype=tf.int32)
  assert trim_rows(ragged, 3).to_list() == [[9, 1], kept, [9] * 3]


def test_a_row_of_one_id_is_eos():
  ragged = tf.ragged.constant([[5, 1], [5], [1]], dtype=tf.int32)
  assert trim_rows(ragged, 1).to_list() == [[1], [5], [1]]


def test_eos_can_be_demanded_of_rows_that_fill_their_length():
  ragged = tf.ragged.constant([[5, 6, 7, 8], [5, 6, 7], [5, 6]], dtype=tf.int32)
  found = trim_rows(ragged, 3, ensure_eos=True).to_list()
  assert found == [[5, 6, 1], [5, 6, 1], [5, 6]]


@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_truncated_examples_are_counted_once_in_each_pass(size):
  reports = []
  texts = text_dataset().map(
    lambda e: {"inputs": e["inputs"], "targets": e["targets"]}
  )
  windows = encode_windows(texts.batch(size), ByteVocabulary())
  lengths = {"inputs": 6, "targets": 8}
  trimmed = trim_windows(
    windows, lengths, name="split 'x'", on_pass=reports.append
  )
  sizes = [
    (len(a) + 1, len(b) + 1) for a, b in zip(IDS, IDS[::-1], strict=True)
  ]
  wanted = sum(a > 6 or b > 8 for a, b in sizes)
  assert 0 < wanted < len(TEXTS)
  padded = pad_windows(trimmed, lengths)
  for passes in (1, 2):
    assert len(list(padded)) == len(TEXTS)
    report = PassReport("split 'x'", len(TEXTS), wanted)
    assert reports == [report] * passes


def test_the_log_has_one_line_for_each_pass(caplog):
  with caplog.at_level(logging.INFO, "absl"):
    log_pass(PassReport("split 'train'", 20, 0))
    log_pass(PassReport("split 'train'", 20, 3))
  assert [r.levelname for r in caplog.records] == ["INFO", "WARNING"]
  assert caplog.records[1].getMessage() == (
    "split 'train': 3 of 20 examples were longer than a row and were truncated"
  )


def test_padding_fills_rows_with_zeros():
  windows = encode_windows(
    tf.data.Dataset.from_tensors({"targets": ["ab", ""]}), ByteVocabulary()
  )
  padded = pad_windows(windows, {"targets": 4})
  assert padded.element_spec == {"targets": tf.TensorSpec([4], tf.int32)}
  assert rows(padded) == [
    {"targets": [100, 101, 1, 0]},
    {"targets": [1, 0, 0, 0]},
  ]


def test_trim_and_pad_fixes_the_first_axis_of_the_named_features():
  dataset = tf.data.Dataset.from_tensors(
    {
      "inputs": tf.range(5),
      "targets": tf.ones([2, 3]),
      "other": tf.range(9),
    }
  )
  found = trim_and_pad_dataset(
    dataset, {"inputs": 3, "targets": 4}, ["inputs", "targets"]
  )
  example = next(found.as_numpy_iterator())
  np.testing.assert_array_equal(example["inputs"], [0, 1, 2])
  np.testing.assert_array_equal(
    example["targets"], [[1, 1, 1]] * 2 + [[0, 0, 0]] * 2
  )
  np.testing.assert_array_equal(example["other"], range(9))
  assert found.element_spec["targets"].shape == [4, 3]


def test_lengths_are_looked_up_by_the_first_part_of_a_name():
  assert lengths_of(["inputs", "targets_b"], {"inputs": 2, "targets": 3}) == {
    "inputs": 2,
    "targets_b": 3,
  }
  assert lengths_of(["a"], 5) == {"a": 5}


@pytest.mark.parametrize(
  "length", [{"targets": 3}, {"inputs": 0}, 0, None, 2.5]
)
def test_a_feature_without_room_is_an_error_that_names_it(length):
  with pytest.raises(ValueError, match="feature 'inputs' needs a length of at"):
    lengths_of(["inputs"], length)
