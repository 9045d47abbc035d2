"""Four processes that run one program: the same losses, and what may befall."""

import json
import time

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


def losses_of(folder, steps, count=4):
  return [
    json.loads((folder / f"losses-{steps}-{n}.json").read_text())
    for n in range(count)
  ]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
  """The folder of a run of which one process was killed, and what was said."""
  folder = tmp_path_factory.mktemp("four")
  die_at = {2: several.SAVE_STEPS + 3}
  codes, errors = several.Workers(folder, STEPS + 1, die_at=die_at).wait()
  return folder, codes, errors


@pytest.fixture(scope="module")
def of_four(killed):
  """The folder of a model that four processes have trained."""
  folder, _, _ = killed
  codes, errors = several.Workers(folder, STEPS).wait()
  assert set(codes.values()) == {0}, errors
  return folder


def test_when_one_is_killed_the_others_end_and_say_which(killed):
  _, codes, errors = killed
  assert codes == {0: 1, 1: 1, 2: -9, 3: 1}
  told = "".join(errors[n] for n in (0, 1, 3))
  assert "worker 2 does not answer any more" in told
  assert told.count("does not answer any more") == 3
  assert "Traceback" not in told


def test_all_meshes_have_the_same_losses_and_so_has_a_run_that_was_killed(
  killed, of_four, tmp_path, monkeypatch
):
  before, after = losses_of(of_four, STEPS + 1, 2), losses_of(of_four, STEPS)
  assert after[1:] == after[:1] * 3
  four = before[0][: several.SAVE_STEPS] + after[0]
  wanted = losses_here(tmp_path / "virtual", monkeypatch)
  assert len(wanted) == STEPS
  assert wanted[-1] < wanted[0]
  np.testing.assert_allclose(four, wanted, rtol=1e-5)
  # What was done of these steps before the end is done again, bit for bit.
  again = before[0][several.SAVE_STEPS :]
  assert again == after[0][: len(again)]
  for name, where in {
    "one": {"mesh": "", "layout": ""},
    "placement": {"devices": [""] * 4},
    "mirrored": {"strategy": mirrored(4)},
  }.items():
    got = losses_here(tmp_path / name, monkeypatch, **where)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=name)


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


def test_when_one_is_told_to_stop_all_save_and_stop(tmp_path):
  workers = several.Workers(tmp_path, 100_000, mesh="batch:2")
  first = tmp_path / f"model.ckpt-{several.SAVE_STEPS}.index"
  end = time.monotonic() + 100
  while not first.exists() and time.monotonic() < end:
    time.sleep(0.1)
  workers.signal(1)
  codes, errors = workers.wait(60)
  assert set(codes.values()) == {0}, errors
  ended = len(losses_of(tmp_path, 100_000, count=2)[0])
  assert (tmp_path / f"model.ckpt-{ended}.index").exists()
  assert "stopped by SIGTERM" in errors[1]
  assert "stopped by another process" in errors[0]


def test_one_that_never_comes_is_named_and_not_waited_for_forever(tmp_path):
  workers = several.Workers(
    tmp_path, STEPS, mesh="batch:2", absent=[1], timeout=5
  )
  codes, errors = workers.wait(60)
  assert codes == {0: 1}
  assert "worker 0 has waited 5 seconds for worker 1 (127.0.0.1:" in errors[0]
