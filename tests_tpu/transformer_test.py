"""Training and decoding of a Transformer as TPU cores do it."""

import gin
import numpy as np
import pytest

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import train_step
from tests_tpu.cores import check, check_function, collectives

from tests.support import small_runs, tiny_models

IDS = np.random.default_rng(0).integers(2, 11, size=[4, 6], dtype=np.int32)
LAYOUT = "batch:rows;vocab:cols;d_ff:cols;heads:cols"


@pytest.fixture
def tiny_model():
  small_runs.bind()
  yield
  gin.clear_config()


def _packed(with_inputs):
  rng = np.random.default_rng(3)
  names = ["inputs", "targets"] if with_inputs else ["targets"]
  features = {}
  for name in names:
    features[name] = rng.integers(3, 200, size=[4, 32], dtype=np.int32)
    features[name][1, 20:] = 0
    places = np.tile(np.arange(32, dtype=np.int32), (4, 1))
    features[f"{name}_position"] = places % 16
    segments = places // 16 + 1
    features[f"{name}_segmentation"] = segments * (features[name] > 0)
  return features


@pytest.mark.usefixtures("tiny_model")
@pytest.mark.parametrize("model_type", ["lm", "bitransformer"])
def test_a_step_of_training_with_adafactor(tmp_path, model_type):
  context = small_runs.make_context(
    tmp_path, model_type=model_type, optimizer=mtf.optimize.AdafactorOptimizer
  )
  core = check_function(
    train_step.make_train_step(context), _packed(model_type != "lm")
  )
  assert all(x.shape is not None for x in core.inputs)
  assert collectives(core) == {"all-reduce"}
  assert len(core.assigned) > len(core.variables) / 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_decoding_token_by_token(temperature):
  def decode(mesh, ids):
    model = tiny_models.language_model()
    ids = mtf.import_tf_tensor(mesh, ids, "batch:4 length:6")
    return model.sample_autoregressive(ids, temperature=temperature)

  prompts = IDS * (np.arange(6) < 2)
  check(decode, prompts.astype(np.int32), layout=LAYOUT)


def test_a_beam_search_of_a_translation():
  def decode(mesh, ids):
    model = tiny_models.encoder_decoder()
    ids = mtf.import_tf_tensor(mesh, ids, "batch:4 length:6")
    return model.decode(ids, beam_size=2)

  check(decode, IDS, layout=LAYOUT)
