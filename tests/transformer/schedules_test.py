"""Learning rates against the golden values and against NumPy."""

import gin
import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2.transformer import schedules

# (schedule, step, total_train_steps, settings, rate), as observed in the
# original; the linear decay below 0 is the one deliberate difference.
GOLDEN = [
  ("learning_rate_schedule_noam", 0, 100000, {}, 0.01),
  ("learning_rate_schedule_noam", 95000, 100000, {}, 0.00162221),
  ("linear_decay", 110, 100, {}, 0.0),
  ("linear_warmup", 5, 100, {"steps_or_fraction": 0.1}, 0.5),
  ("truncated_rsqrt", 40000, 100000, {}, 0.005),
  ("slanted_triangular", 10, 100, {}, 0.01),
  ("slanted_triangular", 0, 100, {}, 3.125e-4),
  ("slanted_triangular", 100, 100, {}, 3.125e-4),
  (
    "product_learning_rate",
    5,
    100,
    {"factors": [2.0, schedules.linear_warmup], "offset": 1},
    8e-4,
  ),
]

SETTINGS = {
  "product_learning_rate": {
    "factors": [0.5, schedules.truncated_rsqrt, schedules.linear_decay],
    "offset": 7,
  },
  "linear_decay": {},
  "linear_warmup": {"steps_or_fraction": 20},
  "truncated_rsqrt": {"warmup_steps": 10},
  "constant": {"value": 0.25},
  "constant_learning_rate": {"learning_rate": 0.125},
  "linear_decay_learning_rate": {"offset": 10},
  "learning_rate_schedule_noam": {"warmup_steps": 30, "offset": 5},
  "slanted_triangular": {"start_step": 3},
}

# The same in NumPy, for steps of a run of 100, beyond both of its ends.
STEPS = np.arange(-5, 130)
EXPECTED = {
  "product_learning_rate": 0.5
  / np.sqrt(np.maximum(STEPS - 7, 10000))
  * np.clip((100 - STEPS) / 9.3, 0, 1),
  "linear_decay": np.interp(STEPS, [90, 100], [1, 0]),
  "linear_warmup": np.interp(STEPS, [0, 20], [0, 1]),
  "truncated_rsqrt": np.maximum(STEPS, 10) ** -0.5,
  "constant": np.full(STEPS.shape, 0.25),
  "constant_learning_rate": np.full(STEPS.shape, 0.125),
  "linear_decay_learning_rate": np.interp(STEPS, [10, 100], [0.1, 0]),
  "learning_rate_schedule_noam": np.maximum(STEPS - 5, 30) ** -0.5
  * np.interp(STEPS, [90.5, 100], [1, 0]),
  "slanted_triangular": np.interp(
    STEPS, [3, 12.7, 100], [0.01 / 32, 0.01, 0.01 / 32]
  ),
}


@pytest.mark.parametrize(("name", "step", "total", "settings", "rate"), GOLDEN)
def test_golden_values(name, step, total, settings, rate):
  result = getattr(schedules, name)(step, total, **settings)
  np.testing.assert_allclose(result, rate, rtol=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_schedule_agrees_with_numpy_at_every_step(name):
  schedule = getattr(schedules, name)
  rates = [schedule(int(step), 100, **SETTINGS[name]) for step in STEPS]
  assert all(rate.dtype == tf.float32 and rate.shape == [] for rate in rates)
  np.testing.assert_allclose(rates, EXPECTED[name], rtol=1e-5, atol=1e-7)
  assert min(rates) >= 0


@pytest.mark.parametrize("name", SETTINGS)
def test_a_traced_step_gives_what_a_number_gives(name):
  schedule = getattr(schedules, name)

  @tf.function
  def traced(step):
    return schedule(step, 100, **SETTINGS[name])

  for step in (0, 50, 95, 120):
    rate = traced(tf.constant(step, tf.int64))
    np.testing.assert_allclose(
      rate, schedule(step, 100, **SETTINGS[name]), rtol=1e-6
    )


@pytest.mark.parametrize("length", [0, 0.0])
def test_a_ramp_of_no_length_leaves_the_rate_alone(length):
  for step in (0, 50, 100):
    assert schedules.linear_warmup(step, 100, steps_or_fraction=length) == 1
    assert schedules.linear_decay(step, 100, steps_or_fraction=length) == 1


def test_noam_without_a_line_only_falls_as_rsqrt():
  rate = schedules.learning_rate_schedule_noam(
    100, 100, warmup_steps=4, linear_decay_fraction=0
  )
  np.testing.assert_allclose(rate, 0.1, rtol=1e-6)


@pytest.mark.parametrize(
  ("name", "settings", "message"),
  [
    ("constant", {"value": -1}, "constant.value is -1: a learning rate is not"),
    (
      "constant_learning_rate",
      {"learning_rate": -0.5},
      "constant_learning_rate.learning_rate is -0.5",
    ),
    ("linear_decay_learning_rate", {"initial_lr": -2}, "initial_lr is -2"),
    ("learning_rate_schedule_noam", {"multiplier": -2}, "multiplier is -2"),
    ("slanted_triangular", {"max_learning_rate": -2}, "learning_rate is -2"),
    ("slanted_triangular", {"ratio": 0.5}, "ratio is 0.5: .* at least 1"),
    ("product_learning_rate", {"factors": [-2]}, "factors is -2"),
  ],
)
def test_a_negative_rate_is_refused(name, settings, message):
  with pytest.raises(ValueError, match=message):
    getattr(schedules, name)(0, 100, **settings)


def test_gin_binds_a_schedule_by_the_original_module_name():
  gin.clear_config()
  gin.parse_config(
    """
    learning_rate_schedules.constant.value = 3.0
    mesh_tf2.transformer.learning_rate_schedules.linear_warmup:
      steps_or_fraction = 10
    learning_rate_schedules.product_learning_rate.factors = [
        @learning_rate_schedules.constant, @linear_warmup, 0.5]
    """
  )
  try:
    np.testing.assert_allclose(schedules.product_learning_rate(4, 100), 0.6)
  finally:
    gin.clear_config()
