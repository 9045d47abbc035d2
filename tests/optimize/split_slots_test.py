"""Slots split where weights are replicated: less memory, the same training."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.core.slot_names import slot_shape

BATCH, WIDTH, HIDDEN = 8, 8, 16
STEPS = 3
OPTIMIZERS = {
  "momentum": lambda: mtf.optimize.MomentumOptimizer(0.05, 0.9),
  "adam with weight decay": lambda: mtf.optimize.AdamWeightDecayOptimizer(
    0.01, 0.1
  ),
  "adamw": lambda: mtf.optimize.AdamWOptimizer(0.01),
  "adafactor": lambda: mtf.optimize.AdafactorOptimizer(
    learning_rate=0.05, beta1=0.9, min_dim_size_to_factor=8
  ),
}
DATA = "batch:x"
BOTH = "batch:x;hidden:y"
# Mesh, layout without a rule for slots, rules for slots.
SETTINGS = {
  "data parallel": ("x:4", DATA, "slot_width:x"),
  "the other dimension": ("x:4", DATA, "slot_hidden:x"),
  "both named: the first of each variable": (
    "x:4",
    DATA,
    "slot_hidden:x;slot_width:x",
  ),
  "weights split too": ("x:2;y:2", BOTH, "slot_width:x"),
  "the weights' own dimension": ("x:2;y:2", BOTH, "slot_hidden:x"),
}


def network(mesh, x):
  """Two layers and their biases; the loss of a batch."""
  batch, width, hidden = mtf.convert_to_shape(
    f"batch:{BATCH} width:{WIDTH} hidden:{HIDDEN}"
  )
  x = mtf.import_tf_tensor(mesh, x, [batch, width])

  def weight(name, *dims):
    return mtf.get_variable(
      mesh, name, dims, initializer=mtf.initializers.RandomNormal(0.3)
    )

  h = mtf.relu(
    mtf.einsum([x, weight("w", width, hidden)], [batch, hidden])
    + weight("bias", hidden)
  )
  y = mtf.einsum([h, weight("v", hidden, width)], [batch, width])
  return mtf.reduce_mean(mtf.square(y - x * 0.5 - 1.0))


def trainer(optimizer, mesh_shape, layout, devices=None):
  program = mtf.Program(mesh_shape, layout, devices=devices)

  @program.function
  def train(mesh, x):
    loss = network(mesh, x)
    variables = mesh.graph.trainable_variables
    grads = mtf.gradients([loss], [v.value for v in variables])
    OPTIMIZERS[optimizer]().apply_grads(grads, variables)
    return loss

  return program, train


def batch_of(step):
  rng = np.random.RandomState(step)
  return np.float32(rng.standard_normal([BATCH, WIDTH]))


def losses_and_values(optimizer, mesh_shape, layout, devices=None):
  program, train = trainer(optimizer, mesh_shape, layout, devices)
  losses = [float(train(batch_of(step))) for step in range(STEPS)]
  return losses, {n: v.numpy() for n, v in program.variables.items()}


whole = functools.lru_cache(lambda name: losses_and_values(name, "", ""))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_split_slots_train_the_same(optimizer, setting):
  mesh_shape, layout, rules = SETTINGS[setting]
  losses, values = losses_and_values(optimizer, mesh_shape, f"{layout};{rules}")
  want_losses, want = whole(optimizer)
  np.testing.assert_allclose(losses, want_losses, rtol=1e-5)
  assert set(values) == set(want)
  for name, value in want.items():
    np.testing.assert_allclose(
      values[name], value, rtol=1e-4, atol=1e-6, err_msg=name
    )


def test_split_slots_train_the_same_on_a_list_of_devices():
  losses, _ = losses_and_values(
    "adamw", "x:2;y:2", f"{BOTH};slot_width:x", [""] * 4
  )
  np.testing.assert_allclose(losses, whole("adamw")[0], rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["adamw", "adafactor"])
def test_variables_that_are_split_already_keep_their_slots(optimizer):
  shape = mtf.convert_to_shape(f"experts:4 width:{WIDTH} hidden:{HIDDEN}")
  sizes = shape.to_integer_list
  values = []
  for mesh_shape, layout in (("", ""), ("x:4", "experts:x;slot_width:x")):
    program = mtf.Program(mesh_shape, layout)

    @program.function
    def train(mesh, g, h):
      w = mtf.get_variable(mesh, "w", shape, initializer=1.0)
      b = mtf.get_variable(mesh, "b", shape[1:], initializer=1.0)
      grads = [
        mtf.import_tf_tensor(mesh, x, y.shape) for x, y in ((g, w), (h, b))
      ]
      OPTIMIZERS[optimizer]().apply_grads(grads, [w, b])
      return ()

    for step in range(STEPS):
      rng = np.random.RandomState(step)
      train(*(np.float32(rng.standard_normal(n)) for n in (sizes, sizes[1:])))
    values.append({n: v.numpy() for n, v in program.variables.items()})
  for name, value in values[0].items():
    np.testing.assert_allclose(
      values[1][name], value, rtol=1e-4, atol=1e-6, err_msg=name
    )
  suffix = {"adamw": "/adam_m", "adafactor": "_slot_m"}[optimizer]
  assert slices_of(program, "w" + suffix) == [1, WIDTH, HIDDEN]
  assert slices_of(program, "b" + suffix) == [WIDTH // 4, HIDDEN]


def test_a_norm_inside_of_a_loop_does_not_disturb_the_optimizer():
  program = mtf.Program("x:2", "a:x")

  @program.function
  def train(mesh):
    w = mtf.get_variable(mesh, "w", "a:4", initializer=1.0)
    g = w * 2
    i, total = mtf.while_loop(
      lambda i, total: mtf.less(i, 3),
      lambda i, total: [i + 1, total + mtf.optimize.global_norm([g])],
      [mtf.zeros(mesh, [], dtype=tf.int32), mtf.zeros(mesh, [])],
    )
    mtf.optimize.MomentumOptimizer(0.5, 0.0).apply_grads([g], [w])
    return i, total

  i, total = train()
  assert int(i) == 3
  np.testing.assert_allclose(total, 12.0, rtol=1e-6)
  np.testing.assert_array_equal(program.variables["w"].numpy(), 0.0)


def slices_of(program, name):
  variable = program.store[name]
  return program.mesh_impl.slice_sizes(variable.read())


def test_a_rule_splits_slots_and_not_their_variables():
  program, train = trainer("adamw", "x:4", f"{DATA};slot_width:x")
  train(batch_of(0))
  assert slices_of(program, "w") == [WIDTH, HIDDEN]
  assert slices_of(program, "w/adam_m") == [WIDTH // 4, HIDDEN]
  assert slices_of(program, "v/adam_v") == [HIDDEN, WIDTH // 4]
  assert slices_of(program, "bias/adam_v") == [HIDDEN]


def test_without_a_rule_slots_are_split_as_their_variables():
  program, train = trainer("adamw", "x:2;y:2", BOTH)
  train(batch_of(0))
  assert slices_of(program, "w") == [WIDTH, HIDDEN // 2]
  assert slices_of(program, "w/adam_m") == [WIDTH, HIDDEN // 2]


def test_factored_slots_are_split_too():
  program, train = trainer("adafactor", "x:4", f"{DATA};slot_hidden:x")
  train(batch_of(0))
  assert slices_of(program, "w_slot_vc") == [HIDDEN // 4]
  assert slices_of(program, "w_slot_vr") == [WIDTH]


def test_the_cost_shows_the_memory_that_is_saved_and_a_scattered_sum():
  program, train = trainer("adamw", "x:4", DATA)
  before = program.cost(train, batch_of(0))
  program, train = trainer("adamw", "x:4", f"{DATA};slot_width:x")
  after = program.cost(train, batch_of(0))
  matrices = 2 * WIDTH * HIDDEN
  parameters = matrices + HIDDEN
  count = 8  # of the steps, an int64
  assert before.variables.bytes_per_processor == 3 * 4 * parameters + count
  saved = 2 * 4 * matrices * 3 // 4
  assert (
    before.variables.bytes_per_processor - after.variables.bytes_per_processor
    == saved
  )

  def elements(cost, kind):
    return sum(c.elements for c in cost.collectives if c.kind == kind)

  loss = 1
  assert elements(before, "allreduce") == parameters + loss
  # The bias has no dimension to split: its gradients are reduced as ever.
  assert elements(after, "allreduce") == HIDDEN + loss
  assert elements(after, "reduce_scatter") == matrices // 4
  assert elements(after, "allconcat") == matrices
  assert {c.kind for c in after.collectives} == {
    "allreduce", "reduce_scatter", "allconcat"
  }  # fmt: skip


def clipping_trainer(mesh_shape, layout):
  """Scaled losses, clipped gradients, averaged weights."""
  program = mtf.Program(mesh_shape, layout)
  scaling = mtf.optimize.LossScaling()
  average = mtf.optimize.ExponentialMovingAverage(0.9)

  @program.function
  def train(mesh, x):
    loss = network(mesh, x)
    variables = mesh.graph.trainable_variables
    grads = mtf.gradients(
      [scaling.scale_loss(loss)], [v.value for v in variables]
    )
    grads, norm = mtf.optimize.clip_by_global_norm(scaling.unscale(grads), 0.1)
    updates = mtf.optimize.AdamWOptimizer(0.01).apply_grads(grads, variables)
    scaling.update(mtf.optimize.all_finite([norm]), updates)
    average.update(variables)
    return loss

  return program, train


def test_clipped_scaled_and_averaged_training_is_the_same():
  results = []
  for mesh_shape, layout in (("", ""), ("x:2;y:2", f"{BOTH};slot_width:x")):
    program, train = clipping_trainer(mesh_shape, layout)
    losses = [float(train(batch_of(step))) for step in range(STEPS)]
    results.append(
      (losses, {n: v.numpy() for n, v in program.variables.items()})
    )
  np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-5)
  assert set(results[0][1]) == set(results[1][1])
  for name, value in results[0][1].items():
    np.testing.assert_allclose(
      results[1][1][name], value, rtol=1e-4, atol=1e-6, err_msg=name
    )


def test_clipping_and_scaling_leave_the_sums_scattered():
  program, train = clipping_trainer("x:4", f"{DATA};slot_width:x")
  cost = program.cost(train, batch_of(0))
  sent = {}
  for c in cost.collectives:
    sent[c.kind] = sent.get(c.kind, 0) + c.elements
  matrices = 2 * WIDTH * HIDDEN
  assert sent["reduce_scatter"] == matrices // 4
  assert sent["allconcat"] == matrices
  # The bias, the loss, and a norm of each of three gradients.
  assert sent["allreduce"] <= HIDDEN + 1 + 3


@pytest.mark.parametrize("first", ["", ";slot_width:x"])
@pytest.mark.parametrize("optimizer", ["adamw", "adafactor"])
def test_a_checkpoint_of_one_layout_goes_on_in_the_other(
  optimizer, first, tmp_path
):
  second = ";slot_width:x" if not first else ""
  path = str(tmp_path / "ckpt-1")
  program, train = trainer(optimizer, "x:4", DATA + first)
  train(batch_of(0))
  program.save(path)
  other, go_on = trainer(optimizer, "x:4", DATA + second)
  other.restore(path)
  losses = [float(go_on(batch_of(step))) for step in range(1, STEPS)]
  np.testing.assert_allclose(losses, whole(optimizer)[0][1:], rtol=1e-5)


def test_names_and_shapes_in_a_checkpoint_are_those_of_unsplit_slots(tmp_path):
  inventories = []
  for i, rules in enumerate(["", ";slot_width:x"]):
    program, train = trainer("adafactor", "x:4", DATA + rules)
    train(batch_of(0))
    program.save(str(tmp_path / f"ckpt-{i}"))
    reader = tf.train.load_checkpoint(str(tmp_path / f"ckpt-{i}"))
    inventories.append(reader.get_variable_to_shape_map())
  assert inventories[0] == inventories[1]
  assert inventories[0]["w_slot_vc"] == [HIDDEN]


# What a rule means, apart from optimizers.


def axes(names, layout, mesh="x:2 y:2"):
  """The mesh axis of each dimension of a slot of a variable."""
  shape = slot_shape(mtf.Shape([(n, 8) for n in names.split()]))
  rules = mtf.convert_to_layout_rules(layout)
  return list(rules.tensor_layout(shape, mtf.convert_to_shape(mesh)))


@pytest.mark.parametrize(
  ("names", "layout", "want"),
  [
    ("a b", "", [None, None]),
    ("a b", "a:x", [0, None]),
    ("a b", "a:x;slot_b:y", [0, 1]),
    ("a b", "slot_a:x", [0, None]),
    ("a b", "a:x;slot_a:y", [1, None]),
    ("a b", "slot_a:x;slot_b:x", [0, None]),
    ("b a", "slot_a:x;slot_b:x", [0, None]),
    ("a b", "b:x;slot_a:x", [None, 0]),
    ("a b", "slot_a:z", [None, None]),
    ("experts a b", "experts:x;slot_a:x", [0, None, None]),
    ("slot_a", "slot_a:x", [0]),
    ("slot_a", "slot_slot_a:x", [0]),
  ],
)
def test_a_rule_for_slots_counts_where_its_mesh_dimension_is_free(
  names, layout, want
):
  assert axes(names, layout) == want


def test_a_rule_for_slots_leaves_a_dimension_of_that_name_alone():
  rules = mtf.convert_to_layout_rules("a:x;slot_b:x")
  shape = mtf.convert_to_shape("slot_a:8")
  assert list(rules.tensor_layout(shape, mtf.convert_to_shape("x:2"))) == [None]


def test_two_rules_for_one_slot_are_an_error():
  with pytest.raises(
    mtf.LayoutError, match=r"'slot_a' maps to several.*'slot_a:x', 'slot_a:y'"
  ):
    axes("a b", "slot_a:x;slot_a:y")


def test_a_slot_that_does_not_divide_is_an_error():
  _, train = trainer("momentum", "x:3;y:2", "hidden:y;slot_width:x")
  with pytest.raises(mtf.LayoutError, match="8 is not divisible by 3"):
    train(batch_of(0))


def test_a_program_that_does_not_train_says_nothing_of_rules_for_slots():
  program = mtf.Program("x:4", f"{DATA};slot_width:x", strict=True)
  program.function(network)(batch_of(0))


@pytest.mark.parametrize(
  ("rules", "said"),
  [
    (
      "batch:x;slot_wdth:x",
      "no tensor has a dimension 'slot_wdth' .did you mean \"slot_width\"",
    ),
    (
      "batch:x;width:x;slot_hidden:x",
      "'x' splits another dimension of every variable with 'hidden'",
    ),
  ],
)
def test_a_rule_for_slots_that_splits_nothing_is_told(rules, said):
  program = mtf.Program("x:2", rules, strict=True)

  @program.function
  def train(mesh):
    w = mtf.get_variable(mesh, "w", f"width:{WIDTH} hidden:{HIDDEN}")
    x = mtf.zeros(mesh, f"batch:{BATCH}")
    mtf.optimize.MomentumOptimizer(0.1, 0.9).apply_grads([w], [w])
    return x

  with pytest.raises(ValueError, match=said):
    train()
