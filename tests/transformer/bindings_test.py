"""What gin files can name, and that binding it has an effect."""

import ast
import inspect
import pathlib

import gin
import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.transformer import bindings, gin_names
from mesh_tf2.transformer.run import entry

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def clean_gin():
  gin.clear_config()
  yield
  gin.clear_config()


def path_of(name):
  """The file of a module of the transformer or the data, or None."""
  parts = name.removeprefix("mesh_tf2.").split(".")
  path = ROOT.joinpath(*parts)
  for found in (path.with_suffix(".py"), path / "__init__.py"):
    if found.exists() and parts[0] in ("transformer", "data"):
      return found
  return None


def imports(name, path):
  package = name.split(".")
  if path.name != "__init__.py":
    package = package[:-1]
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.ImportFrom):
      base = package[: len(package) - node.level + 1] if node.level else []
      module = ".".join([*base, *filter(None, [node.module])])
      yield module
      yield from (f"{module}.{alias.name}" for alias in node.names)


def test_every_file_that_registers_something_is_imported():
  todo, seen = ["mesh_tf2.transformer.bindings"], set()
  while todo:
    name = todo.pop()
    path = path_of(name)
    if path is not None and path not in seen:
      seen.add(path)
      todo += imports(name, path)
  registering = {
    path
    for folder in ("transformer", "data")
    for path in (ROOT / folder).rglob("*.py")
    if "gin.configurable(" in path.read_text()
    or "\n@configurable" in path.read_text()
  }
  assert len(registering) > 20
  assert registering <= seen


# What the original's `run` takes, in its order.
RUN = """tpu_job_name tpu gcp_project tpu_zone model_dir model_type vocabulary
train_dataset_fn eval_dataset_fn dataset_split autostack eval_checkpoint_step
export_checkpoint_step export_path mode iterations_per_loop
save_checkpoints_steps keep_checkpoint_max eval_summary_dir batch_size
train_steps total_run_steps sequence_length mesh_shape mesh_devices layout_rules
learning_rate_schedule optimizer predict_fn variable_filter
perplexity_eval_steps init_checkpoint ensemble_inputs train_model_fn
skip_seen_data seen_data_init_step output_eval_examples
checkpoint_input_pipeline"""


def test_run_takes_what_the_original_takes_in_the_same_order():
  names = list(inspect.signature(entry.run).parameters)
  assert names[: len(RUN.split())] == RUN.split()


@pytest.mark.parametrize(
  ("selector", "name"),
  [
    ("utils.run", "mesh_tf2.transformer.utils.run"),
    ("optimize.AdafactorOptimizer", "mesh_tf2.optimize.AdafactorOptimizer"),
    ("AdamWeightDecayOptimizer", "mesh_tf2.optimize.AdamWeightDecayOptimizer"),
    ("MomentumOptimizer", "mesh_tf2.optimize.MomentumOptimizer"),
    ("SgdOptimizer", "mesh_tf2.optimize.SgdOptimizer"),
    ("AdamWOptimizer", "mesh_tf2.optimize.AdamWOptimizer"),
    (
      "AdafactorWithMultiLRSchedule",
      "mesh_tf2.optimize.AdafactorWithMultiLRSchedule",
    ),
    ("AdamWithMultiLRSchedule", "mesh_tf2.optimize.AdamWithMultiLRSchedule"),
    ("compute_lr_for_step", "mesh_tf2.optimize.compute_lr_for_step"),
    (
      "product_learning_rate",
      "mesh_tf2.transformer.learning_rate_schedules.product_learning_rate",
    ),
    ("adafactor_decay_rate_pow", "mesh_tf2.optimize.adafactor_decay_rate_pow"),
    ("tpu_mesh_shape", "mesh_tf2.transformer.utils.tpu_mesh_shape"),
    ("Bitransformer.decode", "Bitransformer.decode"),
    ("sample_autoregressive", "Unitransformer.sample_autoregressive"),
    ("decode_from_file", "mesh_tf2.transformer.utils.decode_from_file"),
    ("clean_decodes", "mesh_tf2.transformer.utils.clean_decodes"),
  ],
)
def test_a_selector_of_the_original_stands_for_one_thing(selector, name):
  assert gin_names.matches(selector) == [name]


def test_limits_of_stacks_reach_the_graph():
  gin.bind_parameter("rewrite_stack_variables.max_combined_variable_size", 2)
  graph = mtf.Graph()
  mesh = mtf.Mesh(graph, "mesh")
  for name in "abc":
    mtf.get_variable(mesh, name, "d:1")
  graph.rewrite_stack_variables()
  assert [v.full_name for v in graph.all_variables] == ["stacked/a", "c"]


def test_the_number_of_steps_reaches_the_rates_of_single_variables():
  gin.bind_parameter("compute_lr_for_step.train_steps", 50)
  optimizer = gin.get_configurable("AdamWithMultiLRSchedule")(
    variable_search=["^w$"],
    alt_lr_schedules=[lambda step, total: step / total],
    learning_rate=1.0,
  )
  graph = mtf.Graph()
  w = mtf.get_variable(mtf.Mesh(graph, "mesh"), "w", "a:2")
  assert optimizer.learning_rate_of(w.operation)(10).numpy() == 0.2


def test_the_offset_of_the_decay_rate_reaches_the_optimizer():
  gin.bind_parameter("adafactor_decay_rate_pow.offset", 100)
  rates = []

  class Noting(bindings.AdafactorOptimizer):
    def apply_grad(self, grad, var):
      rates.append(mtf.optimize.base.scalar(self._decay_rate, var.graph))
      return []

  graph = mtf.Graph()
  graph.step = tf.constant(107)
  w = mtf.get_variable(mtf.Mesh(graph, "mesh"), "w", "a:2")
  Noting().apply_grads([w], [w])
  np.testing.assert_allclose(rates, [1 - 8**-0.8])
