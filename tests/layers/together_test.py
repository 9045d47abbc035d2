"""A model of many layers, with all its noise, on two layouts."""

import numpy as np

import mesh_tf2 as mtf

B = mtf.Dimension("batch", 4)
L = mtf.Dimension("length", 8)
C = mtf.Dimension("channels", 6)
H = mtf.Dimension("heads", 2)
K = mtf.Dimension("kv", 4)
X = np.random.default_rng(0).normal(size=[4, 8, 6]).astype(np.float32)


def reversible_stack(x):
  state = (x, None, x, None)
  for i in range(2):

    def f(x, i=i):
      y = mtf.layers.masked_local_attention_1d(
        x, K, H, True, window_size=3, length_per_split=4, name=f"local_{i}"
      )
      y = mtf.layers.layer_norm(y, C, name=f"norm_{i}")
      y = mtf.layers.multiplicative_jitter(y)
      return mtf.layers.annealed_dropout(y, True, 0, 10, 0.3)

    state = mtf.layers.reversible_half_residual_and_swap(*state, f)
  return state[0] + state[2]


def model(x):
  layers = mtf.layers
  x = layers.multihead_self_attention_memory_compressed(
    reversible_stack(x), True, 2, K, H, True, dropout=0.1
  )
  blocks = [mtf.Dimension("blocks", 2), mtf.Dimension("w", 4)]
  x = mtf.replace_dimensions(x, L, blocks)
  x = layers.local_self_attention_spatial_blocks(x, K, H, True, mask_right=True)
  return mtf.replace_dimensions(x, blocks, L)


def losses(mesh_shape, layout, steps=3):
  program = mtf.Program(mesh_shape, layout)

  @program.function
  def train(mesh, x):
    y = model(mtf.import_tf_tensor(mesh, x, [B, L, C]))
    y, _ = mtf.layers.batch_norm(y, True, 0.9)
    y = mtf.layers.clip_activation_gradient(y, 0.01)
    loss = mtf.reduce_sum(mtf.square(y))
    variables = mesh.graph.trainable_variables
    grads = mtf.gradients([loss], [v.value for v in variables])
    mtf.optimize.SgdOptimizer(0.1).apply_grads(grads, variables)
    return loss

  found = [float(train(X)) for _ in range(steps)]
  values = {n: v.numpy() for n, v in program.variables.items()}
  return found, values


def test_training_is_the_same_wherever_length_and_heads_are():
  found, values = losses("", "")
  split, split_values = losses("a:2;b:2", "length:a;blocks:a;heads:b")
  assert found[0] > found[1] > found[2]
  np.testing.assert_allclose(split, found, rtol=1e-4)
  assert split_values.keys() == values.keys()
  for name, value in values.items():
    np.testing.assert_allclose(
      split_values[name], value, rtol=2e-3, atol=1e-4, err_msg=name
    )


def test_a_reversible_stack_can_be_trained_in_micro_batches():
  program = mtf.Program()

  @program.function
  def gradients(mesh, x, splits=1):
    def loss_of(features):
      state = (features["x"], None, features["x"], None)
      for i in range(2):
        state = mtf.layers.reversible_half_residual_and_swap(
          *state,
          lambda x, i=i: mtf.layers.dense(
            x, C, activation="tanh", name=f"d{i}"
          ),
        )
      return {"loss": mtf.reduce_sum(mtf.square(state[2]))}

    x = mtf.import_tf_tensor(mesh, x, [B, L, C])
    return mtf.serialize_training_step({"x": x}, loss_of, B, splits)[0]

  whole, parts = gradients(X), gradients(X, splits=2)
  assert len(whole) == 4
  for x, y in zip(parts, whole, strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
