"""The random numbers look random, and depend on nothing but key and place."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd import random_bits

from tests.support.meshes import KINDS, setting
from tests.support.running import Run, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNT = 1 << 18


def _key(*values):
  key = tf.constant(0, tf.uint64)
  for v in values:
    key = random_bits.fold(key, v)
  return key


def _bits(*key, count=COUNT):
  index = tf.cast(tf.range(count, dtype=tf.int64), tf.uint64)
  return random_bits.bits(_key(*key), index)


def _correlation(x, y):
  return np.corrcoef(x.ravel(), y.ravel())[0, 1]


# A mean over COUNT independent numbers of variance 1 is off by more than this
# once in ten million times.
FAR = 5.3 / np.sqrt(COUNT)


def test_bits_are_those_of_splitmix64():
  # The first outputs of the reference implementation from the state 1234567.
  known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
  index = tf.constant([0, 1, 2], tf.uint64)
  got = random_bits.bits(tf.constant(1234567, tf.uint64), index)
  assert got.numpy().tolist() == known


def test_every_bit_is_set_half_of_the_time():
  bits = _bits(1).numpy()
  for place in range(64):
    share = np.mean((bits >> np.uint64(place)) & np.uint64(1))
    assert abs(share - 0.5) < FAR / 2, place


def test_uniform_numbers_are_even_and_in_their_range():
  u = random_bits.uniform(_bits(2)).numpy().astype(np.float64)
  assert u.min() >= 0
  assert u.max() < 1
  assert abs(u.mean() - 0.5) < FAR * np.sqrt(1 / 12)
  counts, _ = np.histogram(u, 256, (0, 1))
  expected = COUNT / 256
  chi_squared = np.sum((counts - expected) ** 2) / expected
  # 255 degrees of freedom: mean 255, standard deviation 22.6.
  assert abs(chi_squared - 255) < 5.3 * 22.6


def test_normal_numbers_have_the_moments_of_the_normal_distribution():
  z = random_bits.normal(_bits(3)).numpy().astype(np.float64)
  assert abs(z.mean()) < FAR
  assert abs(z.var() - 1) < FAR * np.sqrt(2)
  assert abs(np.mean(z**3)) < FAR * np.sqrt(15)
  assert abs(np.mean(z**4) - 3) < FAR * np.sqrt(96)
  assert 4 < np.abs(z).max() < 6.5


def test_normal_numbers_are_distributed_normally():
  z = np.sort(random_bits.normal(_bits(4)).numpy())
  grid = np.linspace(-3, 3, 61)
  ours = np.searchsorted(z, grid) / COUNT
  normal = 0.5 * (1 + tf.math.erf(grid / np.sqrt(2)).numpy())
  # Kolmogorov and Smirnov: larger than 2.7 / sqrt(n) once in a million times.
  assert np.abs(ours - normal).max() < 2.7 / np.sqrt(COUNT)


@pytest.mark.parametrize("cut", [1.0, 2.0])
def test_truncated_numbers_stay_within_the_cut_and_keep_their_shape(cut):
  z = random_bits.normal(_bits(5), cut).numpy().astype(np.float64)
  assert np.abs(z).max() <= cut + 1e-5
  density = np.exp(-cut * cut / 2) / np.sqrt(2 * np.pi)
  kept = tf.math.erf(cut / np.sqrt(2)).numpy()
  variance = 1 - 2 * cut * density / kept
  assert abs(z.mean()) < FAR
  assert abs(z.var() - variance) < FAR * np.sqrt(2)


def test_neighbouring_positions_are_independent():
  u = random_bits.uniform(_bits(6)).numpy().astype(np.float64)
  for lag in (1, 2, 3, 64, 1024):
    assert abs(_correlation(u[:-lag], u[lag:])) < FAR * 1.1, lag


@pytest.mark.parametrize(
  ("one", "other"),
  [((7, 0), (8, 0)), ((7, 0), (7, 1)), ((7, 1), (1, 7)), ((0,), (0, 0))],
)
def test_neighbouring_seeds_steps_and_streams_are_independent(one, other):
  x = random_bits.uniform(_bits(*one)).numpy().astype(np.float64)
  y = random_bits.uniform(_bits(*other)).numpy().astype(np.float64)
  assert abs(_correlation(x, y)) < FAR
  # Nor is one the other, shifted.
  for lag in (1, 2, 7):
    assert abs(_correlation(x[lag:], y[:-lag])) < FAR * 1.1


def test_a_key_may_be_a_tensor():
  assert random_bits.fold(_key(1), tf.constant(5)) == _key(1, 5)
  assert _key(-1) != _key(1)


def test_integers_cover_their_range_evenly():
  result = run(
    lambda mesh: mtf.random_uniform(mesh, [("a", COUNT)], -3, 5, dtype=tf.int32)
  )
  values, counts = np.unique(result.value(), return_counts=True)
  assert values.tolist() == list(range(-3, 5))
  assert np.abs(counts / COUNT - 1 / 8).max() < FAR * np.sqrt(7) / 8


def test_integers_need_an_upper_bound():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  with pytest.raises(ValueError, match="random_uniform of integers needs maxv"):
    mtf.random_uniform(mesh, "a:4", dtype=tf.int32)


def test_two_operations_draw_different_numbers():
  def build(mesh):
    return [mtf.random_uniform(mesh, "a:64") for _ in range(2)]

  x, y = run(build).values
  assert not np.any(x == y)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate):
  def build(mesh):
    return mtf.dropout(mtf.ones(mesh, [("a", COUNT)]), True, rate=rate)

  y = run(build).value()
  deviation = np.sqrt(rate * (1 - rate))
  assert abs(np.mean(y == 0) - rate) < FAR * deviation
  np.testing.assert_allclose(y[y != 0], 1 / (1 - rate), rtol=1e-6)


def test_dropout_shares_decisions_along_the_other_dimensions():
  def build(mesh):
    x = mtf.ones(mesh, "a:64 b:8")
    return mtf.dropout(x, True, 0.5, noise_shape="a:64")

  y = run(build, "x:2", "b:x").value()
  assert np.all(y == y[:, :1])
  assert 0 < np.mean(y[:, 0] == 0) < 1


def test_dropout_is_off_outside_of_training():
  def build(mesh):
    x = mtf.ones(mesh, "a:4")
    assert mtf.dropout(x, False, 0.5) is x
    assert mtf.dropout(x, True, 1.0) is x
    return mtf.dropout(x, True, 0.0)

  assert run(build).value().tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
  ("kwargs", "message"),
  [
    ({}, "exactly one of keep_prob and rate"),
    ({"keep_prob": 0.5, "rate": 0.5}, "exactly one of keep_prob and rate"),
    ({"rate": 1.5}, r"keep_prob is -0.5, it must be in \[0, 1\]"),
  ],
)
def test_dropout_says_what_it_needs(kwargs, message):
  x = mtf.ones(mtf.Mesh(mtf.Graph(), "mesh"), "a:4")
  with pytest.raises(ValueError, match=message):
    mtf.dropout(x, True, **kwargs)


def _draws(where):
  """A dropout mask and an initial value, as bytes."""

  def build(mesh):
    w = mtf.get_variable(mesh, "enc/w", "a:4 b:8 c:2")
    v = mtf.get_variable(
      mesh, "v", "b:8", initializer=mtf.initializers.RandomNormal()
    )
    mask = mtf.dropout(mtf.ones(mesh, "a:4 b:8"), True, 0.5)
    return [w, v, mask, mtf.random_normal(mesh, "c:2 a:4")]

  return [v.tobytes().hex() for v in Run(build, where).values]


def test_values_do_not_depend_on_layout_or_implementation():
  alone = _draws(setting("", ""))
  for mesh, layout in [
    ("x:2", "b:x"),
    ("x:2;y:4", "a:x;b:y"),
    ("x:2;y:2", "c:x;b:y"),
  ]:
    for kind in KINDS:
      assert _draws(setting(mesh, layout, kind)) == alone


def test_a_fresh_process_draws_the_same_numbers():
  script = (
    "from tests.spmd.random_bits_test import _draws\n"
    "from tests.support.meshes import setting\n"
    "print('\\n'.join(_draws(setting('x:2', 'b:x'))))\n"
  )
  env = {**os.environ, "PYTHONHASHSEED": "12345", "TF_CPP_MIN_LOG_LEVEL": "3"}
  done = subprocess.run(
    [sys.executable, "-c", script],
    cwd=ROOT, env=env, capture_output=True, text=True, check=True,
  )  # fmt: skip
  assert done.stdout.split() == _draws(setting("", ""))
