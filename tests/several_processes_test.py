"""Four processes that run one program: the same losses, and what may befall."""

import json

import gin
import numpy as np
import pytest

from mesh_tf2.checkpoint import Reader
from mesh_tf2.transformer.run import loop, train

from tests.support import several
from tests.support.meshes import mirrored

STEPS = 20


@pytest.fixture(scope="module", autouse=True)
def clean_gin():
  yield
  gin.clear_config()


def losses_here(folder, monkeypatch, steps=STEPS, **where):
  """Trains in this process; returns the loss of each step."""
  losses = []
  run = loop.StepLoop.run

  def noted(self, iterator, step, stops):
    metrics = run(self, iterator, step, stops)
    losses.extend(map(float, metrics["loss"]))
    return metrics

  with monkeypatch.context() as patch:
    patch.setattr(loop.StepLoop, "run", noted)
    train.train(several.settings(folder, steps, **where))
  return losses


@pytest.fixture(scope="module")
def of_four(tmp_path_factory):
  """The folder of a model that four processes have trained."""
  folder = tmp_path_factory.mktemp("four")
  codes, errors = several.Workers(folder, STEPS).wait()
  assert set(codes.values()) == {0}, errors
  return folder


def test_all_meshes_have_the_same_losses(of_four, tmp_path, monkeypatch):
  every = [
    json.loads((of_four / f"losses-{STEPS}-{n}.json").read_text())
    for n in range(4)
  ]
  assert every[1:] == every[:1] * 3
  wanted = losses_here(tmp_path / "virtual", monkeypatch)
  assert len(wanted) == STEPS
  assert wanted[-1] < wanted[0]
  for name, where in {
    "one": {"mesh": "", "layout": ""},
    "placement": {"devices": [""] * 4},
    "mirrored": {"strategy": mirrored(4)},
  }.items():
    got = losses_here(tmp_path / name, monkeypatch, **where)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=name)
  np.testing.assert_allclose(every[0], wanted, rtol=1e-5)


def test_another_mesh_goes_on_from_their_checkpoint(
  of_four, tmp_path, monkeypatch
):
  wanted = losses_here(tmp_path, monkeypatch, steps=STEPS + 2)[-2:]
  for where in ({"devices": [""] * 4}, {"strategy": mirrored(4)}):
    for path in of_four.glob(f"model.ckpt-{STEPS + 2}*"):
      path.unlink()
    got = losses_here(of_four, monkeypatch, steps=STEPS + 2, **where)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_each_has_written_its_slices_and_nothing_is_left_of_them(of_four):
  assert not list(of_four.glob("*part*"))
  reader = Reader(str(of_four / f"model.ckpt-{STEPS}"))
  reader.verify(True)
  assert "shared/embedding" in reader.inventory()
