"""TFDS data sets by name, written to disk here as TFDS writes them."""

import collections
import socket

import gin
import pytest
import tensorflow as tf

from mesh_tf2.data.batch import training_batches
from mesh_tf2.data.byte_vocabulary import ByteVocabulary
from mesh_tf2.data.iterator import CheckpointableIterator
from mesh_tf2.data.text_source import plain_text
from mesh_tf2.data.tfds_on_disk import find_prepared
from mesh_tf2.data.tfds_reader import (
  TfdsText,
  pretokenized_tfds_dataset,
  untokenized_tfds_dataset,
)

from tests.support import tfds_builders

LENGTHS = {"inputs": 20, "targets": 16}
VOCABULARY = ByteVocabulary()


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  folder = str(tmp_path_factory.mktemp("tfds"))
  tfds_builders.write(folder)
  return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
  """Any use of the network, or of a bucket, is an error."""

  def refuse(*arguments, **keywords):
    raise AssertionError(f"the network was touched: {arguments} {keywords}")

  for name in ("connect", "connect_ex", "sendto"):
    monkeypatch.setattr(socket.socket, name, refuse)
  monkeypatch.setattr(socket, "getaddrinfo", refuse)
  for name in ("exists", "glob", "isdir", "listdir", "stat"):
    function = getattr(tf.io.gfile, name)

    def local_only(path, *rest, function=function):
      assert "gs://" not in str(path), path
      return function(path, *rest)

    monkeypatch.setattr(tf.io.gfile, name, local_only)


def wmt(data_dir, split="validation", **arguments):
  return untokenized_tfds_dataset(
    **{
      "dataset_name": "wmt14_translate/de-en",
      "text2self": False,
      "tfds_data_dir": data_dir,
      "dataset_split": split,
      "sequence_length": LENGTHS,
      "vocabulary": VOCABULARY,
      "pack": True,
      **arguments,
    }
  )


def texts(rows, key):
  return [VOCABULARY.decode(row[key]) for row in rows.as_numpy_iterator()]


def cut(language, other=False):
  """What the rows of the validation split hold, in any order."""
  length = LENGTHS["targets" if other else "inputs"]
  sentences = [f"validation {language} ü{i}" for i in range(5)]
  return sorted(
    s.encode()[: length - 1].decode("utf-8", "replace") for s in sentences
  )


def test_translation_pairs_are_read_by_name(data_dir):
  rows = wmt(data_dir)
  assert rows.element_spec == {
    key: tf.TensorSpec([length], tf.int32) for key, length in LENGTHS.items()
  }
  # By default the supervised keys, as the original had it: de to en.
  assert sorted(texts(rows, "inputs")) == cut("de")
  assert sorted(texts(rows, "targets")) == cut("en", other=True)


def test_a_parameter_says_which_language_is_the_input(data_dir):
  rows = wmt(data_dir, inputs="en", targets="de")
  assert sorted(texts(rows, "inputs")) == cut("en")
  french = wmt(data_dir, dataset_name="wmt14_translate/fr-en", inputs="fr")
  assert sorted(texts(french, "inputs")) == cut("fr")


def test_training_shuffles_packs_and_repeats(data_dir):
  reports = []
  rows = wmt(
    data_dir,
    "train",
    sequence_length={"inputs": 60, "targets": 60},
    on_pass=reports.append,
  )
  seen, firsts = collections.Counter(), []
  for row in rows.take(30).as_numpy_iterator():
    for segment in range(1, row["targets_segmentation"].max() + 1):
      ids = row["targets"][row["targets_segmentation"] == segment]
      seen[VOCABULARY.decode(ids)] += 1
    firsts.append(VOCABULARY.decode(row["targets"]))
  assert set(seen) == {f"train en ü{i}" for i in range(30)}
  assert max(row["targets_segmentation"]) > 1
  assert reports[0].examples == 30


def test_a_language_model_reads_text_alone(data_dir):
  rows = wmt(data_dir, "test", dataset_name="lm1b", text2self=True)
  assert list(rows.element_spec) == ["targets"]
  assert sorted(texts(rows, "targets")) == [f"test {i}" for i in range(10)]
  english = wmt(data_dir, text2self=True, targets="en")
  assert sorted(texts(english, "targets")) == cut("en", other=True)


def test_another_split_can_stand_for_one_that_is_not_there(data_dir):
  rows = wmt(
    data_dir,
    dataset_name="lm1b",
    text2self=True,
    splits={"validation": "test[:50%]"},
  )
  assert len(list(rows)) == 5


def test_shards_of_a_split_are_disjoint_and_whole(data_dir):
  shards = [texts(wmt(data_dir, shard=(3, i)), "inputs") for i in range(3)]
  assert sorted(text for shard in shards for text in shard) == cut("de")
  assert sorted(map(len, shards)) == [1, 2, 2]


def test_plain_text_is_in_the_order_of_evaluation(data_dir):
  source = TfdsText("wmt14_translate/de-en", "en", "de", data_dir=data_dir)
  pairs = plain_text(source, "validation")
  rows = wmt(
    data_dir,
    inputs="en",
    targets="de",
    sequence_length={"inputs": 40, "targets": 40},
  )
  assert [inputs for inputs, _ in pairs] == texts(rows, "inputs")
  assert [targets for _, targets in pairs] == texts(rows, "targets")
  assert len(pairs) == 5


