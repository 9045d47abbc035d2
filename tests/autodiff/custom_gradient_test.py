"""Gradients that are written by hand, or that compute again."""

import numpy as np

import mesh_tf2 as mtf
from mesh_tf2.autodiff.custom_gradient import custom_gradient, recompute_grad
from mesh_tf2.spmd.virtual import VirtualMeshImpl

A = mtf.Dimension("a", 2)


def new_mesh():
  return mtf.Mesh(mtf.Graph(), "mesh")


def values(mesh, tensors, rules=""):
  lowering = mtf.Lowering(mesh.graph, {mesh: VirtualMeshImpl("x:2", rules)})
  return [lowering.export_to_tf_tensor(t).numpy() for t in tensors]


def test_recompute_grad_gives_the_value_and_gradient_of_the_function():
  mesh = new_mesh()
  x = mtf.import_tf_tensor(mesh, np.array([5.0, 10.0], np.float32), [A])
  dy = mtf.import_tf_tensor(mesh, np.array([2.0, 3.0], np.float32), [A])
  y = recompute_grad(lambda x: x * x + x, [x])
  (dx,) = mtf.gradients([y], [x], [dy])
  got = values(mesh, [y, dx], "a:x")
  np.testing.assert_array_equal(got, [[30, 110], [22, 63]])


def test_recompute_grad_reaches_variables_made_inside():
  mesh = new_mesh()
  x = mtf.import_tf_tensor(mesh, np.array([5.0, 10.0], np.float32), [A])

  def layer(x):
    return x * mtf.get_variable(mesh, "w", [A], initializer=3.0)

  y = recompute_grad(layer, [x])
  w = mesh.graph.trainable_variables[0].value
  np.testing.assert_array_equal(
    values(mesh, mtf.gradients([y], [x, w])), [[3, 3], [5, 10]]
  )


def test_recompute_grad_draws_the_same_random_numbers_again():
  gradients = []
  for wrap in (lambda fn, xs: fn(*xs), recompute_grad):
    mesh = new_mesh()
    x = mtf.ones(mesh, [mtf.Dimension("a", 64)])
    y = wrap(lambda x: mtf.dropout(x, True, 0.5), [x])
    gradients.append(values(mesh, [y, *mtf.gradients([y], [x])]))
  y, dx = gradients[1]
  np.testing.assert_array_equal(y, dx)
  np.testing.assert_array_equal(gradients[0], gradients[1])
  assert 0 < np.count_nonzero(y) < 64


def test_recompute_grad_keeps_the_gradients_that_are_written_inside():
  def layer(x, inner):
    w = mtf.get_variable(x.mesh, "w", [A], initializer=3.0)
    clipped = mtf.layers.clip_activation_gradient(x * w, 0.5)
    return inner(lambda x: mtf.exp(x * w), [clipped])

  def plain(fn, xs):
    return fn(*xs)

  found = []
  for outer, inner in ((plain, plain), (recompute_grad, recompute_grad)):
    mesh = new_mesh()
    x = mtf.import_tf_tensor(mesh, np.array([0.5, 0.1], np.float32), [A])
    y = outer(lambda x, inner=inner: layer(x, inner), [x])
    w = mesh.graph.trainable_variables[0].value
    found.append(values(mesh, [y, *mtf.gradients([y], [x, w])], "a:x"))
  np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_recompute_grad_computes_the_function_twice_and_in_order():
  mesh = new_mesh()
  x = mtf.ones(mesh, [A])
  y = recompute_grad(lambda x: mtf.exp(mtf.exp(x)), [x])
  mtf.gradients([y], [x])
  kinds = [op.name.split("/")[-1].split("_")[0] for op in mesh.graph.operations]
  assert kinds.count("exp") == 4
  assert kinds.index("barrier") > kinds.index("custom")


