"""Unit scaling: who divides by the square root of what is summed over."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support import running

B = mtf.Dimension("batch", 4)
X = mtf.Dimension("x", 6)
Y = mtf.Dimension("y", 2)
H = mtf.Dimension("hidden", 8)
LAYOUTS = [("", ""), ("a:2;b:2", "x:a;hidden:b")]


@pytest.fixture
def unit_scaled():
  before = mtf.layers.set_unit_scaling(True)
  yield
  mtf.layers.set_unit_scaling(before)


def test_the_convention_is_off_unless_somebody_turns_it_on():
  assert mtf.layers.unit_scaling_convention() is False
  assert mtf.layers.unit_scaling_convention(True) is True
  assert not mtf.layers.unit_scaling()
  answers = [True, False]
  before = mtf.layers.set_unit_scaling(lambda: answers.pop())
  assert [mtf.layers.unit_scaling() for _ in range(2)] == [False, True]
  mtf.layers.set_unit_scaling(before)
  assert not mtf.layers.unit_scaling()


def contract(mesh):
  x = running.tensor(mesh, [B, X, Y])
  w = running.tensor(mesh, [Y, X, H])
  y = mtf.layers.us_einsum([x, w], mtf.Shape([B, H]))
  return [y, *mtf.gradients([y], [x])]


def plain():
  x = np.arange(48).reshape(4, 6, 2)
  w = np.arange(96).reshape(2, 6, 8)
  dx = np.broadcast_to(w.sum(axis=-1).T, x.shape)
  return np.einsum("bxy,yxh->bh", x, w), dx


def test_without_the_convention_it_is_a_plain_einsum():
  for got, wanted in zip(running.run(contract).values, plain(), strict=True):
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.usefixtures("unit_scaled")
@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
def test_a_contraction_divides_by_the_root_of_the_size_it_sums(mesh, layout):
  values = running.run(contract, mesh, layout).values
  for got, wanted in zip(values, plain(), strict=True):
    np.testing.assert_allclose(got, wanted / np.sqrt(12), rtol=1e-6)


@pytest.mark.usefixtures("unit_scaled")
def test_reduced_dimensions_may_be_named_instead():
  def build(mesh):
    x = running.tensor(mesh, [B, X])
    return [
      mtf.layers.us_einsum([x], reduced_dims=[X]),
      mtf.layers.us_einsum([x, x], output_shape=[B, X]),
    ]

  summed, kept = running.run(build).values
  x = np.arange(24).reshape(4, 6)
  np.testing.assert_allclose(summed, x.sum(axis=1) / np.sqrt(6), rtol=1e-6)
  np.testing.assert_array_equal(kept, x * x)


@pytest.mark.usefixtures("unit_scaled")
@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_kernels_have_unit_variance_and_dense_layers_divide(distribution):
  wide, out = mtf.Dimension("wide", 256), mtf.Dimension("out", 64)
  x = np.random.default_rng(0).normal(size=[4, 256]).astype(np.float32)

  def build(mesh):
    y = mtf.layers.dense(
      running.tensor(mesh, [B, wide], x),
      out,
      use_bias=False,
      kernel_initializer=mtf.layers.VarianceScalingInitializer(
        distribution=distribution
      ),
    )
    return [y, mesh.graph.all_variables[0].value]

  y, kernel = running.run(build).values
  # A normal one is cut at two deviations, and not corrected for that.
  stddev = 0.8796 if distribution == "normal" else 1
  np.testing.assert_allclose(kernel.std(), stddev, rtol=0.02)
  np.testing.assert_allclose(y, x @ kernel / 16, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("unit_scaled")
@pytest.mark.parametrize("mode", ["fan_out", "fan_avg"])
def test_only_the_fan_in_has_a_meaning(mode):
  initializer = mtf.layers.VarianceScalingInitializer(mode=mode)
  with pytest.raises(ValueError, match=rf"mode '{mode}' .* choose \"fan_in\""):
    initializer([X], [H])
