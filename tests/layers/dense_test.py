"""Dense layers against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running

B = mtf.Dimension("batch", 4)
X = mtf.Dimension("x", 6)
Y = mtf.Dimension("y", 2)
H = mtf.Dimension("hidden", 8)
E = mtf.Dimension("experts", 2)
LAYOUTS = [("", ""), ("a:2;b:2", "batch:a;hidden:b"), ("a:2", "x:a")]


def run(build, mesh="", layout=""):
  """Values of the results, and of the variables by name."""
  made = {}

  def with_variables(mesh):
    result = build(mesh)
    made.update(mesh.graph.name_to_variable)
    results = [result] if isinstance(result, mtf.Tensor) else list(result)
    return results + [v.value for v in made.values()]

  values = running.run(with_variables, mesh, layout).values
  split = len(values) - len(made)
  return values[:split], dict(zip(made, values[split:], strict=True))


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_dense_multiplies_adds_a_bias_and_activates(mesh, layout):
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    y = mtf.layers.dense(x, H, activation="relu", name="d")
    return [y, *mtf.gradients([y], [x])]

  (y, dx), w = run(build, mesh, layout)
  assert sorted(w) == ["d/bias", "d/kernel"]
  x = np.arange(24).reshape(4, 6)
  before = x @ w["d/kernel"] + w["d/bias"]
  np.testing.assert_allclose(y, np.maximum(before, 0), rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(
    dx, (before > 0) @ w["d/kernel"].T, rtol=1e-5, atol=1e-5
  )


def test_dense_reduces_and_makes_several_dimensions():
  def build(mesh):
    x = running.tensor(mesh, [B, X, Y])
    y = mtf.layers.dense(x, [H, E], reduced_dims=[Y, X], name="d")
    assert y.shape == mtf.Shape([B, H, E])
    return y

  (y,), w = run(build)
  assert w["d/kernel"].shape == (2, 6, 8, 2)
  x = np.arange(48).reshape(4, 6, 2)
  np.testing.assert_allclose(
    y, np.einsum("bxy,yxhe->bhe", x, w["d/kernel"]), rtol=1e-5, atol=1e-4
  )


def test_there_is_a_kernel_and_a_bias_for_each_expert():
  def build(mesh):
    x = running.tensor(mesh, [E, B, X])
    return mtf.layers.dense(x, H, reduced_dims=[X], expert_dims=[E], name="d")

  (y,), w = run(build)
  assert w["d/kernel"].shape == (2, 6, 8)
  assert w["d/bias"].shape == (2, 8)
  x = np.arange(48).reshape(2, 4, 6)
  np.testing.assert_allclose(
    y, np.einsum("ebx,exh->ebh", x, w["d/kernel"]), rtol=1e-5, atol=1e-4
  )


def test_a_dimension_may_be_mapped_to_itself():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    y = mtf.layers.dense(x, X, use_bias=False, name="d")
    (kernel,) = mesh.graph.all_variables
    assert kernel.shape == mtf.convert_to_shape("_x:6 x:6")
    return y

  (y,), w = run(build, "a:2", "x:a")
  x = np.arange(24).reshape(4, 6)
  np.testing.assert_allclose(y, x @ w["d/kernel"], rtol=1e-5, atol=1e-5)


def test_a_kernel_may_be_given():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    w = running.tensor(mesh, [X, H])
    return mtf.layers.dense(x, H, use_bias=False, kernel_weights=w)

  (y,), w = run(build)
  assert not w
  x = np.arange(24).reshape(4, 6)
  np.testing.assert_allclose(y, x @ np.arange(48).reshape(6, 8))


def test_a_kernel_can_be_made_first_and_used_later():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    kernel = mtf.layers.get_dense_kernel_weights(x, H, [X], None, None, "d")
    return mtf.layers.dense(x, H, kernel_weights=kernel, use_bias=False)

  (y,), w = run(build)
  assert list(w) == ["d/kernel"]
  x = np.arange(24).reshape(4, 6)
  np.testing.assert_allclose(y, x @ w["d/kernel"], rtol=1e-5, atol=1e-5)


def test_a_product_multiplies_layers_with_their_own_activations():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    return mtf.layers.dense_product(
      x, [X], H, ["sigmoid", "linear"], name="wi", use_bias=False
    )

  (y,), w = run(build)
  assert list(w) == ["wi_0/kernel", "wi_1/kernel"]
  x = np.arange(24).reshape(4, 6)
  gate = 1 / (1 + np.exp(-(x @ w["wi_0/kernel"])))
  np.testing.assert_allclose(y, gate * (x @ w["wi_1/kernel"]), rtol=1e-4)


def test_a_product_of_one_has_the_plain_name():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    return mtf.layers.dense_product(x, [X], H, "relu", name="wi")

  _, w = run(build)
  assert list(w) == ["wi/kernel", "wi/bias"]


def test_an_unknown_activation_is_named():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    return mtf.layers.dense(x, H, activation="rilu")

  with pytest.raises(ValueError, match="unknown activation function 'rilu'"):
    run(build)


@pytest.mark.parametrize(
  ("mode", "fan"), [("fan_in", 256), ("fan_out", 64), ("fan_avg", 160)]
)
@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_variance_is_scaled_by_the_named_fans(mode, fan, distribution):
  reduced, new = mtf.Dimension("in", 256), mtf.Dimension("out", 64)

  def build(mesh):
    x = mtf.zeros(mesh, [B, reduced])
    initializer = mtf.layers.VarianceScalingInitializer(2, mode, distribution)
    return mtf.layers.dense(x, new, kernel_initializer=initializer, name="d")

  _, w = run(build)
  kernel = w["d/kernel"]
  stddev = (2 / fan) ** 0.5
  if distribution == "normal":
    assert np.abs(kernel).max() <= 2 * stddev
    # What is left of the deviation after cutting at two of them.
    stddev *= 0.8796
  else:
    assert np.abs(kernel).max() <= 3**0.5 * stddev
  np.testing.assert_allclose(kernel.std(), stddev, rtol=0.02)


def test_unknown_modes_and_distributions_are_named():
  with pytest.raises(ValueError, match=r"mode must be fan_in.*got 'fan'"):
    mtf.layers.VarianceScalingInitializer(mode="fan")
  with pytest.raises(ValueError, match="normal or uniform, got 'gauss'"):
    mtf.layers.VarianceScalingInitializer(distribution="gauss")


def test_dense_relu_dense_maps_to_what_is_hidden_and_back():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    return mtf.layers.dense_relu_dense(x, H, False, dropout=0.5, name="f")

  (y,), w = run(build)
  assert list(w) == ["f/wi/kernel", "f/wo/kernel"]
  x = np.arange(24).reshape(4, 6)
  hidden = np.maximum(x @ w["f/wi/kernel"], 0)
  np.testing.assert_allclose(y, hidden @ w["f/wo/kernel"], rtol=1e-4)


def test_layers_without_a_name_are_numbered_for_each_graph_and_scope():
  def names():
    x = mtf.zeros(mtf.Mesh(mtf.Graph(), "mesh"), "a:2 b:3")
    for _ in range(2):
      with tf.compat.v1.variable_scope("tower"):  # both have the same weights
        mtf.layers.dense(x, H, use_bias=False)
        mtf.layers.dense(x, H, use_bias=False)
    mtf.layers.dense(x, H, use_bias=False, name="dense")
    mtf.layers.dense(x, H, use_bias=False)
    return list(x.graph.name_to_variable)

  assert (
    names()
    == names()
    == [
      "tower/dense/kernel",
      "tower/dense_1/kernel",
      "dense/kernel",
      "dense_1/kernel",
    ]
  )


def test_dropout_in_dense_relu_dense_is_shared_as_it_is_told():
  def build(mesh):
    x = mtf.ones(mesh, [B, X])
    return mtf.layers.dense_relu_dense(
      x, H, True, dropout=0.5, dropout_broadcast_dims=[B]
    )

  (y,), w = run(build)
  np.testing.assert_allclose(y, np.broadcast_to(y[:1], y.shape))
  hidden = np.maximum(w["dense_relu_dense/wi/kernel"].sum(axis=0), 0)
  assert not np.allclose(y[0], hidden @ w["dense_relu_dense/wo/kernel"])


def test_a_kernel_may_begin_with_what_a_variable_may():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    constant = tf.constant_initializer(2.0)
    y = mtf.layers.dense(x, H, kernel_initializer=constant, name="d")
    kernel = mtf.layers.get_dense_kernel_weights(x, H, [X], None, 3.0, "e")
    return [y, kernel]

  (y, kernel), _ = run(build)
  x = np.arange(24).reshape(4, 6)
  np.testing.assert_allclose(y, np.tile(2 * x.sum(axis=1)[:, None], 8))
  np.testing.assert_array_equal(kernel, np.full([6, 8], 3.0))
