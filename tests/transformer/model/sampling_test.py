"""Which tokens are left to choose among."""

import numpy as np
import pytest

from mesh_tf2.transformer.model.sampling import sample

from tests.support.running import run, tensor

ROW = [0.0, 2.0, 1.0, 2.0, -1.0, 3.0, 0.5, 1.0]
COUNT = 512


def _chosen(keep_top_k, layout, temperature=1.0):
  def build(mesh):
    logits = np.tile(np.array(ROW, np.float32), (COUNT, 1))
    return sample(
      tensor(mesh, f"batch:{COUNT} vocab:8", logits), temperature, keep_top_k
    )

  return set(run(build, "x:2", layout).value().tolist())


@pytest.mark.parametrize("layout", ["", "vocab:x"])
def test_the_likeliest_tokens_and_those_as_likely_are_kept(layout):
  assert _chosen(1, layout) == {5}
  assert _chosen(2, layout) == _chosen(3, layout) == {5, 1, 3}
  assert _chosen(4, layout) == {5, 1, 3, 2, 7}


@pytest.mark.parametrize("layout", ["", "vocab:x"])
def test_keeping_all_tokens_or_more_keeps_all(layout):
  for keep in (8, 9, 0, -1):
    assert _chosen(keep, layout) == set(range(8))


def test_without_temperature_the_likeliest_token_is_taken():
  assert _chosen(8, "vocab:x", temperature=0.0) == {5}
