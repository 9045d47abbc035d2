"""From TFDS data sets on disk to a trained model, by the shipped configs."""

import gin
import pytest
from absl import flags

from mesh_tf2.transformer import main

from tests.support import tfds_builders

SMALL = [
  "run.train_steps = 2",
  "run.log_steps = 1",
  "run.batch_size = 4",
  'run.mode = "train_eval"',
  'run.dataset_split = "test"',
  "run.sequence_length = 24",
  "num_layers = 1",
  "d_model = 16",
  "d_ff = 32",
  "d_kv = 4",
  "vocab_size = 22",
  "Bitransformer.decode.max_decode_length = 4",
]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  folder = str(tmp_path_factory.mktemp("tfds"))
  tfds_builders.write(folder)
  return folder


def command(model, problem, model_dir, *params):
  """Runs `mesh_transformer` in this process; returns its exit code."""
  files = [model, "models/tiny.gin", problem, "layouts/virtual_2x4.gin"]
  gin.clear_config()
  flags.FLAGS.unparse_flags()
  try:
    return main._main(
      flags.FLAGS(
        [
          "mesh_transformer",
          f"--model_dir={model_dir}",
          *(f"--gin_file={name}" for name in files),
          *(f"--gin_param={p}" for p in (*SMALL, *params)),
        ]
      )
    )
  finally:
    flags.FLAGS.unparse_flags()
    gin.clear_config()


@pytest.mark.parametrize("name", ["wmt14_ende", "wmt14_enfr"])
def test_a_translation_model_trains_on_wmt14(name, data_dir, tmp_path, capsys):
  problem = f"problems/{name}.gin"
  params = [f"data_dir = {data_dir!r}"]
  assert command("models/bi_base.gin", problem, tmp_path, *params) == 0
  assert "BLEU" in capsys.readouterr().out
  assert (tmp_path / "model.ckpt-2.index").exists()


def test_a_language_model_trains_on_lm1b(data_dir, tmp_path, capsys):
  params = [f"data_dir = {data_dir!r}", "vocab_size = 19"]
  problem = "problems/lm1b.gin"
  assert command("models/lm_base.gin", problem, tmp_path, *params) == 0
  assert "per word" in capsys.readouterr().out


def test_a_data_set_that_is_not_there_is_said_how_to_prepare(tmp_path, capsys):
  params = [f"data_dir = {str(tmp_path)!r}"]
  problem = "problems/lm1b.gin"
  assert command("models/lm_base.gin", problem, tmp_path, *params) == 1
  message = capsys.readouterr().err
  assert "lm1b" in message
  assert "download_and_prepare" in message
  assert "Traceback" not in message
