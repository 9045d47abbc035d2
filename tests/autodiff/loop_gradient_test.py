"""Gradients of loops, against TensorFlow's own on one processor."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import run, tensor

RNG = np.random.default_rng(0)
X = RNG.normal(size=[4, 6]).astype(np.float32)
W = (RNG.normal(size=[6, 6]) / 3).astype(np.float32)
B = RNG.normal(size=[8, 4, 6]).astype(np.float32)
TIME = mtf.Dimension("time", 8)

LAYOUTS = [
  ("", "", "virtual"),
  ("x:2;y:2", "batch:x;d:y", "virtual"),
  ("x:2;y:2", "batch:x;d2:y", "virtual"),
  ("x:2;y:2", "batch:x;d:y", "placement"),
  ("x:2;y:4", "batch:x;time:y", "virtual"),
  ("x:2;y:2", "batch:x;d:y", "simd"),
]


def product(x, w):
  """(batch, d) times (d, d2), as (batch, d)."""
  y = mtf.einsum([x, w], "batch:4 d2:6")
  return mtf.rename_dimension(y, "d2", "d")


def close(got, want):
  for g, w in zip(got, want, strict=True):
    np.testing.assert_allclose(g, w, 2e-5, 2e-5)


@pytest.mark.parametrize("where", LAYOUTS, ids=str)
def test_a_while_loop_has_the_gradient_of_its_rounds(where):
  def build(mesh):
    x, w = tensor(mesh, "batch:4 d:6", X), tensor(mesh, "d:6 d2:6", W)
    n, y = mtf.while_loop(
      lambda n, y: mtf.less(n, 3),
      lambda n, y: [n + 1, mtf.tanh(product(y, w) + x)],
      [mtf.constant(mesh, 0, dtype=tf.int32), x],
    )
    return [n, y, *mtf.gradients([mtf.square(y)], [x, w])]

  x, w = tf.constant(X), tf.constant(W)
  with tf.GradientTape() as tape:
    tape.watch([x, w])
    y = x
    for _ in range(3):
      y = tf.tanh(y @ w + x)
    loss = tf.reduce_sum(y * y)
  close(run(build, *where).values, [3, y, *tape.gradient(loss, [x, w])])


def test_the_number_of_rounds_may_depend_on_what_is_computed():
  def build(mesh):
    x = tensor(mesh, "a:2", [1.0, 3.0])
    (y,) = mtf.while_loop(
      lambda y: mtf.less(mtf.reduce_sum(y), 30.0), lambda y: [y * y + x], [x]
    )
    return [y, *mtf.gradients([y], [x])]

  # 1 -> 2 -> 5 and 3 -> 12 -> 147; dy' = 2 y dy + 1.
  close(run(build, "x:2", "a:x").values, [[5, 147], [13, 169]])


def test_a_loop_that_does_not_begin_hands_its_gradient_through():
  def build(mesh):
    x, w = tensor(mesh, "a:2", [1.0, 3.0]), tensor(mesh, "a:2", [1.0, 3.0])
    (y,) = mtf.while_loop(
      lambda y: mtf.less(mtf.reduce_sum(y), 0.0), lambda y: [y * w], [x]
    )
    return [y, *mtf.gradients([y], [x, w])]

  close(run(build, "x:2", "a:x").values, [[1, 3], [1, 1], [0, 0]])


@pytest.mark.parametrize("kind", ["virtual", "placement"])
def test_accumulators_have_gradients(kind):
  def build(mesh):
    x = tensor(mesh, "a:4", [1.0, 2.0, 3.0, 4.0])
    _, total = mtf.while_loop(
      lambda n: mtf.less(n, 5),
      lambda n: [n + 1, mtf.reduce_sum(mtf.square(x)) * mtf.to_float(n)],
      [mtf.constant(mesh, 0, dtype=tf.int32)],
      has_accumulators=True,
      maximum_iterations=5,
    )
    return [total, *mtf.gradients([total], [x])]

  close(run(build, "x:2", "a:x", kind).values, [300, [20, 40, 60, 80]])


@pytest.mark.parametrize("rules", ["", "a:x"])
def test_the_gradient_sees_the_random_numbers_of_each_round(rules):
  def build(mesh):
    x = tensor(mesh, "a:64", np.ones(64))
    _, y = mtf.while_loop(
      lambda n, y: mtf.less(n, 2),
      lambda n, y: [n + 1, mtf.dropout(y, True, rate=0.5)],
      [mtf.constant(mesh, 0, dtype=tf.int32), x],
    )
    return [y, *mtf.gradients([y], [x])]

  y, dx = run(build, "x:2", rules).values
  np.testing.assert_array_equal(y, dx)
  assert set(y) == {0.0, 4.0}


def test_a_loop_in_a_loop_has_a_gradient():
  def inner(x, w):
    return mtf.while_loop(
      lambda n, y: mtf.less(n, 2),
      lambda n, y: [n + 1, y * w],
      [mtf.constant(x.mesh, 0, dtype=tf.int32), x],
    )[1]

  def build(mesh):
    x, w = tensor(mesh, "a:2", [1.0, 2.0]), tensor(mesh, "a:2", [3.0, 2.0])
    _, y = mtf.while_loop(
      lambda n, y: mtf.less(n, 2),
      lambda n, y: [n + 1, inner(y, w) + x],
      [mtf.constant(mesh, 0, dtype=tf.int32), x],
    )
    return [y, *mtf.gradients([y], [x, w])]

  x, w = np.array([1.0, 2.0]), np.array([3.0, 2.0])
  want = [
    x * (w**4 + w**2 + 1),
    w**4 + w**2 + 1,
    x * (4 * w**3 + 2 * w),
  ]
  close(run(build, "x:2", "a:x").values, want)


def test_what_is_recomputed_inside_a_loop_has_the_same_gradient():
  def build(mesh, wrap=True):
    x, w = tensor(mesh, "batch:4 d:6", X), tensor(mesh, "d:6 d2:6", W)

    def layer(y):
      return mtf.tanh(product(mtf.dropout(y, True, rate=0.5), w))

    def body(y, _):
      y = mtf.recompute_grad(layer, y) if wrap else layer(*y)
      return [y], []

    (y,), _ = mtf.scan(body, [x], [], TIME)
    return [y, *mtf.gradients([y], [x, w])]

  want = run(lambda mesh: build(mesh, False)).values
  close(run(build, "x:2;y:2", "batch:x;d:y").values, want)


def test_a_gradient_of_a_gradient_of_a_while_loop_is_told_the_way_out():
  def build(mesh):
    x = tensor(mesh, "a:2", [1.0, 3.0])
    (y,) = mtf.while_loop(
      lambda y: mtf.less(mtf.reduce_sum(y), 30.0), lambda y: [y * y], [x]
    )
    (dx,) = mtf.gradients([y], [x])
    return mtf.gradients([dx], [x])

  with pytest.raises(NotImplementedError, match="use scan, whose number of"):
    run(build)


def recurrent(x, b, w, reverse):
  y, ys = x, []
  for t in reversed(range(8)) if reverse else range(8):
    y = tf.tanh(y @ w + b[t])
    ys.append(y * y)
  ys = ys[::-1] if reverse else ys
  return y, tf.stack(ys)


@pytest.mark.parametrize("where", LAYOUTS, ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_is_a_recurrent_network_with_its_gradients(where, reverse):
  def build(mesh):
    x, w = tensor(mesh, "batch:4 d:6", X), tensor(mesh, "d:6 d2:6", W)
    b = tensor(mesh, "batch:4 time:8 d:6", np.swapaxes(B, 0, 1))

    def step(carried, elements):
      y = mtf.tanh(product(carried[0], w) + elements[0])
      return [y], [mtf.square(y)]

    (y,), (ys,) = mtf.scan(step, [x], [b], TIME, reverse)
    assert ys.shape == mtf.convert_to_shape("time:8 batch:4 d:6")
    weights = tensor(mesh, ys.shape, B)
    grads = mtf.gradients([y, ys], [x, w, b], [None, weights])
    return [y, ys, *grads]

  x, w, b = tf.constant(X), tf.constant(W), tf.constant(B)
  with tf.GradientTape() as tape:
    tape.watch([x, w, b])
    y, ys = recurrent(x, b, w, reverse)
    loss = tf.reduce_sum(y) + tf.reduce_sum(ys * B)
  dx, dw, db = tape.gradient(loss, [x, w, b])
  want = [y, ys, dx, dw, np.swapaxes(db, 0, 1)]
  close(run(build, *where).values, want)


def test_a_scan_has_second_derivatives():
  def build(mesh):
    x = tensor(mesh, "a:2", [1.0, 0.5])
    b = tensor(mesh, "time:8 a:2", 0.1 * np.ones([8, 2]))

    def step(carried, elements):
      return [mtf.sin(carried[0]) + elements[0]], [carried[0]]

    (y,), (ys,) = mtf.scan(step, [x], [b], TIME)
    dx, db = mtf.gradients([mtf.square(y), mtf.square(ys)], [x, b])
    return [dx, *mtf.gradients([dx, db], [x, b])]

  x, b = tf.constant([1.0, 0.5]), tf.fill([8, 2], 0.1)
  with tf.GradientTape() as outer:
    outer.watch([x, b])
    with tf.GradientTape() as tape:
      tape.watch([x, b])
      y, loss = x, 0.0
      for t in range(8):
        loss += tf.reduce_sum(y * y)
        y = tf.sin(y) + b[t]
      loss += tf.reduce_sum(y * y)
    dx, db = tape.gradient(loss, [x, b])
    total = tf.reduce_sum(dx) + tf.reduce_sum(db)
  close(run(build, "x:2", "a:x").values, [dx, *outer.gradient(total, [x, b])])


def test_many_rounds_of_bfloat16_add_up():
  def build(mesh):
    dim = mtf.Dimension("time", 512)
    w = mtf.ones(mesh, "a:2", dtype=tf.bfloat16)
    zero = mtf.zeros(mesh, "a:2", dtype=tf.bfloat16)
    _, (ys,) = mtf.scan(lambda c, e: (c, [c[0] + w]), [zero], [], dim)
    return mtf.gradients([ys], [w])

  np.testing.assert_array_equal(run(build, "x:2", "a:x").value(), [512, 512])


def test_what_a_scan_goes_along_must_be_there():
  def build(mesh):
    return mtf.scan(lambda c, e: (c, e), [], [mtf.zeros(mesh, "a:2")], TIME)

  with pytest.raises(mtf.ShapeError, match=r"along \[time:8\], which .*a:2.*"):
    run(build)


def test_a_scan_that_carries_something_else_on_is_an_error():
  def build(mesh):
    x = mtf.zeros(mesh, "a:2")
    return mtf.scan(lambda c, e: ([mtf.to_bfloat16(x)], []), [x], [], TIME)

  with pytest.raises(mtf.ShapeError, match="scan: loop variable 0 goes in as"):
    run(build)
  with pytest.raises(mtf.ShapeError, match="carries 0 tensors on, and began"):
    run(
      lambda mesh: mtf.scan(
        lambda c, e: ([], []), [mtf.zeros(mesh, "")], [], TIME
      )
    )


def test_a_program_trains_through_a_loop_in_a_compiled_function():
  program = mtf.Program("x:2", "batch:x")

  @program.function
  def step(mesh, x):
    x = mtf.import_tf_tensor(mesh, x, "batch:4 d:6")
    w = mtf.get_variable(mesh, "w", "d:6 d2:6", initializer=0.1)
    _, y = mtf.while_loop(
      lambda n, y: mtf.less(n, 2),
      lambda n, y: [n + 1, mtf.tanh(product(y, w))],
      [mtf.constant(mesh, 0, dtype=tf.int32), x],
    )
    loss = mtf.reduce_mean(mtf.square(y - 0.5))
    grads = mtf.gradients([loss], [w])
    variables = mesh.graph.trainable_variables
    mtf.optimize.SgdOptimizer(0.5).apply_grads(grads, variables)
    return loss

  losses = [float(step(X)) for _ in range(8)]
  assert losses[-1] < losses[0] * 0.8
  assert losses == sorted(losses, reverse=True)
