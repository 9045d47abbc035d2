"""The command line: what it does, and what it says of mistakes."""

import os
import signal
import subprocess
import sys
import time

import gin
import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from mesh_tf2.checkpoint import Reader
from mesh_tf2.transformer import gin_files, main
from mesh_tf2.transformer.run import checkpoints

from tests.support import logs, small_runs

TINY_LM = """
utils.run.model_type = "lm"
utils.run.vocabulary = @vocabulary.ByteVocabulary()
utils.run.train_dataset_fn = @dataset.text_dataset
dataset.text_dataset.source = @dataset.TextLineFiles()
dataset.text_dataset.window = 16
dataset.text_dataset.shuffle_buffer_size = 20
dataset.TextLineFiles.files = {"train": "train.txt", "validation": "val.txt"}
dataset.TextLineFiles.data_dir = %data_dir
utils.run.sequence_length = {"targets": 32}
utils.run.batch_size = 4
utils.run.learning_rate_schedule = 0.01
utils.run.train_steps = 2
num_layers = 1
d_model = 16
d_ff = 32
num_heads = 4
d_kv = 4
"""


@pytest.fixture
def config(tmp_path):
  """A gin file in a folder that also has the data."""
  for name, seed, count in (("train", 0, 50), ("val", 1, 11)):
    lines = small_runs.sentences(count, seed)
    (tmp_path / f"{name}.txt").write_text("".join(f"{x}\n" for x in lines))
  path = tmp_path / "tiny_lm.gin"
  path.write_text(f'data_dir = "{tmp_path}"\n{TINY_LM}')
  return path


@pytest.fixture
def call(config):
  """Runs the command in this process; returns its exit code."""
  flags.FLAGS.mark_as_parsed()

  def run(*arguments, files=True):
    gin.clear_config()
    named = [f"--gin_file={config}", "--gin_file=layouts/single.gin"]
    with flagsaver.flagsaver():
      rest = flags.FLAGS(["mesh_transformer", *named * files, *arguments])
      return main._main(rest)

  with logs.kept():
    yield run
  gin.clear_config()


def param(text):
  return f"--gin_param={text}"


def test_a_model_is_trained_and_then_scored(call, tmp_path, capsys):
  folder = f"--model_dir={tmp_path / 'model'}"
  assert call(folder, param("run.autostack = False")) == 0
  told = capsys.readouterr().err
  assert (
    "run.autostack is without effect: variables are kept one by one" in told
  )
  assert "mesh [] (1 processor; runs on CPU:0), layout none, " in told
  assert "float32), batch 4 x (targets 32), seed 0" in told
  assert call(folder) == 0
  assert "step 2 is reached already" in capsys.readouterr().err
  assert call(folder, param("run.mode = 'perplexity_eval'")) == 0
  assert "per word; " in capsys.readouterr().out
  gin.clear_config()
  operative = str(tmp_path / "model/operative_config.gin")
  assert gin_files.parse_gin_defaults_and_flags([operative]) == []


def test_what_is_to_be_decoded_has_to_be_named(call, tmp_path, capsys):
  folder = f"--model_dir={tmp_path / 'model'}"
  infer = param("run.mode = 'infer'")
  names = [
    param(f"decode_from_file.{name}put_filename = '{tmp_path / name}'")
    for name in ("in", "out")
  ]
  (tmp_path / "in").write_text("one\n\ntwo")
  assert call(folder) == 0
  assert call(folder, infer) == 1
  told = capsys.readouterr().err
  assert "sets decode_from_file.input_filename, decode_from_fi" in told
  assert call(folder, infer, *names) == 0
  one, nothing, two = (tmp_path / "out-2").read_text().splitlines()
  assert one.startswith("one")
  assert nothing == ""
  assert two.startswith("two")


def test_training_and_evaluation_in_one_go(call, tmp_path, capsys):
  folder = f"--model_dir={tmp_path / 'model'}"
  assert call(folder, param("run.mode = 'train_eval'")) == 0
  assert (
    "eval, split 'validation', step 2: perplexity" in capsys.readouterr().out
  )


# Arguments, and what is said of them.
MISTAKES = [
  (["--gin_param=run.train_step = 3"], "did you mean 'train_steps'?"),
  (
    ["--gin_param=SelfAttentoin.num_heads = 3"],
    "did you mean 'SelfAttention'?",
  ),
  (["--gin_file=models/tyni.gin"], "did you mean 'models/tiny.gin'?"),
  (["--gin_param=run.mode = 'tarin'"], "no mode 'tarin'; take one of train"),
  (
    ["--gin_param=run.mode = 'perplexity'"],
    "there is no checkpoint in {folder}",
  ),
  (
    [
      "--gin_param=run.mesh_shape = 'model:2'",
      "--gin_param=run.mesh_devices = ['cpu:0']",
    ],
    "[model:2] has 2 processors, run.mesh_devices has 1 devices",
  ),
  (
    [
      "--gin_param=run.mesh_shape = 'model:3'",
      "--gin_param=run.layout_rules = 'heads:model'",
    ],
    "'heads'",
  ),
  (["--gin_param=run.batch_size = ('tokens_per_batch', 33)"], "a rest of 1"),
  (["--gin_param=data_dir = '/nowhere'"], "/nowhere/train.txt"),
  (["--tpu=mine"], "what is installed here runs no TPU; install mesh_tf2[tpu]"),
  (["--module_import=no.such"], "--module_import=no.such: there is no such"),
  (["models/tiny.gin"], "did you mean --gin_file=models/tiny.gin?"),
]


