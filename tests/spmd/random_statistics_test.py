"""Statistical tests of the random numbers: even, and independent of others.

Each statistic is compared with what truly random numbers give; the bounds are
5.3 standard deviations, which those exceed once in ten million times. Seeds are
fixed, so that a test that passes once always does.
"""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd import random_bits

from tests.support.running import run

COUNT = 1 << 17
FAR = 5.3


def _keys(*values):
  """Keys as a program makes them: of a seed, a step and an operation."""
  key = tf.constant(0, tf.uint64)
  for v in values:
    key = random_bits.fold(key, v)
  return key


def _bits(seed=0, step=0, stream=0, count=COUNT):
  index = tf.range(count, dtype=tf.int64)
  key = _keys(tf.constant(seed, tf.int64), tf.constant(step, tf.int64), stream)
  return random_bits.bits(key, tf.cast(index, tf.uint64)).numpy()


def _uniform(**kwargs):
  bits = _bits(**kwargs)
  return random_bits.uniform(tf.constant(bits)).numpy().astype(np.float64)


def _check_even(cells, count):
  """Chi-squared: numbers of cells occur equally often."""
  observed = np.bincount(np.ravel(cells), minlength=count)
  assert observed.size == count
  expected = np.size(cells) / count
  assert expected >= 5  # or the statistic is not chi-squared
  statistic = np.sum((observed - expected) ** 2) / expected
  free = count - 1
  assert abs(statistic - free) < FAR * np.sqrt(2 * free), (statistic, free)


def _check_uncorrelated(x, y):
  x, y = x - x.mean(), y - y.mean()
  r = np.mean(x * y) / np.sqrt(np.mean(x * x) * np.mean(y * y))
  assert abs(r) < FAR / np.sqrt(x.size), r


def _check_independent(x, y, cells=16):
  """Every pair of cells of two sets of numbers in [0, 1) is as frequent."""
  pairs = (x * cells).astype(int) * cells + (y * cells).astype(int)
  _check_even(pairs, cells * cells)
  _check_uncorrelated(x, y)


def _column(*values):
  """The numbers at some places, for the keys of many seeds, or steps, or so."""
  keys = _keys(*values)
  for place in (0, 1, 12345):
    bits = random_bits.bits(keys, tf.constant(place, tf.uint64))
    yield random_bits.uniform(bits).numpy().astype(np.float64)


STREAMS = [
  {},
  {"stream": 1},
  {"stream": 2**62 + 1},
  {"step": 1},
  {"step": 1_000_000},
  {"seed": 1},
  {"seed": -1},
  {"seed": 2**40},
]


@pytest.mark.parametrize("stream", STREAMS)
def test_every_byte_takes_every_value_equally_often(stream):
  for byte in _bits(**stream).view(np.uint8).reshape(COUNT, 8).T:
    _check_even(byte, 256)


@pytest.mark.parametrize("stream", STREAMS[::3])
def test_numbers_do_not_tell_of_those_some_places_later(stream):
  u = _uniform(**stream)
  for lag in (*range(1, 33), 64, 100, 128, 256, 512, 1000, 1024, 4096, 65536):
    _check_uncorrelated(u[:-lag], u[lag:])
  for lag in (1, 2, 3, 8, 512, 65536):
    _check_independent(u[:-lag], u[lag:])


def test_three_neighbours_in_a_row_are_independent():
  u = _uniform(stream=3)
  cells = (u * 8).astype(int)
  _check_even(cells[:-2:3] * 64 + cells[1:-1:3] * 8 + cells[2::3], 512)


