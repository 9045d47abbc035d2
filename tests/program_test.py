"""Programs: functions that share variables, steps, and random numbers."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import mirrored

X = np.arange(12, dtype=np.float32).reshape(4, 3)
PLACES = [
  ("", "", None),
  ("rows:2", "batch:rows", None),
  ("rows:2;cols:2", "batch:rows;out:cols", None),
  ("rows:2;cols:2", "batch:cols;out:rows", [""] * 4),
]


def _linear(mesh, x):
  x = mtf.import_tf_tensor(mesh, x, "batch:4 in:3")
  w = mtf.get_variable(mesh, "w", "in:3 out:2")
  return mtf.einsum([x, w], "batch:4 out:2")


def _train(mesh, x):
  y = _linear(mesh, x)
  y = mtf.dropout(y, True, 0.5)
  loss = mtf.reduce_mean(mtf.square(y - 1.0))
  for v in mesh.graph.trainable_variables:
    (g,) = mtf.gradients([loss], [v.value])
    mtf.assign_sub(v, g * 0.01)
  return {"loss": loss}


def test_functions_of_a_program_share_its_variables():
  program = mtf.Program("rows:2", "batch:rows")
  train, predict = program.function(_train), program.function(_linear)
  before = predict(X).numpy()
  w = program.variables["w"]
  np.testing.assert_allclose(before, X @ w.numpy(), rtol=1e-5)
  train(X)
  assert list(program.variables) == ["w"]
  np.testing.assert_allclose(predict(X), X @ w.numpy(), rtol=1e-5)
  assert not np.allclose(predict(X), before)


def test_a_variable_is_whole_whatever_the_layout():
  program = mtf.Program("rows:2;cols:2", "batch:rows;out:cols;in:z")
  with pytest.warns(mtf.LayoutWarning):
    program.function(_linear)(X)
  w = program.variables["w"]
  assert w.name == "w"
  assert w.shape == mtf.convert_to_shape("in:3 out:2")
  assert w.trainable
  assert w.numpy().shape == (3, 2)
  w.assign(np.ones([3, 2]))
  np.testing.assert_array_equal(w.numpy(), np.ones([3, 2]))
  np.testing.assert_array_equal(w.value, np.ones([3, 2]))


def test_no_layout_changes_a_training_run():
  losses = []
  for mesh, layout, devices in PLACES:
    program = mtf.Program(mesh, layout, seed=3, devices=devices)
    train = program.function(_train)
    losses.append([train(X)["loss"].numpy() for _ in range(3)])
  for other in losses[1:]:
    np.testing.assert_allclose(other, losses[0], rtol=1e-5)


def test_a_call_that_assigns_is_a_step():
  program = mtf.Program()
  train, predict = program.function(_train), program.function(_linear)
  assert program.step.numpy() == 0
  predict(X)
  assert program.step.numpy() == 0
  train(X)
  train(X)
  predict(X)
  assert program.step.numpy() == 2


def test_every_step_draws_new_numbers_and_a_seed_draws_them_again():
  def draw(mesh):
    count = mtf.get_variable(mesh, "count", "", initializer=0.0)
    mtf.assign_add(count, mtf.ones_like(count))
    return mtf.random_uniform(mesh, "a:4 b:8")

  runs = []
  for seed in (0, 0, 1):
    function = mtf.Program(seed=seed).function(draw)
    runs.append([function().numpy() for _ in range(2)])
  first, again, other = runs
  assert not np.any(first[0] == first[1])
  np.testing.assert_array_equal(first, again)
  assert not np.any(first[0] == other[0])


def test_a_step_that_is_set_back_is_drawn_again():
  program = mtf.Program()
  draw = program.function(lambda mesh: mtf.random_normal(mesh, "a:8"))
  first = draw().numpy()
  program.step.assign(7)
  later = draw().numpy()
  program.step.assign(0)
  np.testing.assert_array_equal(draw(), first)
  assert not np.any(first == later)


def test_a_function_is_traced_once_for_a_signature():
  traces = []
  program = mtf.Program()

  @program.function
  def double(mesh, x):
    """Doubles."""
    traces.append(x.shape)
    w = mtf.get_variable(mesh, "two", "", initializer=2.0)
    x = mtf.import_tf_tensor(mesh, x, [("n", x.shape[0])])
    return mtf.multiply(x, w)

  for size in (4, 4, 2, 4):
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(double(tf.constant(x)), 2 * x)
  assert len(traces) == 2
  assert double.__doc__ == "Doubles."
  assert list(program.variables) == ["two"]


def test_the_same_variable_asked_for_in_two_ways_is_an_error_that_names_both():
  program = mtf.Program()
  program.function(_linear)(X)

  @program.function
  def other(mesh):
    return mtf.get_variable(mesh, "w", "in:3 out:4", trainable=False)

  with pytest.raises(mtf.VariableError) as e:
    other()
  message = str(e.value)
  assert "w [in:3 out:2] float32 (saved as float32), trainable" in message
  assert "w [in:3 out:4] float32 (saved as float32), untrainable" in message


def test_a_variable_may_be_made_under_a_scope():
  program = mtf.Program()

  @program.function
  def read(mesh):
    with tf.compat.v1.variable_scope("encoder"):
      with tf.compat.v1.variable_scope("block_000"):
        w = mtf.get_variable(mesh, "w", "a:2", initializer=1.0)
      again = mtf.get_variable(mesh, "block_000/w", "a:2")
    return w + again

  np.testing.assert_array_equal(read(), [2, 2])
  assert list(program.variables) == ["encoder/block_000/w"]


def test_an_unnamed_layer_is_the_same_one_in_every_function_and_signature():
  program = mtf.Program()

  @program.function
  def layer(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, [("batch", x.shape[0]), ("in", 2)])
    return mtf.layers.dense(x, mtf.Dimension("out", 3), use_bias=False)

  @tf.function(autograph=False)
  def both():
    return layer(tf.ones([2, 2])), layer(tf.ones([4, 2]))

  layer(np.ones([3, 2], np.float32))
  both()
  assert list(program.variables) == ["dense/kernel"]


def test_a_checkpoint_that_does_not_fit_changes_nothing(tmp_path):
  saved = mtf.Program(seed=1)
  saved.function(_train)(X)
  saved.save(str(tmp_path / "ckpt"))
  program = mtf.Program(seed=2)
  program.function(lambda mesh: mtf.get_variable(mesh, "w", "a:5"))()
  with pytest.raises(ValueError, match=r"w: float32\[3, 2\], but the program"):
    program.restore(str(tmp_path / "ckpt"))
  assert (int(program.step), int(program.seed)) == (0, 2)
  program.function(lambda mesh: mtf.get_variable(mesh, "new", "a:5"))()
  assert list(program.variables) == ["w", "new"]


def test_a_variable_that_is_only_written_must_be_in_the_checkpoint(tmp_path):
  saved = mtf.Program()
  saved.function(_linear)(X)
  saved.save(str(tmp_path / "ckpt"))
  program = mtf.Program()
  program.restore(str(tmp_path / "ckpt"))

  @program.function
  def remember(mesh, x):
    y = _linear(mesh, x)
    mtf.assign(mtf.get_variable(mesh, "last", y.shape), y)
    return y

  with pytest.raises(ValueError, match=r"last: float32\[4, 2\]"):
    remember(X)


def test_results_come_back_in_their_nest():
  program = mtf.Program("x:2", "a:x")

  @program.function
  def nest(mesh):
    x = mtf.range(mesh, mtf.Dimension("a", 4), tf.int32)
    return {"x": x, "more": (x + 1, [mtf.reduce_sum(x)]), "n": 5}

  result = nest()
  assert result["x"].numpy().tolist() == [0, 1, 2, 3]
  assert result["more"][0].numpy().tolist() == [1, 2, 3, 4]
  assert result["more"][1][0].numpy() == 6
  assert int(result["n"]) == 5


def test_a_function_that_needs_no_variable_makes_none():
  program = mtf.Program()

  @program.function
  def half(mesh):
    mtf.get_variable(mesh, "never_read", "a:2")
    return mtf.constant(mesh, 0.5)

  assert half().numpy() == 0.5
  assert not program.variables


def test_too_few_devices_is_an_error_that_names_both_numbers():
  with pytest.raises(
    mtf.LayoutError, match=r"mesh \[x:4\] has 4 processors, but 3 devices"
  ):
    mtf.Program("x:4", "", devices=["cpu:0"] * 3)


@pytest.mark.parametrize("name", ["gpu:7", "cpu:99", "first"])
def test_a_device_that_is_not_there_is_an_error_that_names_those_that_are(name):
  with pytest.raises(
    mtf.LayoutError, match=rf"no device '{name}'; this process has CPU:0"
  ):
    mtf.Program("x:2", "", devices=["cpu:0", name])


def test_a_function_can_be_built_before_it_is_called():
  program = mtf.Program()
  linear = program.function(_linear)
  linear.build(tf.TensorSpec([4, 3], tf.float32))
  assert list(program.variables) == ["w"]


def test_keywords_go_to_tf_function_and_xla_compiles_the_language():
  program = mtf.Program("x:2;y:2", "batch:x;vocab:y")
  vocab, k = mtf.Dimension("vocab", 8), mtf.Dimension("k", 3)

  def model(mesh, ids):
    ids = mtf.import_tf_tensor(mesh, ids, "batch:4")
    w = mtf.get_variable(mesh, "w", "vocab:8 d:4")
    h = mtf.dropout(mtf.gather(w, ids, vocab), True, 0.9)
    logits = mtf.einsum([h, w], "batch:4 vocab:8")
    loss = mtf.reduce_logsumexp(logits, vocab)
    top, where = mtf.top_k(mtf.softmax(logits, vocab), vocab, k)
    (dw,) = mtf.gradients([loss], [w])
    return dw, top, where, mtf.argmax(logits, vocab), mtf.cumsum(top, k)

  ids = np.array([1, 5, -1, 7], np.int32)
  plain = program.function(model)(ids)
  compiled = program.function(model, jit_compile=True)(ids)
  for x, y in zip(plain, compiled, strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 0.5, "1"])
def test_a_seed_is_a_whole_number_of_64_bits(seed):
  with pytest.raises(
    ValueError, match=r"seed is .*; it is a whole number from"
  ):
    mtf.Program(seed=seed)


def test_what_is_no_tensor_comes_back_from_a_strategy_as_it_is():
  program = mtf.Program("x:2", "a:x", strategy=mirrored(2))

  @program.function
  def fn(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, "a:4")
    return {"sum": mtf.reduce_sum(x), "none": None, "rank": 1}

  result = fn(np.ones(4, np.float32))
  assert (float(result["sum"]), result["none"], int(result["rank"])) == (
    4,
    None,
    1,
  )


@pytest.mark.parametrize("replicas", [None, 2])
def test_a_whole_value_overwrites_a_variable_wherever_its_slices_are(replicas):
  strategy = replicas and mirrored(replicas)
  value = np.arange(6.0).reshape(3, 2)
  program = mtf.Program("x:2", "out:x", strategy=strategy)
  program.function(_linear).build(X)
  variable = program.variables["w"]
  variable.assign(value)
  np.testing.assert_array_equal(variable.numpy(), value)
  with pytest.raises(ValueError, match=r"w is \[in:3 out:2\], got .*\[2, 3\]"):
    variable.assign(value.T)


@pytest.mark.parametrize(
  "strategy", ["mirrored", tf.distribute.OneDeviceStrategy("/cpu:0")]
)
def test_a_strategy_without_processors_is_an_error_that_names_those_that_have(
  strategy,
):
  with pytest.raises(TypeError, match="replicas of a MirroredStrategy, Multi"):
    mtf.Program(strategy=strategy)
