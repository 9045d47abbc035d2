"""What a stack does around its layers."""

import functools

import numpy as np
import pytest

import mesh_tf2 as mtf
from mesh_tf2.transformer.layers import sublayers
from mesh_tf2.transformer.layers.transformer_layer import TransformerLayer
from mesh_tf2.transformer.model.context import Context
from mesh_tf2.transformer.model.layer_stack import LayerStack

from tests.support import running, tiny_models

B, L = mtf.Dimension("batch", 3), mtf.Dimension("length", 4)
D = mtf.Dimension("d_model", 8)
X = np.random.default_rng(0).normal(size=[3, 4, 8]).astype(np.float32)
LAYOUTS = [("", ""), ("x:2", "d_model:x"), ("x:3", "batch:x")]


class Doubling(TransformerLayer):
  """Twice the input, and a loss."""

  def call(self, context, x, losses=None):
    if context.losses is not None:
      context.losses.append(mtf.reduce_sum(x))
    return mtf.multiply(x, 2.0)


class Reducing(TransformerLayer):
  """Loses a dimension."""

  def call(self, context, x, losses=None):
    return mtf.reduce_sum(x, reduced_dim=L)


def run(build, mesh="", layout="", **kwargs):
  """Calls `build(x, context)`; returns its values and names of variables."""
  names = []

  def in_context(mesh):
    context = Context(
      model=tiny_models.language_model(),
      mesh=mesh,
      batch_dims=[B],
      length_dim=L,
      variable_dtype=mtf.VariableDType(),
      **kwargs,
    )
    x = running.tensor(mesh, [B, L, D], X)
    result = build(x, context)
    names.extend(mesh.graph.name_to_variable)
    return result

  return running.run(in_context, mesh, layout).values, names


def apply(sublayer, mesh="", layout="", **kwargs):
  """Values and names of one sub-layer applied to `X`."""
  function = functools.partial(getattr(sublayers, sublayer), **kwargs)
  (y,), names = run(lambda x, c: function(x, None, c), mesh, layout)
  return y, names


def rms(x):
  return np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6)


@pytest.mark.parametrize(("mesh", "layout"), LAYOUTS)
@pytest.mark.parametrize(
  ("name", "kwargs", "variable"),
  [
    ("sublayer_rms_norm", {"name": "other"}, "other/scale"),
    ("sublayer_scale_norm", {}, "scale_norm/scale"),
  ],
)
def test_rms_norms_divide_by_the_root_mean_square(
  mesh, layout, name, kwargs, variable
):
  y, names = apply(name, mesh, layout, **kwargs)
  np.testing.assert_allclose(y, X / rms(X), rtol=1e-5)
  assert names == [variable]


def test_a_subsampled_norm_looks_at_the_first_channels():
  y, names = apply("sublayer_rms_norm_subsampled", percentage=30.0)
  np.testing.assert_allclose(y, X / rms(X[..., :3]), rtol=1e-5)
  assert names == ["layer_norm_subsampled/scale"]


def test_a_true_layer_norm_takes_the_mean_away():
  y, names = apply("sublayer_true_layer_norm")
  np.testing.assert_allclose(y.mean(axis=-1), 0.0, atol=1e-6)
  np.testing.assert_allclose(y.std(axis=-1), 1.0, rtol=1e-4)
  scope = "true_layer_norm/layer_prepostprocess/layer_norm/layer_norm_"
  assert names == [f"{scope}scale", f"{scope}bias"]


def test_rezero_begins_with_nothing():
  y, names = apply("sublayer_rezero")
  np.testing.assert_array_equal(y, 0.0 * X)
  assert names == ["rezero_weight"]
  y, _ = apply("sublayer_rezero", initial_value=0.5)
  np.testing.assert_allclose(y, 0.5 * X)


def test_dropout_chooses_channels_for_each_example():
  (y,), _ = run(
    lambda x, c: sublayers.sublayer_dropout(
      mtf.ones_like(x), None, c, dropout_rate=0.5
    )
  )
  np.testing.assert_array_equal(np.unique(y), [0.0, 2.0])
  np.testing.assert_array_equal(y, y[:, :1].repeat(4, axis=1))
  assert not np.array_equal(y[0], y[1])


def test_there_is_no_dropout_but_in_training():
  (y,), _ = run(
    lambda x, c: sublayers.sublayer_dropout(x, None, c, dropout_rate=0.5),
    mode="eval",
  )
  np.testing.assert_array_equal(y, X)


def test_gradients_are_clipped_where_a_stack_says_so():
  def build(x, context):
    y = sublayers.sublayer_clip_activation_gradient(x, None, context, 0.25)
    return [y, *mtf.gradients([y], [x])]

  (y, dx), _ = run(build)
  np.testing.assert_array_equal(y, X)
  np.testing.assert_allclose(dx, 0.25 + 0 * X, rtol=1e-6)


SEGMENTS = np.array([[1, 1, 2, 0], [1, 0, 0, 0], [1, 1, 1, 1]])


def call_stack(x, context, layers=1, **kwargs):
  context.sequence_id = tiny_models.import_ids(x.mesh, SEGMENTS)
  stack = LayerStack(
    [Doubling() for _ in range(layers)],
    sublayers_per_layer=[
      sublayers.sublayer_call_layer,
      sublayers.sublayer_residual,
    ],
    **kwargs,
  )
  return stack.call(context, x)


def test_a_stack_adds_what_its_layers_make_and_clears_padding():
  (y,), _ = run(functools.partial(call_stack, layers=2))
  np.testing.assert_allclose(y, 9 * X * (SEGMENTS != 0)[..., None], rtol=1e-6)


def test_outputs_of_layers_are_kept_if_asked_for():
  def build(x, context):
    context.layer_outputs = []
    call_stack(x, context, layers=2)
    return context.layer_outputs

  (first, second, last), _ = run(build)
  real = (SEGMENTS != 0)[..., None]
  np.testing.assert_array_equal(first, X)
  np.testing.assert_allclose(second, X + 2 * X * real, rtol=1e-6)
  np.testing.assert_allclose(last, 9 * X * real, rtol=1e-6)


@pytest.mark.parametrize("recompute", [False, True])
def test_losses_of_layers_are_collected(recompute):
  def build(x, context):
    context.losses = []
    y = call_stack(x, context, layers=2, recompute_grads=recompute)
    loss = mtf.add_n(context.losses)
    return [y, loss, *mtf.gradients([loss], [x])]

  (_, loss, dx), _ = run(build)
  real = (SEGMENTS != 0)[..., None]
  np.testing.assert_allclose(loss, 4 * np.sum(X * real), rtol=1e-4)
  np.testing.assert_allclose(dx, np.broadcast_to(4 * real, X.shape), rtol=1e-5)


def test_a_layer_of_another_shape_is_named():
  def build(x, context):
    stack = LayerStack(
      [Reducing()], sublayers_per_layer=[sublayers.sublayer_call_layer]
    )
    return stack.call(context, x)

  message = r"Reducing.*sublayer_call_layer makes \[batch:3 d_model:8\]"
  with pytest.raises(mtf.ShapeError, match=message):
    run(build)


def test_an_unknown_mode_is_named():
  with pytest.raises(ValueError, match="mode is 'training'; it must be one of"):
    run(lambda x, c: x, mode="training")
