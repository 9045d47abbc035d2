"""Datasets of lines and of lines with a tab, by the original's names."""

import collections

import pytest
import tensorflow as tf

from mesh_tf2.data.byte_vocabulary import ByteVocabulary
from mesh_tf2.data.iterator import CheckpointableIterator
from mesh_tf2.data.parallel_tsv import (
  make_text_line_dataset,
  packed_parallel_tsv_dataset,
  sample_from_text_line_datasets,
  simple_text_line_dataset,
)

LENGTHS = {"inputs": 8, "targets": 8}


@pytest.fixture
def folder(tmp_path):
  for name in "ab":
    lines = [f"{name}{i}\t{i}" for i in range(40)]
    (tmp_path / f"{name}.tsv").write_text("\n".join(lines))
  return tmp_path


def read(dataset):
  return [line.decode().split("\t")[0] for line in dataset.as_numpy_iterator()]


def test_simple_lines_come_once_in_the_order_of_the_seed(folder):
  glob = str(folder / "*.tsv")
  found = read(simple_text_line_dataset(glob))
  assert sorted(found) == sorted([f"{n}{i}" for n in "ab" for i in range(40)])
  assert found == read(simple_text_line_dataset(glob))
  assert found != read(simple_text_line_dataset(glob, seed=1))


def test_lines_repeat_and_each_pass_holds_every_line(folder):
  lines = make_text_line_dataset(str(folder / "a.tsv"))
  found = read(lines.take(80))
  assert set(collections.Counter(found[:40]).values()) == {1}
  assert set(collections.Counter(found[40:]).values()) == {1}
  assert found[:40] != found[40:]


def test_groups_of_files_are_mixed_by_weight(folder):
  mixed = sample_from_text_line_datasets(
    [(str(folder / "a.tsv"), 3), (str(folder / "b.tsv"), 1)]
  )
  found = read(mixed.take(400))
  assert 0.65 < sum(line[0] == "a" for line in found) / 400 < 0.85


def test_a_mixture_can_be_saved_and_goes_on_in_later_passes(folder, tmp_path):
  def make():
    return CheckpointableIterator(
      sample_from_text_line_datasets(
        [(str(folder / "a.tsv"), 3), (str(folder / "b.tsv"), 1)],
        shuffle_buffer_size=10,
        prefetch=3,
      )
    )

  with make() as lines:
    for _ in range(75):
      next(lines)
    path = lines.save(str(tmp_path / "p"))
    wanted = [next(lines).numpy() for _ in range(200)]
  with make() as lines:
    lines.restore(path)
    assert [next(lines).numpy() for _ in range(200)] == wanted


def test_lines_with_a_tab_become_rows(folder):
  rows = packed_parallel_tsv_dataset(
    simple_text_line_dataset(str(folder / "a.tsv")),
    "validation",
    None,
    LENGTHS,
    ByteVocabulary(),
  )
  found = list(rows.as_numpy_iterator())
  assert len(found) == 40
  for row in found:
    inputs = ByteVocabulary().decode(row["inputs"])
    assert inputs == "a" + ByteVocabulary().decode(row["targets"])
    assert (row["inputs"] == 1).sum() == 1


@pytest.mark.parametrize("source", ["dataset", "function"])
def test_training_packs_and_goes_on_without_end(folder, source):
  glob = str(folder / "a.tsv")
  rows = packed_parallel_tsv_dataset(
    simple_text_line_dataset(glob)
    if source == "dataset"
    else lambda seed: make_text_line_dataset(glob, seed=seed),
    "train",
    sequence_length=LENGTHS,
    vocabulary=ByteVocabulary(),
    window=40,
  )
  found = list(rows.take(100).as_numpy_iterator())
  assert max(row["targets_segmentation"].max() for row in found) > 1


def test_long_examples_can_be_dropped_and_eos_left_out(folder):
  rows = packed_parallel_tsv_dataset(
    simple_text_line_dataset(str(folder / "a.tsv")),
    "test",
    sequence_length=LENGTHS,
    vocabulary=ByteVocabulary(),
    append_eos=False,
    max_encoded_len=2,
  )
  found = list(rows.as_numpy_iterator())
  assert len(found) == 10  # a0 to a9
  assert all((row["inputs"] != 1).all() for row in found)
  assert all(row["inputs"][2] == 0 for row in found)


def test_lines_without_end_cannot_be_gone_through_once(folder):
  with pytest.raises(ValueError, match="its lines have no end; use simple"):
    packed_parallel_tsv_dataset(
      make_text_line_dataset(str(folder / "a.tsv")),
      "test",
      sequence_length=LENGTHS,
      vocabulary=ByteVocabulary(),
    )


def test_a_line_without_a_tab_is_shown():
  rows = packed_parallel_tsv_dataset(
    tf.data.Dataset.from_tensors("no tab"),
    "test",
    sequence_length=LENGTHS,
    vocabulary=ByteVocabulary(),
  )
  with pytest.raises(tf.errors.InvalidArgumentError, match=r"one tab.*no tab"):
    list(rows)


def test_a_group_of_empty_files_is_named(tmp_path):
  (tmp_path / "empty").write_text("")
  with pytest.raises(ValueError, match="empty has no example"):
    make_text_line_dataset(str(tmp_path / "empty"))
