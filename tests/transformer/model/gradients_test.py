"""Gradients against finite differences, and against those of recomputation."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support import running, tiny_models

INPUTS = np.array([[8, 2, 1, 6, 1, 0], [2, 3, 4, 5, 6, 1]])
TARGETS = np.array([[3, 4, 1, 7, 1, 0], [5, 9, 10, 2, 3, 1]])
STEP = 1e-5


def make_model(**stack):
  stack = {
    "attention": {"relative_attention_type": "bias"},
    "feed_forward": {"activation": ["gelu", "linear"], "use_bias": True},
    **stack,
  }
  return tiny_models.encoder_decoder(stack, label_smoothing=0.1, z_loss=0.01)


def loss_and_gradients(model, dtype, mesh):
  inputs = tiny_models.import_ids(mesh, INPUTS)
  targets = tiny_models.import_ids(mesh, TARGETS)
  _, loss = model.call_simple(inputs, targets, True, variable_dtype=dtype)
  variables = mesh.graph.trainable_variables
  grads = mtf.gradients([loss], [v.value for v in variables])
  return [loss, *grads]


# Every way in which a layout makes gradients be summed over the mesh.
FAMILIES = {
  "data": ("x:2", "batch:x"),
  "model": ("y:4", "heads:y;d_ff:y;vocab:y"),
  "data and model": ("x:2;y:2", "batch:x;heads:y;d_ff:y;vocab:y"),
  "features and model": ("x:2;y:2", "d_model:x;heads:y;d_ff:y;vocab:y"),
  "positions": ("x:2;y:3", "length:x;memory_length:y"),
  "three dimensions": ("x:2;y:2;z:2", "batch:x;heads:y;d_ff:y;d_model:z"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_slopes_of_the_loss(family):
  program = mtf.Program(*FAMILIES[family], strict=True)
  dtype = mtf.VariableDType(tf.float64)
  build = functools.partial(loss_and_gradients, make_model(), dtype)
  function = program.function(build)
  function.build()
  values = tiny_models.randomize(program)
  grads = dict(zip(program.variables, function()[1:], strict=True))
  rng = np.random.default_rng(1)
  for name, variable in program.variables.items():
    value, grad = values[name], grads[name].numpy()
    at = np.unravel_index(np.argmax(np.abs(grad)), grad.shape)
    other = tuple(rng.integers(n) for n in grad.shape)
    for index in {tuple(map(int, at)), other}:
      around = []
      for step in (STEP, -STEP):
        moved = value.copy()
        moved[index] += step
        variable.assign(moved)
        around.append(float(function()[0]))
      variable.assign(value)
      slope = (around[0] - around[1]) / (2 * STEP)
      np.testing.assert_allclose(
        grad[index], slope, rtol=1e-5, atol=1e-9, err_msg=f"{name} {index}"
      )


def test_recomputing_layers_changes_no_gradient():
  results = []
  for recompute in (False, True):
    model = make_model(dropout=0.3, blocks=2, recompute_grads=recompute)
    build = functools.partial(loss_and_gradients, model, mtf.VariableDType())
    results.append(running.run(build))
  plain, recomputed = results
  names = list(plain.mesh.graph.name_to_variable)
  assert list(recomputed.mesh.graph.name_to_variable) == names
  for name, x, y in zip(
    ["loss", *names], plain.values, recomputed.values, strict=True
  ):
    np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-7, err_msg=name)
  count = len(plain.mesh.graph.operations)
  assert len(recomputed.mesh.graph.operations) > 1.2 * count