def test_the_order_of_neighbours_is_any():
  u = _uniform(stream=4)[: COUNT // 4 * 4].reshape(-1, 4)
  order = u.argsort(1)
  number = {p: i for i, p in enumerate(itertools.permutations(range(4)))}
  _check_even([number[tuple(p)] for p in order.tolist()], 24)


def test_runs_up_and_down_are_as_many_as_they_should_be():
  ups = np.diff(_uniform(stream=5)) > 0
  runs = 1 + np.count_nonzero(ups[1:] != ups[:-1])
  mean, variance = (2 * COUNT - 1) / 3, (16 * COUNT - 29) / 90
  assert abs(runs - mean) < FAR * np.sqrt(variance)


def test_the_next_counter_changes_every_bit_half_of_the_time():
  bits = _bits(stream=6)
  changed = (bits[1:] ^ bits[:-1])[:, np.newaxis] >> np.arange(
    64, dtype=np.uint64
  )
  share = np.mean(changed & np.uint64(1), 0)
  assert np.abs(share - 0.5).max() < FAR * 0.5 / np.sqrt(COUNT)
  # How many bits change is binomial: mean 32, variance 16.
  weight = np.sum(changed & np.uint64(1), 1).astype(np.float64)
  assert abs(weight.mean() - 32) < FAR * 4 / np.sqrt(COUNT)
  assert abs(weight.var() - 16) < FAR * 16 * np.sqrt(2 / COUNT)


@pytest.mark.parametrize("name", ["seed", "step", "stream"])
def test_neighbouring_seeds_steps_and_operations_are_independent(name):
  for one, other in [(0, 1), (1, 2), (0, 256), (7, 2**31)]:
    x, y = _uniform(**{name: one}), _uniform(**{name: other})
    _check_independent(x, y)
    _check_independent(x[1:], y[:-1])  # nor are they shifted copies
    assert set(x[:1000].tolist()) != set(y[:1000].tolist())


def test_a_step_is_not_the_seed_nor_the_operation_of_another_one():
  numbers = [_uniform(**{name: 5}) for name in ("seed", "step", "stream")]
  for x, y in itertools.combinations(numbers, 2):
    _check_independent(x, y)


MANY = tf.range(4096, dtype=tf.int64)


@pytest.mark.parametrize(
  "values",
  [(MANY, 0, 0), (0, MANY, 0), (0, 0, MANY)],
  ids=["seeds", "steps", "operations"],
)
def test_one_place_is_even_over_thousands_of_keys(values):
  for u in _column(*values):
    _check_even((u * 64).astype(int), 64)
    for lag in (1, 2, 3, 64, 1024):
      _check_uncorrelated(u[:-lag], u[lag:])


@pytest.mark.parametrize("number", [0, 1, 2**31, 2**62 + 1, -1])
def test_a_number_gives_the_key_of_a_tensor(number):
  key = tf.constant(99, tf.uint64)
  tensor = tf.constant(number, tf.int64)
  assert random_bits.fold(key, number) == random_bits.fold(key, tensor)


def test_no_two_of_many_keys_are_the_same():
  numbers = tf.range(300, dtype=tf.int64)
  keys = {
    key
    for stream in range(300)
    for key in random_bits.fold(_keys(stream), numbers).numpy().tolist()
  }
  assert len(keys) == 300 * 300


def test_no_64_bits_occur_twice():
  seen = np.concatenate([_bits(step=s) for s in range(8)])
  # By chance once in thirty million times: (2^20)^2 / 2^65.
  assert np.unique(seen).size == seen.size


# Dropout, as a program applies it.

ROWS, COLUMNS = 256, 512


def _masks(rate, steps, layers=2, seed=0):
  """Which of ones are kept: [step, layer, row, column], 0 or 1."""
  program = mtf.Program("x:2;y:2", "rows:x;columns:y", seed=seed)

  @program.function
  def fn(mesh):
    count = mtf.get_variable(mesh, "count", [], initializer=0.0)
    ones = mtf.ones(mesh, [("rows", ROWS), ("columns", COLUMNS)])
    kept = [mtf.dropout(ones, True, rate=rate) for _ in range(layers)]
    mtf.assign_add(count, mtf.ones(mesh, []))  # so that a call is a step
    return kept

  masks = np.array([[y.numpy() for y in fn()] for _ in range(steps)])
  kept = masks[masks > 0]
  np.testing.assert_allclose(kept, np.float32(1 / (1 - rate)))
  return (masks > 0).astype(np.float64)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3, 0.5, 0.75, 0.99])
def test_dropout_keeps_its_share_everywhere(rate):
  masks = _masks(rate, steps=4)
  deviation = np.sqrt(rate * (1 - rate))
  for axes in [(2, 3), (0, 1, 3), (0, 1, 2), (0, 1, 2, 3)]:
    share = masks.mean(axes)
    terms = masks.size / share.size
    off = np.abs(share - (1 - rate)).max()
    assert off < FAR * deviation / np.sqrt(terms) + 1 / terms, axes
  # Of each row so many are kept as of independent draws, not just on average.
  kept = masks.sum(3).ravel()
  spread = kept.var() / (COLUMNS * rate * (1 - rate))
  assert abs(spread - 1) < FAR * np.sqrt(2 / kept.size) * 1.5


def test_dropout_of_neighbours_layers_steps_and_seeds_is_independent():
  masks, others = _masks(0.3, steps=2), _masks(0.3, steps=2, seed=1)
  mask = masks[0, 0]
  pairs = {
    "columns": (mask[:, 1:], mask[:, :-1]),
    "rows": (mask[1:], mask[:-1]),
    "layers": (mask, masks[0, 1]),
    "steps": (mask, masks[1, 0]),
    "a layer of the next step": (masks[0, 1], masks[1, 0]),
    "seeds": (mask, others[0, 0]),
    # Parts on different processors.
    "halves": (mask[: ROWS // 2], mask[ROWS // 2 :]),
    "sides": (mask[:, : COLUMNS // 2], mask[:, COLUMNS // 2 :]),
  }
  for x, y in pairs.values():
    _check_uncorrelated(x.ravel(), y.ravel())


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_uniform_numbers_stay_below_the_upper_bound_in_every_dtype(name):
  dtype = tf.as_dtype(name)
  for bounds in ((0.0, 1.0), (1.0, 2.0), (-2.0, -1.0)):

    def build(mesh, bounds=bounds):
      return mtf.random_uniform(mesh, "a:20000", *bounds, dtype=dtype)

    x = run(build).value().astype(np.float64)
    assert x.min() >= bounds[0]
    assert x.max() < bounds[1]