@pytest.mark.parametrize(
  ("arguments", "message"), MISTAKES, ids=[m for _, m in MISTAKES]
)
def test_a_mistake_is_a_short_message(
  call, tmp_path, capsys, arguments, message
):
  folder = tmp_path / "model"
  assert call(f"--model_dir={folder}", *arguments) == 1
  told = capsys.readouterr().err
  assert message.format(folder=folder) in told
  assert "mesh_transformer: " in told
  assert "Traceback" not in told
  assert "In call to configurable" not in told
  assert len(told.splitlines()) <= 5


def test_a_mistake_in_a_gin_file_names_the_line(call, config, capsys):
  config.write_text(config.read_text() + "\nutils.run.seeed = 1\n")
  assert call("--model_dir=unused") == 1
  line = len(config.read_text().splitlines())
  assert f"{config}, line {line}: utils.run has no p" in capsys.readouterr().err


def test_a_mesh_and_a_folder_have_to_be_named(call, config, capsys):
  assert call() == 1
  assert "name the folder with --model_dir" in capsys.readouterr().err
  alone = [f"--gin_file={config}", "--model_dir=unused"]
  assert call(*alone, files=False) == 1
  assert "--gin_file=layouts/single.gin" in capsys.readouterr().err


def test_a_fault_of_the_program_keeps_its_stack_trace(call, monkeypatch):
  monkeypatch.setattr(main.entry, "run", lambda **_: {}["absent"])
  with pytest.raises(KeyError, match="absent"):
    call("--model_dir=unused")


def tensors(path):
  reader = Reader(path)
  found = {}
  for name, (shape, dtype) in reader.inventory().items():
    zeros = [0] * len(shape)
    found[name] = reader.read(name, shape, zeros, shape, dtype).numpy()
  return found


class Command:
  """The command in a process of its own."""

  def __init__(self, config, folder):
    self.steps = checkpoints.Checkpoints(str(folder)).steps
    arguments = [
      f"--gin_file={config}",
      "--gin_file=layouts/virtual_2x4.gin",
      f"--model_dir={folder}",
      param("run.train_steps = 1000000"),
      param("run.save_checkpoints_steps = 2"),
      param("run.iterations_per_loop = 2"),
    ]
    environment = dict(os.environ)
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    self.process = subprocess.Popen(
      [sys.executable, "-m", "mesh_tf2.transformer.main", *arguments],
      stderr=subprocess.PIPE,
      text=True,
      env=environment,
    )

  def end(self, number, after):
    """Sends a signal when there is a checkpoint of that step."""
    while self.process.poll() is None and (self.steps() or [0])[-1] < after:
      time.sleep(0.05)
    self.process.send_signal(number)
    _, told = self.process.communicate(timeout=120)
    return self.process.returncode, told


def test_a_run_that_was_killed_goes_on_bit_for_bit(call, config, tmp_path):
  """Killed, resumed, ended by SIGTERM; against one run in this process."""
  folder = tmp_path / "killed"
  code, _ = Command(config, folder).end(signal.SIGKILL, after=4)
  assert code == -signal.SIGKILL
  kept = checkpoints.Checkpoints(str(folder)).steps()
  code, told = Command(config, folder).end(signal.SIGTERM, after=kept[-1] + 4)
  assert code == 0
  last = checkpoints.Checkpoints(str(folder)).steps()[-1]
  assert f"stopped by SIGTERM at step {last}" in told
  assert "Traceback" not in told
  # Nothing but what is ours to say.
  words = ("mesh [", "going on ", "step ", "saved ", "split ", "warning: ")
  assert all(line.startswith(words) for line in told.splitlines()), told
  whole = tmp_path / "whole"
  arguments = ["--gin_file=layouts/virtual_2x4.gin", f"--model_dir={whole}"]
  assert call(*arguments, param(f"run.train_steps = {last}")) == 0
  expected = tensors(whole / f"model.ckpt-{last}")
  found = tensors(folder / f"model.ckpt-{last}")
  assert expected.keys() == found.keys()
  for name, value in expected.items():
    np.testing.assert_array_equal(value, found[name], err_msg=name)
