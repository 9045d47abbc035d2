"""A few steps of training on a mesh."""

import numpy as np

import mesh_tf2 as mtf

from tests.support import tiny_models

LEARNING_RATE = 0.3


def copy_task(rng):
  """Sentences of four words and an end, to be repeated."""
  words = rng.integers(2, tiny_models.VOCAB_SIZE, size=[16, 4])
  ends = np.ones([16, 1], np.int64)
  return np.concatenate([words, ends, 0 * ends], axis=1).astype(np.int32)


def test_the_loss_of_a_copy_task_falls_in_twenty_steps_of_descent():
  model = tiny_models.encoder_decoder(
    {"dropout": 0.05}, shared_embedding_and_softmax_weights=True
  )
  program = mtf.Program("x:2;y:2", "batch:x;heads:y;d_ff:y;vocab:y")

  @program.function
  def train(mesh, ids):
    shape = mtf.Shape([("batch", 16), ("length", 6)])
    ids = mtf.import_tf_tensor(mesh, ids, shape)
    _, loss = model.call_simple(ids, ids, True)
    variables = mesh.graph.trainable_variables
    grads = mtf.gradients([loss], [v.value for v in variables])
    for v, g in zip(variables, grads, strict=True):
      mtf.assign_sub(v, g * LEARNING_RATE)
    return loss

  rng = np.random.default_rng(0)
  losses = [float(train(copy_task(rng))) for _ in range(20)]
  assert np.all(np.isfinite(losses))
  assert np.mean(losses[-3:]) < 0.8 * losses[0], losses
  assert int(program.step) == 20
