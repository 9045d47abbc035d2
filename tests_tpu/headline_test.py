"""The paper's models on the paper's machine, compiled from their gin files.

The numbers to compare with are those of the same step of the language model
written by hand, without a mesh, as the program of one core.
"""

import resource

import gin
import pytest

from mesh_tf2.transformer import gin_files
from mesh_tf2.transformer.run import compile_ahead, entry
from mesh_tf2.transformer.run.settings import Mode

WIDTH, TOKENS = 1024, 16 * 256  # of one core: d_model, and batch x length
ACTIVATION = WIDTH * TOKENS * 2  # bytes, in bfloat16


@pytest.fixture
def compiled(monkeypatch, tmp_path):
  """From the name of a file in configs/compile to what the compiler says."""

  def compile_file(name, *params):
    found = []

    def compile_step(settings):
      topology = gin.query_parameter("utils.compile_step.topology")
      found.append(compile_ahead.compiled_step(settings, topology))

    monkeypatch.setitem(entry.MODES, Mode.COMPILE, compile_step)
    gin.clear_config()
    gin_files.parse_gin_defaults_and_flags(
      gin_files=[f"compile/{name}.gin"],
      gin_params=[f"utils.run.model_dir = '{tmp_path}'", *params],
    )
    entry.run()
    return found[0]

  yield compile_file
  gin.clear_config()


def sums(report, axis):
  """How many activations' worth of bytes are summed over a mesh axis."""
  (row,) = [c for c in report.collectives if c.mesh_dims == (axis,)]
  return row.bytes / ACTIVATION


def memory_of_this_process():
  """The most that it has had, in bytes."""
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_the_language_model_of_4_9_billion_parameters_on_512_cores(compiled):
  report = compiled("lm1b_k5")
  # By hand: 3.90e12 FLOPs, 0.76 GB of temporaries, 0.188 s.
  assert report.flops == pytest.approx(3.90e12, rel=0.05)
  assert report.temporary_bytes < 0.76e9 * 1.05
  assert report.optimal_seconds < 0.188 * 1.05
  assert report.fits
  check_what_is_sent(report, parameters=153.6e6)
  # Two a layer forward and two backward, the embedding, the softmax.
  assert sums(report, "model") == pytest.approx(6 * 4 + 2, abs=0.5)


def test_the_translation_model_of_2_9_billion_parameters_on_128_cores(compiled):
  report = compiled("wmt14_k4")
  assert report.fits
  check_what_is_sent(report, parameters=180.9e6)
  # Two a layer of the encoder and three of the decoder, forward and backward,
  # two embeddings, the softmax, and what the decoder's attention sends back.
  assert sums(report, "model") == pytest.approx(6 * 4 + 6 * 6 + 4, abs=0.5)


def check_what_is_sent(report, parameters):
  assert {c.kind for c in report.collectives} == {"all-reduce"}
  assert {c.mesh_dims for c in report.collectives} == {("batch",), ("model",)}
  (gradients,) = [c for c in report.collectives if c.mesh_dims == ("batch",)]
  assert gradients.bytes == pytest.approx(2 * parameters, rel=0.01)
  assert report.compile_seconds < 20 * 60
  assert memory_of_this_process() < 12 * 2**30
  print(report)
