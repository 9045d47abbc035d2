"""Gradients are clipped by their norm together, whatever the layout."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor

A = np.float32([[3.0, 0.0], [0.0, 0.0]])
B = np.float32([0.0, 4.0])
LAYOUTS = [("", ""), ("x:2", "a:x"), ("x:2;y:2", "a:x;b:y"), ("x:2", "b:x")]


def clipped(mesh, clip_norm):
  grads = [tensor(mesh, "a:2 b:2", A), None, tensor(mesh, "b:2", B)]
  got, norm = mtf.optimize.clip_by_global_norm(grads, clip_norm)
  assert got[1] is None
  return got[0], got[2], norm


@pytest.mark.parametrize(("mesh_shape", "layout"), LAYOUTS)
def test_a_large_norm_becomes_the_given_one(mesh_shape, layout):
  a, b, norm = run(lambda mesh: clipped(mesh, 1.0), mesh_shape, layout).values
  np.testing.assert_allclose(norm, 5.0)
  np.testing.assert_allclose(a, A / 5, rtol=1e-6)
  np.testing.assert_allclose(b, B / 5, rtol=1e-6)


def test_a_small_norm_stays():
  a, b, norm = run(lambda mesh: clipped(mesh, 7.0)).values
  np.testing.assert_allclose(norm, 5.0)
  np.testing.assert_array_equal(a, A)
  np.testing.assert_array_equal(b, B)


def test_it_agrees_with_tensorflow():
  want, norm = tf.clip_by_global_norm([A, B], 2.5)
  a, b, got_norm = run(lambda mesh: clipped(mesh, 2.5)).values
  np.testing.assert_allclose(got_norm, norm)
  np.testing.assert_allclose(a, want[0], rtol=1e-6)
  np.testing.assert_allclose(b, want[1], rtol=1e-6)


def test_narrow_gradients_are_summed_in_float32_and_stay_narrow():
  def build(mesh):
    x = mtf.ones(mesh, "a:1024", dtype=tf.bfloat16)
    (y,), norm = mtf.optimize.clip_by_global_norm([x], 16.0)
    assert y.dtype == tf.bfloat16
    assert norm.dtype == tf.float32
    return mtf.to_float(y), norm

  y, norm = run(build, "x:2", "a:x").values
  assert norm == 32.0
  np.testing.assert_array_equal(y, 0.5)


@pytest.mark.parametrize(("mesh_shape", "layout"), LAYOUTS)
def test_sums_that_are_still_to_be_taken_count_as_taken(mesh_shape, layout):
  def build(mesh):
    x = tensor(mesh, "a:2 b:2")
    (y,), norm = mtf.optimize.clip_by_global_norm(
      [mtf.reduce_sum(x, output_shape="b:2")], 1.0
    )
    return y, norm

  y, norm = run(build, mesh_shape, layout).values
  np.testing.assert_allclose(norm, 20**0.5, rtol=1e-6)
  np.testing.assert_allclose(y, np.float32([2, 4]) / 20**0.5, rtol=1e-6)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_no_gradient_is_a_number_if_the_norm_is_none(bad):
  def build(mesh):
    grads = [tensor(mesh, "a:2", [bad, 1]), tensor(mesh, "b:2", [1, 1])]
    (x, y), norm = mtf.optimize.clip_by_global_norm(grads, 1.0)
    return x, y, norm

  x, y, norm = run(build).values
  assert not np.isfinite(norm)
  assert np.isnan(x).all()
  assert np.isnan(y).all()


def test_a_norm_that_is_not_positive_is_an_error():
  w = mtf.ones(new_mesh(), "a:2")
  for norm in (0, -1.0, float("nan")):
    with pytest.raises(ValueError, match=f"clip_norm is {norm}; it has to be"):
      mtf.optimize.clip_by_global_norm([w], norm)


def test_no_gradient_at_all_is_an_error():
  with pytest.raises(ValueError, match="no tensor is given, only None"):
    mtf.optimize.clip_by_global_norm([None, None], 1.0)


def test_the_norm_to_clip_to_may_be_a_scalar_of_the_mesh():
  a, _, _ = run(lambda mesh: clipped(mesh, mtf.constant(mesh, 2.5))).values
  np.testing.assert_allclose(a, A / 2, rtol=1e-6)
