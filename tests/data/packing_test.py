"""Packing: against its rules, for random examples."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_tf2.data.packing import (
  assign_rows,
  pack_arrays,
  pack_dataset,
  pack_or_pad,
)
from mesh_tf2.data.window import ragged


def dataset_of(examples):
  keys = list(examples[0])
  spec = {key: tf.TensorSpec([None], tf.int64) for key in keys}
  return tf.data.Dataset.from_generator(
    lambda: iter(examples), output_signature=spec
  )


def rows_of(dataset):
  return [
    {key: ids.tolist() for key, ids in row.items()}
    for row in dataset.as_numpy_iterator()
  ]


def unpacked(row, keys):
  """The examples of a packed row, read off segmentation and position."""
  examples = []
  count = max(max(row[f"{key}_segmentation"]) for key in keys)
  for segment in range(1, count + 1):
    example = {}
    for key in keys:
      at = [i for i, s in enumerate(row[f"{key}_segmentation"]) if s == segment]
      assert [row[f"{key}_position"][i] for i in at] == list(range(len(at)))
      assert at == list(range(at[0], at[0] + len(at))) if at else True
      example[key] = [row[key][i] for i in at]
    examples.append(example)
  for key in keys:
    for i, segment in enumerate(row[f"{key}_segmentation"]):
      if segment == 0:
        assert row[key][i] == row[f"{key}_position"][i] == 0
  return examples


def test_two_features_are_packed_side_by_side():
  packed = rows_of(
    pack_dataset(
      dataset_of(
        [
          {"inputs": [7, 8, 1], "targets": [4, 1]},
          {"inputs": [8, 4, 9, 3, 1], "targets": [3, 1]},
        ]
      ),
      {"inputs": 10, "targets": 5},
    )
  )
  assert packed == [
    {
      "inputs": [7, 8, 1, 8, 4, 9, 3, 1, 0, 0],
      "inputs_segmentation": [1, 1, 1, 2, 2, 2, 2, 2, 0, 0],
      "inputs_position": [0, 1, 2, 0, 1, 2, 3, 4, 0, 0],
      "targets": [4, 1, 3, 1, 0],
      "targets_segmentation": [1, 1, 2, 2, 0],
      "targets_position": [0, 1, 0, 1, 0],
    }
  ]


def test_an_example_goes_where_it_fits_for_every_feature():
  packed = rows_of(
    pack_dataset(
      dataset_of(
        [
          {"inputs": [5], "targets": [6] * 4},
          {"inputs": [5] * 4, "targets": [6]},
          {"inputs": [7], "targets": [8] * 4},
        ]
      ),
      5,
    )
  )
  assert [unpacked(row, ["inputs", "targets"]) for row in packed] == [
    [
      {"inputs": [5], "targets": [6] * 4},
      {"inputs": [5] * 4, "targets": [6]},
    ],
    [{"inputs": [7], "targets": [8] * 4}],
  ]


def test_zeros_within_an_example_are_ids_like_others():
  (row,) = rows_of(pack_dataset(dataset_of([{"t": [0, 5, 0]}, {"t": [0]}]), 6))
  assert unpacked(row, ["t"]) == [{"t": [0, 5, 0]}, {"t": [0]}]


def test_an_empty_feature_keeps_the_numbers_of_both_features_together():
  examples = [
    {"inputs": [], "targets": [5]},
    {"inputs": [6], "targets": [7]},
  ]
  (row,) = rows_of(pack_dataset(dataset_of(examples), 4))
  assert row["inputs_segmentation"] == [2, 0, 0, 0]
  assert unpacked(row, ["inputs", "targets"]) == examples


def test_a_long_example_is_trimmed_and_the_others_are_kept():
  examples = [{"t": [5] * 9 + [1]}, {"t": [6, 1]}, {"t": [7] * 9}]
  packed = rows_of(pack_dataset(dataset_of(examples), 4))
  assert [row["t"] for row in packed] == [[5, 5, 5, 1], [6, 1, 0, 0], [7] * 4]


def test_only_the_named_features_are_packed():
  packed = pack_dataset(
    dataset_of([{"a": [1], "b": [2]}]), 3, keys=["a"], use_custom_ops=True
  )
  assert set(packed.element_spec) == {"a", "a_position", "a_segmentation"}
  assert all(
    spec == tf.TensorSpec([3], tf.int32)
    for spec in packed.element_spec.values()
  )


def test_rows_come_in_the_order_of_their_first_examples():
  sizes = np.array([[2], [5], [3], [1], [4]])
  assert assign_rows(sizes, np.array([5])).tolist() == [0, 1, 0, 2, 2]


def test_a_window_without_examples_makes_no_row():
  ids, sizes = ragged([])
  assert [a.shape for a in pack_arrays([ids], [sizes], [7])] == [(0, 7)] * 3


@st.composite
def windows(draw):
  lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))
  example = st.tuples(
    *(st.lists(st.integers(0, 9), max_size=length) for length in lengths)
  )
  return lengths, draw(st.lists(example, min_size=1, max_size=25))


@settings(max_examples=200, deadline=None)
@given(windows())
def test_every_example_is_in_one_row_whole_and_in_order(window):
  lengths, examples = window
  parts = [ragged(column) for column in zip(*examples, strict=True)]
  packed = pack_arrays([p[0] for p in parts], [p[1] for p in parts], lengths)
  assert all(array.dtype == np.int32 for array in packed)
  keys = [str(i) for i in range(len(lengths))]
  names = [k + end for k in keys for end in ("", "_segmentation", "_position")]
  found = [
    tuple(example[key] for key in keys)
    for row in zip(*packed, strict=True)
    for example in unpacked(
      dict(zip(names, [a.tolist() for a in row], strict=True)), keys
    )
  ]
  nothing = tuple([] for _ in keys)
  wanted = [tuple(map(list, e)) for e in examples]
  assert sorted(e for e in found if e != nothing) == sorted(
    e for e in wanted if e != nothing
  )


@settings(max_examples=200, deadline=None)
@given(windows())
def test_no_two_rows_could_be_one(window):
  lengths, examples = window
  sizes = np.array([[len(ids) for ids in example] for example in examples])
  rows = assign_rows(sizes, np.array(lengths))
  assert sorted(set(rows)) == list(range(rows.max() + 1))
  firsts = [list(rows).index(row) for row in range(rows.max() + 1)]
  assert firsts == sorted(firsts)
  used = np.array([sizes[rows == row].sum(0) for row in range(rows.max() + 1)])
  assert (used <= lengths).all()
  for one in range(len(used)):
    for other in range(one):
      assert (used[one] + used[other] > lengths).any()


def test_short_sentences_leave_little_padding():
  rng = np.random.default_rng(0)
  inputs = rng.poisson(14, 2048) + 2
  sizes = np.stack([inputs, inputs + rng.integers(-1, 2, 2048)], axis=1)
  for length in (64, 256):
    rows = assign_rows(sizes, np.array([length, length]))
    padding = 1 - sizes.sum() / ((rows.max() + 1) * 2 * length)
    assert padding < 0.05


def test_packing_is_a_function_of_the_examples_alone():
  rng = np.random.default_rng(1)
  examples = [
    {"t": rng.integers(3, 99, rng.integers(1, 30)).tolist()} for _ in range(500)
  ]
  dataset = pack_dataset(dataset_of(examples), 32, window=100)
  assert rows_of(dataset) == rows_of(dataset)
  found = [
    tuple(e["t"]) for row in rows_of(dataset) for e in unpacked(row, "t")
  ]
  assert sorted(found) == sorted(tuple(e["t"]) for e in examples)


@pytest.mark.parametrize("pack", [True, False])
def test_pack_or_pad_can_end_every_full_example_with_eos(pack):
  examples = [{"t": [5] * 9}, {"t": [6, 7]}, {"t": [8] * 4}]
  rows = rows_of(pack_or_pad(dataset_of(examples), 4, pack, ensure_eos=True))
  assert [row["t"] for row in rows] == [
    [5, 5, 5, 1],
    [6, 7, 0, 0],
    [8, 8, 8, 1],
  ]
  assert ("t_position" in rows[0]) == pack


def test_pack_or_pad_pads_only_the_named_features_and_keeps_the_rest():
  examples = [{"a": [5] * 9, "b": [6, 7]}]
  (row,) = rows_of(pack_or_pad(dataset_of(examples), 4, False, ["a"]))
  assert row == {"a": [5] * 4, "b": [6, 7]}
