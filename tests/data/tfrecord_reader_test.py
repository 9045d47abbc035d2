"""TFRecord files of ids."""

import pytest
import tensorflow as tf

from mesh_tf2.data.iterator import CheckpointableIterator
from mesh_tf2.data.tfrecord_reader import (
  pretokenized_t2t_dataset,
  pretokenized_tfrecord_dataset,
)

LENGTHS = {"inputs": 6, "targets": 5}
EXAMPLES = [([5, 6, 1], [7, 1]), ([8, 1], [9, 10, 1]), ([], [11, 1])]


def write(path, examples):
  def ints(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

  with tf.io.TFRecordWriter(str(path)) as writer:
    for inputs, targets in examples:
      feature = {"inputs": ints(inputs), "targets": ints(targets)}
      features = tf.train.Features(feature=feature)
      writer.write(tf.train.Example(features=features).SerializeToString())


@pytest.fixture
def folder(tmp_path):
  for split in ("train", "dev"):
    write(tmp_path / f"ende-{split}-00000-of-00002", EXAMPLES[:1])
    write(tmp_path / f"ende-{split}-00001-of-00002", EXAMPLES[1:])
  write(tmp_path / "empty-train-00000-of-00001", [])
  return str(tmp_path)


def read(folder, split="dev", **arguments):
  return pretokenized_t2t_dataset(
    "ende",
    data_dir=folder,
    dataset_split=split,
    sequence_length=LENGTHS,
    **arguments,
  )


def as_lists(rows):
  return [
    {key: ids.tolist() for key, ids in row.items()}
    for row in rows.as_numpy_iterator()
  ]


def test_a_split_is_read_from_all_its_files_in_order(folder):
  assert as_lists(read(folder)) == [
    {"inputs": [5, 6, 1, 0, 0, 0], "targets": [7, 1, 0, 0, 0]},
    {"inputs": [8, 1, 0, 0, 0, 0], "targets": [9, 10, 1, 0, 0]},
    {"inputs": [0] * 6, "targets": [11, 1, 0, 0, 0]},
  ]


def test_ids_can_be_shifted_and_ended_and_targets_read_alone(folder):
  rows = as_lists(
    read(folder, text2self=True, vocab_shift=10, eos_included=False)
  )
  assert rows[0] == {"targets": [17, 11, 1, 0, 0]}


def test_training_repeats_packed(folder):
  rows = as_lists(read(folder, "train", seed=1).take(4))
  assert {"inputs_segmentation", "targets_position"} <= set(rows[0])
  ids = [i for row in rows for i in row["targets"] if i > 1]
  assert set(ids) == {7, 9, 10, 11}


def test_the_reader_of_files_is_the_same(folder):
  files = sorted(tf.io.gfile.glob(f"{folder}/ende-dev-*"))
  arguments = (False, True, False, None, LENGTHS)
  rows = pretokenized_tfrecord_dataset(files, *arguments)
  assert as_lists(rows) == as_lists(read(folder))
  arguments = (False, True, True, None, LENGTHS)
  endless = pretokenized_tfrecord_dataset(files, *arguments)
  assert len(list(endless.take(9))) == 9


@pytest.mark.parametrize("pack", [True, False])
def test_a_saved_place_is_found_in_later_passes_too(folder, tmp_path, pack):
  def make():
    rows = read(folder, "train", pack=pack, window=2, shuffle_buffer_size=3)
    return CheckpointableIterator(rows)

  def draw(iterator):
    return [next(iterator)["targets"].numpy().tolist() for _ in range(30)]

  with make() as first:
    for _ in range(7):
      next(first)
    path = first.save(str(tmp_path / "place"))
    wanted = draw(first)
  with make() as second:
    second.restore(path)
    assert draw(second) == wanted


def test_shards_are_disjoint(folder):
  found = [as_lists(read(folder, shard=(2, i))) for i in range(2)]
  assert [len(rows) for rows in found] == [2, 1]


def test_a_pattern_without_files_is_named(folder):
  with pytest.raises(FileNotFoundError, match=r"ende-test-\*: no file matches"):
    read(folder, "test")


def test_files_without_examples_are_an_error(folder):
  with pytest.raises(ValueError, match="split 'train' has no example"):
    pretokenized_t2t_dataset("empty", data_dir=folder, sequence_length=LENGTHS)
