"""Optimizers against NumPy, over several steps, on every layout."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

# A rule for a dimension that a variable lacks is no mistake here.
pytestmark = pytest.mark.filterwarnings("ignore::mesh_tf2.LayoutWarning")

STEPS = 3
LAYOUTS = {
  "one processor": ("", "", None),
  "virtual, one axis splits": ("x:2;y:2", "a:x", None),
  "virtual, two axes split": ("x:2;y:4", "a:x;b:y", None),
  "devices, the last one splits": ("x:4", "b:x", [""] * 4),
  "devices, two axes split": ("x:2;y:2", "a:y;b:x", [""] * 4),
}
# fmt: off
#              dimensions           what Adafactor keeps of it
SHAPES = {
  "scalar":     ("",                  {"v": []}),
  "vector":     ("a:256",             {"v": [256]}),
  "small":      ("a:16 b:12",         {"v": [16, 12]}),
  "factored":   ("a:256 b:128",       {"vr": [128], "vc": [256]}),
  "wide":       ("a:128 b:256",       {"vr": [128], "vc": [256]}),
  "square":     ("a:128 b:128",       {"vr": [128], "vc": [128]}),
  "unfactored": ("a:256 c:127",       {"v": [256, 127]}),
  "cube":       ("a:256 b:128 c:3",   {"vr": [128, 3], "vc": [256, 3]}),
  "stack":      ("c:3 a:256 b:128",   {"vr": [3, 128], "vc": [3, 256]}),
}
# fmt: on


def gradient(step, sizes):
  """A gradient whose rows, columns and steps differ in size."""
  g = np.random.RandomState(step).standard_normal(sizes) * (step + 1)
  for i, n in enumerate(sizes):
    scale = np.linspace(0.1, 2.0, n)
    g *= scale.reshape([-1 if j == i else 1 for j in range(len(sizes))])
  return np.float32(g)


def start(sizes):
  return np.float32(np.random.RandomState(99).standard_normal(sizes) * 0.3)


def run(make, dimensions, layout="one processor", *, dtype=tf.float32):
  """The values of all variables after some steps, by name."""
  mesh_shape, rules, devices = LAYOUTS[layout]
  shape = mtf.convert_to_shape(dimensions)
  sizes = shape.to_integer_list
  program = mtf.Program(mesh_shape, rules, devices=devices)

  @program.function
  def train(mesh, g):
    w = mtf.get_variable(
      mesh,
      "w",
      shape,
      mtf.VariableDType(tf.float32, tf.float32, dtype),
      initializer=lambda *_, **__: tf.constant(start(sizes)),
    )
    g = mtf.cast(mtf.import_tf_tensor(mesh, g, shape), dtype)
    make().apply_grads([g], [w])
    return ()

  for step in range(STEPS):
    train(gradient(step, sizes))
  return {n: v.numpy() for n, v in program.variables.items()}


def rounded(x, dtype):
  return tf.cast(tf.cast(x, dtype), tf.float32).numpy()


# The same optimizers in NumPy, in float64: (w, state, g, step) -> w.


def numpy_sgd(lr=0.1):
  return lambda w, seen, state, g, t: w - lr * g


def numpy_momentum(lr=0.1, momentum=0.9):
  def update(w, seen, state, g, t):
    state["w_momentum_v"] = momentum * state.get("w_momentum_v", 0) + lr * g
    return w - state["w_momentum_v"]

  return update


def numpy_adam(lr=0.01, decay=0.0, b1=0.9, b2=0.999, eps=1e-6):
  def update(w, seen, state, g, t):
    state["w/adam_m"] = b1 * state.get("w/adam_m", 0) + (1 - b1) * g
    state["w/adam_v"] = b2 * state.get("w/adam_v", 0) + (1 - b2) * g**2
    step = state["w/adam_m"] / (np.sqrt(state["w/adam_v"]) + eps)
    return w - lr * (step + decay * seen)

  return update


def rms(x):
  return np.sqrt(np.mean(np.square(x)))


def numpy_adafactor(
  lr=None, relative=True, axes=None, beta1=0.0, clip=1.0, decay=None
):
  """`axes`: of the largest and the second-largest dimension, if factored."""

  def mean_square(state, g2, rate):
    def mix(name, value):
      state[name] = rate * state.get(name, 0) + (1 - rate) * value
      return state[name]

    if axes is None:
      return mix("w_slot_v", g2)
    largest, second = axes
    vr = mix("w_slot_vr", g2.mean(largest))
    vc = mix("w_slot_vc", g2.mean(second))
    vr, vc = np.expand_dims(vr, largest), np.expand_dims(vc, second)
    return vr * vc / vr.mean(second, keepdims=True)

  def update(w, seen, state, g, t):
    rate = 1 - (t + 1) ** -0.8 if decay is None else decay(t)
    u = g / np.sqrt(mean_square(state, g**2 + 1e-30, rate))
    if clip is not None:
      u /= max(1.0, rms(u) / clip)
    u *= min((t + 1) ** -0.5, 0.01) if lr is None else lr
    if relative:
      u *= max(rms(seen), 1e-3)
    elif lr is None:
      u *= 0.05
    if beta1:
      u = state["w_slot_m"] = beta1 * state.get("w_slot_m", 0) + (1 - beta1) * u
    return w - u

  return update


def expected(update, dimensions, dtype=tf.float32):
  sizes = mtf.convert_to_shape(dimensions).to_integer_list
  w, state = start(sizes), {}
  for t in range(STEPS):
    seen = rounded(w, dtype).astype(np.float64)
    g = rounded(gradient(t, sizes), dtype).astype(np.float64)
    w = update(w, seen, state, g, t)
  return {"w": w, **state}


def assert_close(got, want, rtol=2e-5):
  assert set(got) == set(want)
  for name, value in want.items():
    assert got[name].shape == np.shape(value), name
    scale = np.abs(value).max()
    np.testing.assert_allclose(
      got[name], value, rtol=rtol, atol=rtol * scale, err_msg=name
    )


adafactor = mtf.optimize.AdafactorOptimizer
CASES = {
  "sgd": (lambda: mtf.optimize.SgdOptimizer(0.1), numpy_sgd()),
  "momentum": (
    lambda: mtf.optimize.MomentumOptimizer(0.1, 0.9),
    numpy_momentum(),
  ),
  "adam": (
    lambda: mtf.optimize.AdamWeightDecayOptimizer(0.01),
    numpy_adam(),
  ),
  "adam with weight decay": (
    lambda: mtf.optimize.AdamWeightDecayOptimizer(0.01, 0.1, 0.8, 0.9, 1e-3),
    numpy_adam(0.01, 0.1, 0.8, 0.9, 1e-3),
  ),
  "adafactor": (adafactor, numpy_adafactor()),
  "adafactor with a learning rate": (
    lambda: adafactor(learning_rate=0.1),
    numpy_adafactor(lr=0.1),
  ),
  "adafactor, steps not relative": (
    lambda: adafactor(multiply_by_parameter_scale=False),
    numpy_adafactor(relative=False),
  ),
  "adafactor, not relative, with a learning rate": (
    lambda: adafactor(multiply_by_parameter_scale=False, learning_rate=0.1),
    numpy_adafactor(lr=0.1, relative=False),
  ),
  "adafactor with a momentum": (
    lambda: adafactor(beta1=0.9),
    numpy_adafactor(beta1=0.9),
  ),
  "adafactor, clipped at one half": (
    lambda: adafactor(clipping_threshold=0.5),
    numpy_adafactor(clip=0.5),
  ),
  "adafactor, not clipped": (
    lambda: adafactor(clipping_threshold=None),
    numpy_adafactor(clip=None),
  ),
  "adafactor with a constant decay": (
    lambda: adafactor(decay_rate=0.9),
    numpy_adafactor(decay=lambda t: 0.9),
  ),
  "adafactor with another power": (
    lambda: adafactor(
      decay_rate=mtf.optimize.adafactor_decay_rate_pow(0.5, offset=1)
    ),
    numpy_adafactor(decay=lambda t: 1 - (max(t - 1, 0) + 1) ** -0.5),
  ),
  "adafactor with adam's decay": (
    lambda: adafactor(decay_rate=mtf.optimize.adafactor_decay_rate_adam(0.9)),
    numpy_adafactor(decay=lambda t: 0.9 * (1 - 0.9**t) / (1 - 0.9 ** (t + 1))),
  ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_does_what_numpy_does(case):
  make, update = CASES[case]
  assert_close(run(make, "a:16 b:12"), expected(update, "a:16 b:12"))


@pytest.mark.parametrize(
  "case", [c for c in CASES if "with a" in c or c == "sgd"]
)
def test_activations_of_bfloat16_leave_the_arithmetic_in_float32(case):
  make, update = CASES[case]
  got = run(make, "a:16 b:12", dtype=tf.bfloat16)
  assert all(v.dtype == np.float32 for v in got.values())
  assert_close(got, expected(update, "a:16 b:12", tf.bfloat16))


FACTORED_AXES = {
  "factored": (0, 1),
  "wide": (1, 0),
  "square": (0, 1),
  "cube": (0, 1),
  "stack": (1, 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_adafactor_factors_the_two_largest_dimensions(name):
  dimensions, slots = SHAPES[name]
  got = run(adafactor, dimensions)
  kept = {n: list(v.shape) for n, v in got.items() if n != "w"}
  assert kept == {f"w_slot_{n}": sizes for n, sizes in slots.items()}
  update = numpy_adafactor(axes=FACTORED_AXES.get(name))
  assert_close(got, expected(update, dimensions))


@pytest.mark.parametrize("layout", list(LAYOUTS)[1:])
@pytest.mark.parametrize(
  ("case", "dimensions"),
  [
    ("momentum", "a:16 b:12"),
    ("adam with weight decay", "a:16 b:12"),
    ("adafactor", "a:256 b:128 c:3"),
    ("adafactor with a momentum", "c:3 b:12 a:16"),
  ],
)
def test_a_layout_does_not_change_the_update(case, dimensions, layout):
  make, _ = CASES[case]
  assert_close(run(make, dimensions, layout), run(make, dimensions))


def test_four_steps_of_momentum_apply_the_new_velocity():
  program = mtf.Program()

  @program.function
  def train(mesh):
    w = mtf.get_variable(mesh, "w", [], initializer=1.0)
    mtf.optimize.MomentumOptimizer(0.1, 0.9).apply_grads(
      [mtf.constant(mesh, 1.0)], [w]
    )
    return w

  got = [float(train()) for _ in range(4)]
  np.testing.assert_allclose(got, [1.0, 0.9, 0.71, 0.439], rtol=1e-6)
  np.testing.assert_allclose(program.variables["w"].numpy(), 0.0951, rtol=1e-5)
