"""What gin files bind of the language's layers holds for every layer."""

import gin
import numpy as np
import pytest

import mesh_tf2 as mtf
from mesh_tf2.transformer import bindings  # noqa: F401  registers
from mesh_tf2.transformer.layers.attention import attention
from mesh_tf2.transformer.layers.attention_params import AttentionParams

from tests.support import running

B = mtf.Dimension("batch", 2)
L = mtf.Dimension("length", 3)
M = mtf.Dimension("memory_length", 3)
D = mtf.Dimension("d_model", 64)
H = mtf.Dimension("heads", 4)
K = mtf.Dimension("d_kv", 16)
X = np.random.default_rng(0).normal(size=[2, 3, 64]).astype(np.float32)


@pytest.fixture(autouse=True)
def clean_gin():
  gin.clear_config()
  yield
  gin.clear_config()


def kernel(mesh):
  """Of a dense layer that is given no initializer."""
  x = running.tensor(mesh, [B, L, D], X)
  mtf.layers.dense(x, mtf.Dimension("d_ff", 256), use_bias=False)
  return mesh.graph.all_variables[0].value


def test_the_scale_of_kernels_can_be_bound():
  gin.bind_parameter("VarianceScalingInitializer.scale", 4.0)
  gin.bind_parameter("VarianceScalingInitializer.mode", "FAN_OUT")
  gin.bind_parameter("VarianceScalingInitializer.distribution", "uniform")
  got = running.run(kernel).value()
  np.testing.assert_allclose(got.std(), (4 / 256) ** 0.5, rtol=0.02)
  assert np.abs(got).max() <= (3 * 4 / 256) ** 0.5


def test_the_unit_scaling_convention_can_be_bound():
  assert not mtf.layers.unit_scaling()
  gin.bind_parameter("unit_scaling_convention.value", True)
  assert mtf.layers.unit_scaling()
  got = running.run(kernel).value()
  # Cut at two standard deviations.
  np.testing.assert_allclose(got.std(), 0.8796, rtol=0.02)
  gin.clear_config()
  assert not mtf.layers.unit_scaling()


@pytest.mark.parametrize("fold", [True, False])
def test_attention_keeps_to_the_unit_scaling_convention(fold):
  gin.bind_parameter("unit_scaling_convention.value", True)

  def build(mesh):
    params = AttentionParams(
      mesh,
      query_input_dim=D,
      memory_input_dim=D,
      output_dim=D,
      key_dim=K,
      value_dim=K,
      query_heads_dims=[H],
      memory_heads_dims=[H],
      variable_dtype=mtf.VariableDType(),
      fold_scaling_into_initializer=fold,
    )
    x = running.tensor(mesh, [B, L, D], X)
    memory = mtf.rename_dimension(x, L.name, M.name)
    q, k = params.compute_q(x), params.compute_k(memory)
    o = attention(q, k, params.compute_v(memory), M, K, K)
    y = params.compute_output(o, mtf.Shape([B, L, D]))
    return [y, params.wq, params.wk, params.wv, params.wo]

  y, *kernels = running.run(build).values
  for w in kernels:
    np.testing.assert_allclose(w.std(), 1, rtol=0.05)
  wq, wk, wv = (w.reshape(64, 4, 16) for w in kernels[:3])
  q, k, v = (np.einsum("bld,dhk->blhk", X, w) / 8 for w in (wq, wk, wv))
  e = np.exp(np.einsum("blhk,bmhk->bhlm", q, k) / 4)
  weights = e / e.sum(axis=-1, keepdims=True)
  o = np.einsum("bhlm,bmhk->blhk", weights, v).reshape(2, 3, 64)
  np.testing.assert_allclose(y, o @ kernels[3] / 8, rtol=1e-4, atol=1e-5)


def test_adafactor_makes_full_steps_under_unit_scaling():
  def change(unit):
    gin.bind_parameter("unit_scaling_convention.value", unit)
    program = mtf.Program()

    @program.function
    def step(mesh):
      w = mtf.get_variable(mesh, "w", [D], initializer=1.0)
      optimizer = mtf.optimize.AdafactorOptimizer(
        multiply_by_parameter_scale=False
      )
      optimizer.apply_grads([mtf.ones_like(w)], [w.operation])
      return w

    step()
    return 1 - program.variables["w"].numpy()[0]

  np.testing.assert_allclose(change(True), 20 * change(False), rtol=1e-3)
