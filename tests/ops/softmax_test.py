"""Softmax and its relatives, where numbers are large or narrow."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

A = mtf.Dimension("a", 4)
PLACES = [("", "", "virtual"), *(("x:2", "a:x", kind) for kind in KINDS)]


@pytest.mark.parametrize("place", PLACES)
def test_large_logits_do_not_overflow(place):
  def build(mesh):
    x = tensor(mesh, "a:4", [1e4, 1e4, -1e4, -np.inf])
    return [
      mtf.softmax(x, A),
      mtf.log_softmax(x, A),
      mtf.reduce_logsumexp(x, A),
    ]

  y, log_y, total = run(build, *place).values
  np.testing.assert_allclose(y, [0.5, 0.5, 0, 0])
  np.testing.assert_allclose(log_y[:2], np.log([0.5, 0.5]), atol=1e-3)
  np.testing.assert_allclose(total, 1e4 + np.log(2), rtol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_the_sum_over_nothing_but_impossible_logits_is_impossible(place):
  def build(mesh):
    return mtf.reduce_logsumexp(tensor(mesh, "a:4", [-np.inf] * 4), A)

  assert run(build, *place).value() == -np.inf


@pytest.mark.parametrize("place", PLACES)
def test_bfloat16_is_computed_in_float32(place):
  logits = np.array([3.0, 2.0, 1.0, 0.5], np.float32)

  def build(mesh):
    x = tensor(mesh, "a:4", logits, tf.bfloat16)
    y = mtf.softmax(x, A)
    weights = tensor(mesh, "a:4", [1, 2, 3, 4], tf.bfloat16)
    return [y, *mtf.gradients([y], [x], [weights])]

  y, dx = (v.astype(np.float32) for v in run(build, *place).values)
  want = np.exp(logits) / np.exp(logits).sum()
  weights = np.array([1, 2, 3, 4])
  np.testing.assert_allclose(y, want, rtol=2**-8)
  gradient = want * (weights - np.sum(want * weights))
  np.testing.assert_allclose(dx, gradient, rtol=0.03)


def test_an_extra_logit_takes_its_share():
  def build(mesh):
    x = mtf.zeros(mesh, "a:4")
    return [mtf.softmax(x, A, extra_logit=0.0), mtf.softmax(x, A)]

  with_extra, without = run(build).values
  np.testing.assert_allclose(with_extra, [0.2] * 4)
  np.testing.assert_allclose(without, [0.25] * 4)


def test_a_split_softmax_sends_the_maximum_and_the_sum_only():
  split = run(
    lambda mesh: mtf.softmax(tensor(mesh, "b:2 a:4"), A), "x:2", "a:x"
  )
  sent = [(c.kind, c.elements) for _, c in split.lowering.collectives]
  assert sent == [("allreduce", 2), ("allreduce", 2)]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "reduce_logsumexp"])
@pytest.mark.parametrize("dtype", ["int32", "int8", "bool"])
def test_what_is_no_float_is_refused(name, dtype):
  x = mtf.cast(tensor(new_mesh(), "a:4"), dtype)
  want = f"{name} takes real floating numbers, got {dtype}; cast it first"
  with pytest.raises(ValueError, match=want):
    getattr(mtf, name)(x, A)
