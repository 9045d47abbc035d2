"""Text and vocabularies in a bucket; a file system in memory stands for one."""

import gzip

import pytest
import tensorflow as tf

from mesh_tf2.data import (
  files,
  sentencepiece_vocabulary,
  t2t_vocabulary,
  text_file,
  text_lines,
  trained_vocabulary,
)

LINES = [f"the {word} is here" for word in ("cat", "dog", "fish")] * 20
TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture
def bucket(request):
  folder = f"ram://bucket/{request.node.name}"
  yield folder
  if tf.io.gfile.exists(folder):
    tf.io.gfile.rmtree(folder)


def put(path, content):
  tf.io.gfile.makedirs(path.rpartition("/")[0])
  with tf.io.gfile.GFile(path, "wb") as file:
    file.write(content)


@pytest.mark.parametrize("name", ["train.txt", "train.txt.gz"])
def test_lines_are_read_from_a_bucket(bucket, name):
  path = f"{bucket}/{name}"
  put(path, gzip.compress(TEXT) if name.endswith(".gz") else TEXT)
  file = text_file.TextFile(path)
  assert file.num_lines == len(LINES)
  assert list(file.lines()) == LINES
  assert list(file.lines()) == LINES  # again, from the start


def test_names_are_looked_for_below_a_bucket(bucket, tmp_path):
  for name in ("a.txt", "b.txt"):
    put(f"{bucket}/{name}", TEXT)
  assert files.resolve_files("a.txt", data_dir=bucket) == [f"{bucket}/a.txt"]
  assert files.resolve_files("*.txt", data_dir=f"{bucket}/") == [
    f"{bucket}/a.txt",
    f"{bucket}/b.txt",
  ]
  (tmp_path / "c.txt").write_bytes(TEXT)
  assert files.resolve_files(
    [f"{tmp_path}/c.txt", f"{bucket}/a.txt"], data_dir=bucket
  ) == [f"{tmp_path}/c.txt", f"{bucket}/a.txt"]


@pytest.mark.parametrize("name", ["absent.txt", "*.absent"])
def test_a_file_that_a_bucket_does_not_have_is_named(bucket, name):
  put(f"{bucket}/a.txt", TEXT)
  with pytest.raises(FileNotFoundError, match=r"ram://bucket/.*absent"):
    files.resolve_files(name, data_dir=bucket)


def test_a_missing_object_is_named_when_it_is_opened(bucket):
  with pytest.raises(FileNotFoundError, match=f"{bucket}/absent: no such file"):
    files.open_binary(f"{bucket}/absent")


def test_a_folder_of_a_bucket_is_no_file(bucket):
  put(f"{bucket}/folder/a.txt", TEXT)
  with pytest.raises(
    IsADirectoryError, match=r"for example ram://.*/folder/\*"
  ):
    files.resolve_files("folder", data_dir=bucket)


def test_a_vocabulary_is_trained_into_a_bucket_and_found_there_again(bucket):
  put(f"{bucket}/train.txt", TEXT)
  source = text_lines.TextLineFiles(
    files={"train": "train.txt"}, data_dir=bucket
  )
  trained = trained_vocabulary.trained_sentencepiece_vocabulary(
    f"{bucket}/model", source, 18
  )
  assert trained.decode(trained.encode(LINES[0])) == LINES[0]
  assert tf.io.gfile.exists(f"{bucket}/model/vocabulary.model")
  again = sentencepiece_vocabulary.SentencePieceVocabulary(
    f"{bucket}/model/vocabulary.model"
  )
  assert again.encode(LINES[1]) == trained.encode(LINES[1])


def test_a_vocabulary_of_subwords_is_read_from_a_bucket(bucket):
  put(f"{bucket}/subwords", b"'<pad>'\n'<EOS>'\n'a_'\n'b_'\n")
  vocabulary = t2t_vocabulary.get_t2t_vocabulary(bucket, "subwords")
  assert vocabulary.encode("a b") == [2, 3]
