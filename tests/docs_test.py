"""What the pages on machines say to type runs here, without their machines."""

import gzip
import pathlib
import re
import shlex

import gin
import pytest
import tensorflow as tf
from absl import flags

from mesh_tf2.data.builtin import corpus
from mesh_tf2.transformer import main

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["clusters.md", "cloud_tpu.md"]

# The commands as they stand, but for the size of everything.
SMALL = [
  "run.train_steps = 2",
  "run.log_steps = 1",
  "run.batch_size = 8",
  "num_layers = 1",
  "d_model = 16",
  "d_ff = 32",
  "d_kv = 4",
  "vocab_size = 120",
  "Bitransformer.decode.max_decode_length = 4",
]


def commands(page):
  """The indented commands of a page that train, evaluate or decode."""
  text = (ROOT / "docs" / page).read_text(encoding="utf-8")
  text = re.sub(r"\\\n\s+", "", text)
  return re.findall(r"^    (mesh_transformer\b.*)$", text, flags=re.MULTILINE)


@pytest.fixture
def bucket(monkeypatch):
  """Files in memory stand for a bucket, and for a file system of machines."""
  monkeypatch.setattr(
    corpus, "SIZES", {"train": 100, "validation": 5, "test": 5}
  )
  corpus._generate.cache_clear()
  root = "ram://my-bucket"
  names = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
  for split, name in names.items():
    for language in ("en", "de"):
      lines = corpus.sentences(split, language)
      text = "".join(f"{line}\n" for line in lines)
      write(f"{root}/{name}.{language}.gz", gzip.compress(text.encode()))
  write(f"{root}/lines.en", b"One.\n\nTwo books.\n")
  yield root
  corpus._generate.cache_clear()
  tf.io.gfile.rmtree(root)


def write(path, content):
  tf.io.gfile.makedirs(path.rpartition("/")[0])
  with tf.io.gfile.GFile(path, "wb") as file:
    file.write(content)


def run(command, bucket):
  text = re.sub(r"--tpu=\S+ ", "", command)
  text = re.sub(r"\$BUCKET/multi30k|/(data|shared)/multi30k", bucket, text)
  text = re.sub(r"\$BUCKET|/shared|(?<==)(?=/models)", bucket, text)
  small = [f"--gin_param={p}" for p in SMALL]
  gin.clear_config()
  flags.FLAGS.unparse_flags()
  try:
    assert main._main(flags.FLAGS(shlex.split(text) + small)) == 0
  finally:
    flags.FLAGS.unparse_flags()
    gin.clear_config()


def test_the_page_on_tpus_trains_evaluates_and_decodes_in_a_bucket(
  bucket, capsys
):
  train, evaluate, decode, pod = commands("cloud_tpu.md")
  for command in (train, evaluate, decode):
    run(command, bucket)
  assert "BLEU" in capsys.readouterr().out
  with tf.io.gfile.GFile(f"{bucket}/lines.de-2") as file:
    lines = file.read().split("\n")
  assert len(lines) == 4
  assert lines[1] == ""
  assert "batch:8;model:4" in pod


def test_the_page_on_gpus_trains_and_evaluates_what_several_machines_share(
  bucket, capsys
):
  single, several, evaluate = commands("clusters.md")
  assert single != several
  run(several, bucket)
  run(evaluate, bucket)
  assert "BLEU" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES)
def test_every_name_of_the_language_on_a_page_is_there(page):
  import mesh_tf2 as mtf

  text = (ROOT / "docs" / page).read_text(encoding="utf-8")
  for name in re.findall(r"`mtf\.([\w.]+)`", text):
    found = mtf
    for part in name.split("."):
      found = getattr(found, part)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_at_its_top_what_has_been_run_and_what_has_not(page):
  top = (ROOT / "docs" / page).read_text(encoding="utf-8")[:800]
  assert "What has been run." in top
  assert "What has not been run:" in top