def test_the_same_seed_reads_in_the_same_order_and_a_saved_place_is_found(
  data_dir, tmp_path
):
  def make(seed):
    rows = wmt(data_dir, "train", seed=seed, shuffle_buffer_size=7, window=5)
    return CheckpointableIterator(training_batches(rows, 3))

  def draw(batches, count):
    return [next(batches)["targets"].numpy().tolist() for _ in range(count)]

  with make(1) as one, make(1) as same, make(2) as other:
    first = draw(one, 20)
    assert first == draw(same, 20)
    assert first != draw(other, 20)
    path = one.save(str(tmp_path / "place"))
    wanted = draw(one, 30)
  with make(1) as again:
    again.restore(path)
    assert draw(again, 30) == wanted


def test_ids_are_raised_by_one_and_ended(data_dir):
  rows = pretokenized_tfds_dataset(
    "tokenized", False, data_dir, "train[:100%]", None, LENGTHS
  )
  found = sorted(
    (row["inputs"].tolist(), row["targets"].tolist())
    for row in rows.as_numpy_iterator()
  )
  assert found[0] == ([1] + [0] * 19, [2, 1] + [0] * 14)
  assert found[3] == ([2, 3, 4, 1] + [0] * 16, [5, 1] + [0] * 14)


def test_ids_are_packed_for_training(data_dir):
  rows = pretokenized_tfds_dataset(
    "tokenized", True, data_dir, "train", None, LENGTHS
  )
  row = next(rows.as_numpy_iterator())
  assert row["targets_segmentation"].max() == 6


def test_a_data_set_with_a_vocabulary_of_its_own_points_to_plain_text(data_dir):
  with pytest.raises(
    ValueError, match=r"cannot read lm1b_subwords.* plain text"
  ):
    wmt(data_dir, "train", dataset_name="lm1b_subwords", text2self=True)


def test_a_name_that_is_not_on_disk_says_how_to_prepare_it(tmp_path):
  with pytest.raises(FileNotFoundError) as error:
    wmt(str(tmp_path))
  message = str(error.value)
  assert f"wmt14_translate/de-en is not prepared in {tmp_path}." in message
  command = f"tfds build wmt14_translate/de-en --data_dir={tmp_path}"
  assert command in message
  call = f'tfds.builder("wmt14_translate/de-en", data_dir="{tmp_path}")'
  assert f"{call}.download_and_prepare()" in message


def test_the_default_place_is_that_of_tfds(monkeypatch, tmp_path, data_dir):
  monkeypatch.setenv("TFDS_DATA_DIR", data_dir)
  assert len(list(wmt(None))) == 5
  monkeypatch.delenv("TFDS_DATA_DIR")
  monkeypatch.setenv("HOME", str(tmp_path))
  with pytest.raises(
    FileNotFoundError, match=r"tensorflow_datasets\. Nothing is"
  ):
    wmt(None)


@pytest.mark.parametrize(
  ("name", "message"),
  [
    (
      "wmt14_translate",
      "There is .*wmt14_translate/de-en/1.0.0, .*fr-en/1.0.0",
    ),
    ("wmt14_translate/cs-en", "There is wmt14_translate/de-en/1.0.0"),
    ("lm1b:9.9.9", r"There is lm1b/1\.1\.0\."),
    ("no_such", "no_such is not prepared in"),
  ],
)
def test_what_is_there_is_listed(data_dir, name, message):
  with pytest.raises(FileNotFoundError, match=message):
    find_prepared(name, data_dir)


def test_the_newest_version_is_taken_unless_one_is_named(tmp_path):
  for version in ("1.9.0", "1.10.0", "1.2.0"):
    (tmp_path / "x" / version).mkdir(parents=True)
    (tmp_path / "x" / version / "dataset_info.json").write_text("{}")
  assert find_prepared("x", str(tmp_path)).name == "x:1.10.0"
  assert find_prepared("x:1.2.0", str(tmp_path)).name == "x:1.2.0"


@pytest.mark.parametrize("name", ["huggingface:squad/plain", "a/b/c", ""])
def test_a_name_of_a_catalogue_is_refused(name):
  with pytest.raises(ValueError, match="dataset_name: wanted 'dataset'"):
    find_prepared(name, "/tmp")


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"split": "dev"}, "has no split 'dev'; it has 'train', 'validation'"),
    ({"inputs": "fr"}, "feature 'fr' was wanted as 'inputs'; .* 'de', 'en'"),
    (
      {"dataset_name": "tokenized", "split": "train"},
      "feature 'a' has type int64, where text was wanted; read it with pret",
    ),
  ],
)
def test_what_a_data_set_lacks_is_named_with_what_it_has(
  data_dir, arguments, message
):
  with pytest.raises(ValueError, match=message):
    wmt(data_dir, **arguments)


def test_text_is_not_taken_for_ids(data_dir):
  with pytest.raises(ValueError, match="ids was wanted; read it with untoken"):
    pretokenized_tfds_dataset("lm1b", True, data_dir, "train", None, LENGTHS)


def test_an_empty_split_is_an_error(data_dir):
  with pytest.raises(ValueError, match="has no example"):
    pretokenized_tfds_dataset(
      "tokenized", True, data_dir, "train[:0]", None, LENGTHS
    )


def test_gin_files_name_the_original_functions(data_dir):
  with gin.unlock_config():
    gin.parse_config(f"""
      untokenized_tfds_dataset.dataset_name = "lm1b"
      untokenized_tfds_dataset.text2self = True
      untokenized_tfds_dataset.tfds_data_dir = "{data_dir}"
      untokenized_tfds_dataset.pack = True
    """)
  try:
    rows = untokenized_tfds_dataset(
      dataset_split="train",
      sequence_length=LENGTHS,
      vocabulary=VOCABULARY,
      seed=0,
      shard=(1, 0),
    )
    assert "targets_position" in next(rows.as_numpy_iterator())
  finally:
    gin.clear_config()
