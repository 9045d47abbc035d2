"""Correlations against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running
from tests.support.meshes import PLACEMENT, VIRTUAL

B = mtf.Dimension("batch", 4)
L = mtf.Dimension("length", 3)
C = mtf.Dimension("channels", 6)
X = np.random.default_rng(0).normal(size=[4, 6, 3]).astype(np.float32) + 2


@pytest.mark.parametrize(
  ("kind", "mesh", "layout"),
  [
    (VIRTUAL, "", ""),
    (VIRTUAL, "a:2;b:2", "batch:a;channels:b"),
    (PLACEMENT, "a:2", "channels_1:a"),
  ],
)
def test_features_correlate_over_all_observations(kind, mesh, layout):
  def build(mesh):
    x = running.tensor(mesh, [B, C, L], X)
    y = mtf.layers.corr(x, C)
    assert y.shape == mtf.convert_to_shape("channels_1:6 channels_2:6")
    return [y, *mtf.gradients([y], [x])]

  y, dx = running.run(build, mesh, layout, kind).values
  wanted = np.corrcoef(X.transpose(1, 0, 2).reshape(6, 12))
  np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(
    dx, running.run(build).value(1), rtol=1e-3, atol=1e-5
  )


def test_what_never_changes_correlates_with_nothing():
  def build(mesh):
    return mtf.layers.corr(mtf.ones(mesh, [B, C], tf.bfloat16), C)

  y = running.run(build).value()
  np.testing.assert_array_equal(y.astype(np.float32), np.zeros([6, 6]))
