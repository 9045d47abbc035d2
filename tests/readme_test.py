"""What the README says to type does what it says, on small data."""

import gzip
import pathlib
import re
import shlex
import subprocess

import gin
import pytest
from absl import flags

from mesh_tf2.data.builtin import corpus
from mesh_tf2.transformer import main

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# The commands as they stand, but for the size of everything.
SMALL = [
  "run.train_steps = 2",
  "run.log_steps = 1",
  "run.batch_size = 4",
  "num_layers = 1",
  "d_model = 16",
  "d_ff = 32",
  "d_kv = 4",
  "vocab_size = 120",
  "Bitransformer.decode.max_decode_length = 4",
]


def commands(name):
  """The indented commands of the README that begin with `name`."""
  text = re.sub(r"\\\n\s+", "", README)
  lines = re.findall(rf"^    ({name}\b.*)$", text, flags=re.MULTILINE)
  return [line.split(" #")[0].strip() for line in lines]


@pytest.fixture
def small_corpus(monkeypatch):
  sizes = {"train": 100, "validation": 5, "test": 5}
  monkeypatch.setattr(corpus, "SIZES", sizes)
  corpus._generate.cache_clear()
  yield corpus
  corpus._generate.cache_clear()


@pytest.fixture
def folder(tmp_path, small_corpus):
  """A folder that stands in for /tmp and /data."""
  data = tmp_path / "data" / "multi30k"
  data.mkdir(parents=True)
  names = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
  for split, name in names.items():
    for language in ("en", "de"):
      text = "".join(
        f"{line}\n" for line in small_corpus.sentences(split, language)
      )
      path = data / f"{name}.{language}.gz"
      path.write_bytes(gzip.compress(text.encode()))
  (tmp_path / "tmp").mkdir()
  (tmp_path / "tmp" / "lines.en").write_text("One.\n\nTwo books.\n")
  return tmp_path


def run(command, folder):
  text = command.replace("/tmp/", f"{folder}/tmp/")
  text = text.replace("/data/", f"{folder}/data/")
  arguments = shlex.split(text) + [f"--gin_param={p}" for p in SMALL]
  gin.clear_config()
  flags.FLAGS.unparse_flags()
  try:
    assert main._main(flags.FLAGS(arguments)) == 0
  finally:
    flags.FLAGS.unparse_flags()
    gin.clear_config()


def test_the_commands_of_the_readme_run(folder, capsys):
  found = commands("mesh_transformer")
  assert len(found) >= 4
  for command in found:
    run(command, folder)
  out = capsys.readouterr().out
  assert "BLEU" in out
  assert "exact matches" in out
  assert "per word" in out
  (answers,) = (folder / "tmp").glob("lines.de-*")
  lines = answers.read_text(encoding="utf-8").split("\n")
  assert len(lines) == 4
  assert lines[1] == ""


def test_the_program_of_the_readme_runs(tmp_path, capsys):
  (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
  exec(block.replace("/tmp/", f"{tmp_path}/"), {})
  out = capsys.readouterr().out
  losses = [float(line) for line in out.splitlines()[:3]]
  assert losses[2] < losses[0]
  assert "(16, 32)" in out
  assert (tmp_path / "mesh_tf2_readme" / "model.ckpt-3.index").exists()


def test_make_knows_the_targets_of_the_readme():
  for command in commands("make"):
    done = subprocess.run(
      [*command.split(), "--dry-run"],
      cwd=ROOT,
      capture_output=True,
      text=True,
      check=False,
    )
    assert done.returncode == 0, done.stderr


def test_files_that_the_readme_names_are_there():
  for name in re.findall(r"`([\w/]+\.(?:md|gin))`", README):
    places = [ROOT / name, ROOT / "configs" / name]
    assert any(place.exists() for place in places), name


def test_folders_that_the_map_of_the_house_names_are_there():
  text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
  for name in re.findall(
    r"`((?:mesh_tf2|transformer|data|configs)/[\w/.]+)`", text
  ):
    assert (ROOT / name).exists(), name
