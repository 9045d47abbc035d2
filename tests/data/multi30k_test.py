"""Real captions: padding stays low, nothing is lost."""

import os
import pathlib

import pytest

from mesh_tf2.data.sentencepiece_vocabulary import SentencePieceVocabulary
from mesh_tf2.data.text_dataset import text_dataset
from mesh_tf2.data.text_pair import TextPairFiles
from mesh_tf2.data.text_source import plain_text
from mesh_tf2.data.train_sentencepiece import train_sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(
  os.environ.get("MULTI30K_DIR", ROOT.parent / "shared/data/multi30k")
)
pytestmark = pytest.mark.skipif(
  not (FOLDER / "train.en.gz").exists(),
  reason=f"needs Multi30k: no train.en.gz in {FOLDER}; set MULTI30K_DIR",
)
FILES = {
  "train": ("train.en.gz", "train.de.gz"),
  "test": ("test_2016_flickr.en.gz", "test_2016_flickr.de.gz"),
}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
  prefix = tmp_path_factory.mktemp("model") / "joint"
  files = [str(FOLDER / name) for name in FILES["train"]]
  return SentencePieceVocabulary(train_sentencepiece(files, str(prefix), 8000))


@pytest.mark.parametrize("length", [64, 256])
def test_less_than_a_twentieth_of_packed_rows_is_padding(vocabulary, length):
  reports = []
  rows = text_dataset(
    "train",
    {"inputs": length, "targets": length},
    vocabulary,
    source=TextPairFiles(FILES, str(FOLDER)),
    on_pass=reports.append,
  )
  examples = used = slots = 0
  for row in rows.as_numpy_iterator():
    examples += row["targets_segmentation"].max()
    for key in ("inputs", "targets"):
      used += (row[f"{key}_segmentation"] > 0).sum()
      slots += length
    if examples == 29000:
      break
    assert examples < 29000  # a row never holds examples of two passes
  assert 1 - used / slots < 0.05
  assert next(iter(reports)).examples == 29000


def test_the_test_split_has_a_thousand_pairs_that_survive_encoding(vocabulary):
  pairs = plain_text(TextPairFiles(FILES, str(FOLDER)), "test")
  assert len(pairs) == 1000
  for texts in zip(*pairs, strict=True):
    for text, ids in zip(texts, vocabulary.encode_batch(texts), strict=True):
      if vocabulary.unk_id not in ids:
        plain = " ".join(text.split())
        assert vocabulary.decode(ids) == plain
