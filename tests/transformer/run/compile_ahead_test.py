"""What is compiled of a run, and how it is printed."""

import gin
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import compile_ahead

from tests.support import small_runs


@pytest.fixture(autouse=True)
def tiny_model():
  small_runs.bind()
  yield
  gin.clear_config()


ROW = tf.TensorSpec([4, 32], tf.int32)


@pytest.mark.parametrize(
  ("model_type", "batch"),
  [
    ("lm", {"targets": ROW}),
    ("bitransformer", {"inputs": ROW, "targets": ROW}),
  ],
)
def test_a_batch_has_what_the_model_reads(tmp_path, model_type, batch):
  settings = small_runs.make_settings(tmp_path, model_type=model_type)
  assert compile_ahead.batch_spec(settings) == batch


def test_the_step_of_training_is_compiled_for_the_topology_and_printed(
  tmp_path, monkeypatch, capsys
):
  settings = small_runs.make_settings(tmp_path)
  called = []

  class Report:
    compile_seconds = 2.0

    def __str__(self):
      return "a table"

  def compile_(program, step, batch, topology):
    called.append((program.mesh_impl.shape, step.fn.__name__, batch, topology))
    return Report()

  monkeypatch.setattr(mtf.tpu, "compile", compile_)
  compile_ahead.compile_step(settings, topology="v2:2x2x1")
  mesh = mtf.convert_to_shape("batch:2;model:4")
  assert called == [(mesh, "train_step", {"targets": ROW}, "v2:2x2x1")]
  assert capsys.readouterr().out == "a table\n\ncompiled in 2 s\n"
