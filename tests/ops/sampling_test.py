"""Choices at random: their distribution, their independence, their layout."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd import random_bits

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

A = mtf.Dimension("a", 4)
COUNT = 1 << 15
FAR = 5.3 / np.sqrt(COUNT)  # passed once in ten million times
LOGITS = np.log([0.5, 0.25, 0.15, 0.1]).astype(np.float32)


def _softmax(x):
  e = np.exp(x - np.max(x))
  return e / e.sum()


@pytest.mark.parametrize("shift", [0.0, 50.0, -1e4])
def test_choices_follow_the_softmax_of_the_logits(shift):
  def build(mesh):
    x = tensor(mesh, "a:4", LOGITS + np.float32(shift))
    return mtf.categorical(x, A, [("n", COUNT)])

  chosen = run(build).value()
  got = np.bincount(chosen, minlength=4) / COUNT
  want = _softmax(LOGITS + np.float32(shift))
  np.testing.assert_allclose(got, want, atol=FAR)
  assert abs(np.corrcoef(chosen[:-1], chosen[1:])[0, 1]) < FAR


def test_rare_choices_among_many_are_as_frequent_as_they_ought_to_be():
  # 2048 choices of equal probability beside one of one half: a coarse noise
  # would favour some of them.
  many = mtf.Dimension("m", 2049)
  logits = np.zeros(2049, np.float32)
  logits[0] = np.log(2048)

  def build(mesh):
    return mtf.categorical(tensor(mesh, "m:2049", logits), many, "n:8192")

  chosen = run(build).value()
  assert abs(np.mean(chosen == 0) - 0.5) < 5.3 / 2 / np.sqrt(8192)
  others = chosen[chosen > 0]
  assert abs(others.mean() / 1024.5 - 1) < 5.3 / np.sqrt(3 * len(others))
  counts = np.bincount(others, minlength=2049)[1:]
  expected = len(others) / 2048
  chi_squared = np.sum((counts - expected) ** 2 / expected)
  assert abs(chi_squared - 2047) < 5.3 * np.sqrt(2 * 2047)


def test_choices_along_further_dimensions_are_independent():
  def build(mesh):
    x = mtf.broadcast(tensor(mesh, "a:4", LOGITS), "r:2 a:4")
    return mtf.categorical(x, A, "r:2 n:16384")

  first, second = run(build).value()
  assert abs(np.corrcoef(first, second)[0, 1]) < 5.3 / np.sqrt(16384)


def test_a_choice_is_that_of_a_sample_at_temperature_one():
  def choose(fn):
    def build(mesh):
      return fn(mtf.broadcast(tensor(mesh, "a:4", LOGITS), "n:512 a:4"), A)

    return run(build, "x:2;y:2", "a:x;n:y").value()

  one = choose(mtf.sample_with_temperature)
  np.testing.assert_array_equal(choose(mtf.categorical), one)
  assert set(one) == {0, 1, 2, 3}


@pytest.mark.parametrize("kind", KINDS)
def test_no_layout_changes_a_choice_and_no_noise_is_sent(kind):
  def build(mesh):
    x = mtf.broadcast(tensor(mesh, "a:4", LOGITS), "n:64 a:4")
    return mtf.categorical(x, A, "n:64 m:4")

  want = run(build).value()
  for layout, sent in (("n:x;m:y", []), ("a:x;n:y", ["allreduce"] * 2)):
    split = run(build, "x:2;y:2", layout, kind)
    np.testing.assert_array_equal(split.value(), want)
    assert split.kinds == sent


def test_what_is_impossible_is_never_chosen():
  inf = float("inf")

  def build(mesh):
    x = tensor(mesh, "a:4", [-inf, 0, -inf, -3e38])
    return mtf.categorical(x, A, "n:512")

  assert set(run(build, "x:2", "a:x").value()) == {1}


def test_a_logit_that_is_not_a_number_shows():
  def build(mesh):
    x = tensor(mesh, "a:4", [0, 1, float("nan"), 9])
    return mtf.categorical(x, A, "n:8")

  assert set(run(build, "x:2", "a:x").value()) == {2}


def test_a_tiny_temperature_is_as_good_as_none():
  def build(mesh):
    x = mtf.broadcast(tensor(mesh, "a:4", [3, 9, 8.5, 1]), "n:64 a:4")
    return mtf.sample_with_temperature(x, A, 1e-38)

  assert set(run(build).value()) == {1}


def test_gumbel_numbers_have_the_gumbel_distribution():
  key = random_bits.fold(tf.constant(0, tf.uint64), 5)
  index = tf.cast(tf.range(1 << 18, dtype=tf.int64), tf.uint64)
  g = random_bits.gumbel(random_bits.bits(key, index)).numpy()
  far = 5.3 / np.sqrt(1 << 18)
  assert abs(g.mean() - np.euler_gamma) < far * np.pi / np.sqrt(6)
  for p in (0.001, 0.1, 0.5, 0.9, 0.999):
    below = np.mean(g < -np.log(-np.log(p)))
    assert abs(below - p) < far * np.sqrt(p * (1 - p)) + 1e-6
  # The largest of 2^18 is far out, and no number comes up too often.
  assert 8 < g.max() < 23
  assert len(np.unique(g)) > 0.98 * len(g)


def test_mistakes_of_a_choice_are_named():
  x = tensor(new_mesh(), "r:2 a:4")
  with pytest.raises(
    ValueError, match=r"categorical along a:4 .* must have \[r:2\] and not a:4"
  ):
    mtf.categorical(x, A, "n:3")
  with pytest.raises(ValueError, match=r"output_shape=\[r:2 a:4\]"):
    mtf.categorical(x, A, "r:2 a:4")
  with pytest.raises(ValueError, match="has no dimension b:8"):
    mtf.categorical(x, mtf.Dimension("b", 8))
