"""Gradients: which tensors they reach, and what they add up to."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor

A = mtf.Dimension("a", 4)


def test_there_is_none_where_nothing_depends():
  def build(mesh):
    x, y = tensor(mesh, "a:4"), tensor(mesh, "a:4")
    dx, dy = mtf.gradients([mtf.square(x)], [x, y])
    assert dy is None
    return dx

  assert run(build).value().tolist() == [0, 2, 4, 6]


def test_there_is_none_through_integers_or_a_stop():
  mesh = new_mesh()
  x = tensor(mesh, "a:4")
  through_integers = mtf.to_float(mtf.to_int32(x))
  assert mtf.gradients([through_integers], [x]) == [None]
  assert mtf.gradients([mtf.stop_gradient(x)], [x]) == [None]
  assert mtf.gradients([mtf.sign(x)], [x]) == [None]
  assert mtf.gradients([mtf.mod(x, x)], [x]) == [None]
  assert mtf.gradients([mtf.floordiv(x, x)], [x]) == [None]


def test_of_nothing_there_are_none():
  assert mtf.gradients([tensor(new_mesh(), "a:4")], []) == []


def test_the_gradient_of_a_tensor_by_itself_is_one():
  def build(mesh):
    x = tensor(mesh, "a:4")
    return mtf.gradients([x], [x])

  assert run(build).value().tolist() == [1] * 4


def test_gradients_by_something_in_the_middle():
  def build(mesh):
    x = tensor(mesh, "a:4")
    y = mtf.square(x)
    return mtf.gradients([mtf.square(y)], [y, x])

  dy, dx = run(build).values
  assert dy.tolist() == [0, 2, 8, 18]
  assert dx.tolist() == [0, 4, 32, 108]


def test_several_results_add_up():
  def build(mesh):
    x = tensor(mesh, "a:4")
    weights = [None, tensor(mesh, "a:4", [1, 2, 3, 4])]
    return mtf.gradients([x * 3.0, mtf.square(x)], [x], weights)

  assert run(build).value().tolist() == [3, 7, 15, 27]


@pytest.mark.parametrize("kind", KINDS)
def test_uses_of_one_tensor_add_up_before_they_are_reduced(kind):
  def build(mesh):
    x = tensor(mesh, "batch:4 a:4")
    w = tensor(mesh, "a:4 c:2")
    y = mtf.einsum([x, w], "batch:4 c:2") + mtf.einsum(
      [mtf.square(x), w], "batch:4 c:2"
    )
    return mtf.gradients([y], [w])

  split = run(build, "x:2", "batch:x", kind)
  np.testing.assert_allclose(split.value(), run(build).value())
  assert split.kinds == ["allreduce"]


def test_results_that_are_not_used_count_as_zero():
  def build(mesh):
    x = tensor(mesh, "a:4 c:3")
    c = mtf.Dimension("c", 3)
    _, middle, _ = mtf.unstack(x, c)
    first, _ = mtf.split(x, c, [1, 2])
    values, _ = mtf.top_k(x, c, mtf.Dimension("k", 1))
    losses = [middle, first, values]
    return [g for y in losses for g in mtf.gradients([y], [x])]

  middle, first, top = run(build).values
  assert middle.tolist() == [[0, 1, 0]] * 4
  assert first.tolist() == [[1, 0, 0]] * 4
  assert top.tolist() == [[0, 0, 1]] * 4


def test_a_given_list_of_operations_bounds_the_walk():
  mesh = new_mesh()
  x = tensor(mesh, "a:4")
  y = mtf.square(x)
  _, operations = mesh.graph.capture_operations(lambda: mtf.square(y))
  z = operations[-1].outputs[0]
  assert mtf.gradients([z], [x], operations=operations) == [None]
  (dy,) = mtf.gradients([z], [y], operations=operations)
  assert dy is not None


def test_a_gradient_may_be_taken_of_a_gradient():
  def build(mesh):
    x = tensor(mesh, "a:4", [1, 2, 3, 4])
    (first,) = mtf.gradients([mtf.pow(x, 4)], [x])
    (second,) = mtf.gradients([first], [x])
    (third,) = mtf.gradients([second], [x])
    return [first, second, third]

  first, second, third = run(build).values
  np.testing.assert_allclose(first, [4, 32, 108, 256], rtol=1e-6)
  np.testing.assert_allclose(second, [12, 48, 108, 192], rtol=1e-6)
  np.testing.assert_allclose(third, [24, 48, 72, 96], rtol=1e-6)


SECOND_ORDER = {
  "softmax": lambda x: mtf.softmax(x, A),
  "log_softmax": lambda x: mtf.log_softmax(x, A),
  "logsumexp": lambda x: mtf.reduce_logsumexp(x, A),
  "cumsum": lambda x: mtf.cumsum(mtf.square(x), A),
  "gather": lambda x: mtf.square(mtf.gather(x, 2, A)),
  "top_k": lambda x: mtf.square(mtf.top_k(x, A, mtf.Dimension("k", 2))[0]),
  "tanh": mtf.tanh,
  "sigmoid": mtf.sigmoid,
  "sin": mtf.sin,
  "rsqrt": lambda x: mtf.rsqrt(mtf.exp(x)),
  "swish": mtf.swish,
  "gelu": mtf.gelu,
}
TF_SECOND_ORDER = {
  "softmax": tf.nn.softmax,
  "log_softmax": tf.nn.log_softmax,
  "logsumexp": lambda x: tf.reduce_logsumexp(x, -1),
  "cumsum": lambda x: tf.cumsum(tf.square(x), -1),
  "gather": lambda x: tf.square(x[:, 2]),
  "top_k": lambda x: tf.square(tf.math.top_k(x, 2).values),
  "tanh": tf.tanh,
  "sigmoid": tf.sigmoid,
  "sin": tf.sin,
  "rsqrt": lambda x: tf.math.rsqrt(tf.exp(x)),
  "swish": lambda x: x * tf.sigmoid(x),
  "gelu": lambda x: tf.nn.gelu(x, approximate=True),
}


@pytest.mark.parametrize("name", SECOND_ORDER)
def test_second_derivatives_agree_with_tensorflow(name):
  x = np.random.default_rng(0).normal(size=[2, 4]).astype(np.float32)
  with tf.GradientTape() as outer:
    v = tf.constant(x)
    outer.watch(v)
    with tf.GradientTape() as inner:
      inner.watch(v)
      y = TF_SECOND_ORDER[name](v)
      loss = tf.reduce_sum(tf.sin(y))
    first = inner.gradient(loss, v)
    loss = tf.reduce_sum(tf.square(first))
  second = outer.gradient(loss, v)

  def build(mesh):
    v = tensor(mesh, "b:2 a:4", x)
    loss = mtf.reduce_sum(mtf.sin(SECOND_ORDER[name](v)))
    (first,) = mtf.gradients([loss], [v])
    return mtf.gradients([mtf.reduce_sum(mtf.square(first))], [v])

  for layout in ("", "a:x"):
    got = run(build, "x:2", layout).value()
    np.testing.assert_allclose(got, second, rtol=2e-4, atol=2e-5)


def test_special_points():
  def build(mesh):
    x = tensor(mesh, "a:4", [-1, 0, 0, 2])
    fns = [mtf.relu, mtf.leaky_relu, mtf.abs]
    grads = [g for fn in fns for g in mtf.gradients([fn(x)], [x])]
    (largest,) = mtf.gradients([mtf.reduce_max(mtf.minimum(x, 0.0))], [x])
    return [*grads, largest]

  relu, leaky, absolute, largest = run(build).values
  assert relu.tolist() == [0, 0, 0, 1]
  np.testing.assert_allclose(leaky, [0.2, 0.2, 0.2, 1])
  assert absolute.tolist() == [-1, 0, 0, 1]
  # Of the three zeros that minimum gives, all get the gradient; two of them
  # are ties of minimum, which passes on half.
  assert largest.tolist() == [0, 0.5, 0.5, 0]


def test_the_gradient_of_minimum_has_the_shape_of_its_operand():
  def build(mesh):
    x, y = tensor(mesh, "a:4 b:2"), tensor(mesh, "b:2", [3, 3])
    return mtf.gradients([mtf.minimum(x, y)], [x, y])

  dx, dy = run(build).values
  assert dx.shape == (4, 2)
  assert dy.tolist() == [2, 2.5]


def test_accumulating_keeps_the_dtype():
  def build(mesh):
    x = tensor(mesh, "a:4", dtype=tf.bfloat16)
    y = mtf.to_float(x) * 2.0
    return mtf.gradients([y, x], [x], [None, None])

  got = run(build).value()
  assert got.dtype == tf.bfloat16.as_numpy_dtype
  assert got.tolist() == [3] * 4


def test_gradients_take_lists():
  x = mtf.zeros(mtf.Mesh(mtf.Graph(), "mesh"), "a:2")
  with pytest.raises(
    TypeError, match=r"gradients: ys is .*; give a list: \[co"
  ):
    mtf.gradients(x, [x])
  with pytest.raises(TypeError, match="gradients: xs is"):
    mtf.gradients([x], x)