def test_custom_gradient_replaces_the_gradient():
  mesh = new_mesh()
  x = mtf.ones(mesh, [A])

  def grad_fn(explicit, inputs, operations, outputs, output_grads):
    del operations, outputs
    assert explicit == inputs[:1]
    return [output_grads[0] * 7.0]

  y = custom_gradient(mtf.square, grad_fn, [x])
  got = values(mesh, [y, *mtf.gradients([y], [x])])
  np.testing.assert_array_equal(got, [[1, 1], [7, 7]])


def test_a_loop_inside_what_is_recomputed_is_copied():
  mesh = new_mesh()
  x = mtf.ones(mesh, [A])

  def loop(x):
    w = mtf.get_variable(mesh, "w", [A], initializer=2.0)
    return mtf.while_loop(
      lambda x: mtf.less(mtf.reduce_sum(x), 9.0), lambda x: [x * w], [x]
    )[0]

  y = recompute_grad(loop, [x])
  w = mesh.graph.trainable_variables[0].value
  got = values(mesh, [y, *mtf.gradients([y], [x, w])], "a:x")
  np.testing.assert_array_equal(got, [[8, 8], [8, 8], [12, 12]])


def test_an_output_that_nothing_depends_on_has_zeros_for_gradient_or_none():
  for fills in (True, False):
    seen = []

    def grad_fn(explicit, inputs, operations, outputs, output_grads, seen=seen):
      seen.extend(output_grads)
      return [output_grads[1]]

    mesh = new_mesh()
    x = mtf.ones(mesh, [A])
    _, y = custom_gradient(
      lambda x: [mtf.sin(x), mtf.cos(x)], grad_fn, [x], fills_gradients=fills
    )
    (dx,) = mtf.gradients([y], [x])
    (found,) = values(mesh, [dx])
    np.testing.assert_array_equal(found, [1, 1])
    if fills:
      np.testing.assert_array_equal(values(mesh, seen[:1])[0], [0, 0])
    else:
      assert seen[0] is None


def test_a_cache_that_is_made_inside_is_handed_on_from_step_to_step():
  def decode(wrap):
    mesh = new_mesh()
    x = mtf.import_tf_tensor(mesh, np.array([0.5, 0.25], np.float32), [A])

    def step(i, y, cache):
      made = []

      def layer(y):
        made.append(cache * 0.5 + y)
        return mtf.sin(made[0] * mtf.get_variable(mesh, "w", [A]))

      y = wrap(layer, [y])
      return [i + 1, y, made[0]]

    start = mtf.constant(mesh, 0, dtype=np.int32)
    loop = [start, x, mtf.zeros_like(x)]
    _, y, cache = mtf.while_loop(lambda i, y, c: mtf.less(i, 3), step, loop)
    w = mesh.graph.trainable_variables[0].value
    return values(mesh, [y, cache, *mtf.gradients([y, cache], [x, w])], "a:x")

  plain = decode(lambda fn, xs: fn(*xs))
  np.testing.assert_allclose(decode(recompute_grad), plain, rtol=1e-6)
  assert np.all(np.abs(plain) > 0)


def test_waiting_for_a_gradient_changes_no_other_gradient():
  mesh = new_mesh()
  x, y = (
    mtf.import_tf_tensor(mesh, np.array([2.0, 3.0], np.float32), [A])
    for _ in range(2)
  )
  bad = mtf.import_tf_tensor(mesh, np.array([np.nan, np.inf], np.float32), [A])
  squares = recompute_grad(lambda x, y: [x * x, y * y], [x, y])
  dx, dy = mtf.gradients(squares, [x, y], [bad, mtf.ones_like(x)])
  found_x, found_y = values(mesh, [dx, dy])
  np.testing.assert_array_equal(found_x, [np.nan, np.inf])
  np.testing.assert_array_equal(found_y, [4, 6])


def test_what_a_function_uses_from_outside_is_found_in_the_same_order():
  def text():
    mesh = new_mesh()
    x = mtf.ones(mesh, [A])
    outer = [mtf.sin(x * float(i)) for i in range(20)]

    def use_all(x):
      for y in outer:
        x = x * y
      return x

    mtf.gradients([recompute_grad(use_all, [x])], [x, *outer])
    return mesh.graph.to_string

  assert text() == text()
