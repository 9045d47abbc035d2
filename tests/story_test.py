"""The whole story of a model: trained, killed, resumed, resharded, decoded.

A model is trained on eight processors that split the batch. From its checkpoint
it goes on on other meshes, which give the same loss and take the same step.
"""

import gin
import numpy as np
import pytest

import mesh_tf2 as mtf
from mesh_tf2.checkpoint import Reader
from mesh_tf2.transformer.run import (
  checkpoints,
  context,
  decoding,
  evaluation_data,
  scoring,
  train,
  train_step,
  training_data,
)

from tests.support import small_runs
from tests.support.meshes import mirrored

MESHES = {
  "as trained": {"mesh": "batch:8", "layout": "batch:batch"},
  "two by four": {"mesh": "batch:2;model:4"},
  "one processor": {"mesh": "", "layout": ""},
  "placement": {
    "mesh": "model:2",
    "layout": "vocab:model;d_ff:model;heads:model",
    "devices": [""] * 2,
  },
  "mirrored": {"mesh": "batch:2;model:2", "replicas": 4},
}
STEPS = 30


def settings(folder, mesh="as trained", steps=STEPS):
  where = dict(MESHES[mesh])
  if "replicas" in where:
    where["strategy"] = mirrored(where.pop("replicas"))
  return small_runs.make_settings(
    folder,
    model_type="bitransformer",
    batch_size=8,
    steps=steps,
    total_steps=STEPS,
    optimizer=mtf.optimize.AdafactorOptimizer,
    **where,
  )


@pytest.fixture(scope="module", autouse=True)
def tiny_model():
  small_runs.bind("dropout_rate = 0.1")
  yield
  gin.clear_config()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
  """The prefix of the checkpoint of a run that was stopped halfway."""
  folder = tmp_path_factory.mktemp("model")
  train.train(settings(folder, steps=STEPS // 2))
  train.train(settings(folder))
  return str(folder / f"model.ckpt-{STEPS}")


def restored(checkpoint, mesh):
  made = context.prepare(settings("unused", mesh))
  made.program.restore(checkpoint)
  return made


def loss_and_texts(made):
  """The loss of the validation split, and what the model makes of it."""
  (task,) = evaluation_data.evaluation_tasks(made.settings)
  row = made.settings.sequence_length
  score = scoring.Scorer(made, task.dataset_fn(sequence_length=row)).score()
  decoder = decoding.Decoder(made)
  texts = decoder.decode(decoder.encode(small_runs.sentences(11, seed=1)))
  return score.neg_log_likelihood / score.tokens, texts


def next_step(made, checkpoint):
  """The loss of the next step, and all variables after it."""
  data = training_data.TrainingData(made.settings, int(made.program.seed))
  checkpoints.restore_run(checkpoint, data)
  metrics = train_step.make_train_step(made)(next(data.iterator))
  data.close()
  variables = {n: v.numpy() for n, v in made.program.variables.items()}
  return float(metrics["loss"]), variables


@pytest.fixture(scope="module")
def as_trained(checkpoint):
  """What comes next on the mesh on which the model was trained."""
  made = restored(checkpoint, "as trained")
  return *loss_and_texts(made), *next_step(made, checkpoint)


def test_a_run_that_was_stopped_ends_like_one_that_was_not(
  checkpoint, tmp_path
):
  train.train(settings(tmp_path))
  stopped = Reader(checkpoint)
  whole = Reader(str(tmp_path / f"model.ckpt-{STEPS}"))
  assert stopped.inventory() == whole.inventory()
  for name, (shape, dtype) in whole.inventory().items():
    args = (name, shape, [0] * len(shape), shape, dtype)
    np.testing.assert_array_equal(
      stopped.read(*args), whole.read(*args), err_msg=name
    )


def test_the_model_has_learned(as_trained):
  loss, texts, _, _ = as_trained
  assert loss < 0.7 * np.log(256)
  assert len(texts) == 11


@pytest.mark.parametrize("mesh", list(MESHES)[1:])
def test_another_mesh_gives_the_same_loss_texts_and_next_step(
  checkpoint, as_trained, mesh
):
  loss, texts, step_loss, variables = as_trained
  made = restored(checkpoint, mesh)
  found_loss, found_texts = loss_and_texts(made)
  assert found_loss == pytest.approx(loss, rel=1e-5)
  assert found_texts == texts
  found_step_loss, found_variables = next_step(made, checkpoint)
  assert found_step_loss == pytest.approx(step_loss, rel=1e-5)
  assert found_variables.keys() == variables.keys()
  for name, value in variables.items():
    np.testing.assert_allclose(
      found_variables[name], value, rtol=1e-4, atol=1e-5, err_msg=name
    )
