"""The configs that are shipped bind, build, and hold what they promise.

Models are built as graphs, from shapes: nothing of their size is allocated.
"""

import dataclasses
import functools
import math
import pathlib
import types

import gin
import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd.cost import build_graph, variable_cost
from mesh_tf2.spmd.lowering import check_layout
from mesh_tf2.transformer import gin_files, gin_statements
from mesh_tf2.transformer.run import context, entry, features, train_step

FILES = gin_files.packaged_files()
CONFIGS = pathlib.Path(__file__).resolve().parents[1] / "configs"


def in_folder(folder):
  return [name for name in FILES if name.startswith(folder + "/")]


LAYOUTS = [*in_folder("layouts"), "8x8_dp_r4.gin"]
MODELS = in_folder("models")
RUNS = in_folder("runs")

# Macros that the command line gives: some files do not do without them.
MACROS = ["model_dir = '/models/mine'", "data_dir = '/data/mine'"]

# Sizes that every mesh of `layouts/` divides.
TINY = ["models/tiny.gin"]
DIVISIBLE = ["num_heads = 128", "d_kv = 4"]
BATCH, LENGTH = 128, 8

VOCABULARY = 32768
# Billions of parameters by k: how wide a model is, in powers of two.
LM1B = {-1: 0.143, 0: 0.218, 1: 0.369, 2: 0.671, 3: 1.275, 4: 2.483, 5: 4.899}
WMT14 = {-1: 0.155, 0: 0.243, 1: 0.419, 2: 0.772, 3: 1.476, 4: 2.886}

# The size of the model of each file, as the original has them.
SIZES = {  # layers, d_model, d_ff, heads, d_kv
  "aiayn_base": (6, 512, 2048, 8, 64),
  "aiayn_large": (6, 1024, 4096, 16, 64),
  "bi_base": (6, 1024, 4096, 8, 128),
  "bi_w1": (6, 1024, 8192, 16, 128),
  "bi_l12": (12, 1024, 4096, 8, 128),
  "bi_l12_w1": (12, 1024, 8192, 16, 128),
  "bi_l12_w2": (12, 1024, 16384, 32, 128),
  "bi_l12_w3": (12, 1024, 32768, 64, 128),
  "lm_base": (6, 1024, 4096, 8, 128),
  "lm_w1": (6, 1024, 8192, 16, 128),
  "tiny": (2, 128, 512, 4, 32),
}
MESHES = {
  "single": "",
  "2x2_dp": "all:8",
  "4x4_dp": "all:32",
  "8x8_dp": "all:128",
  "2x2_mp": "model:8",
  "8x8_mp": "model:128",
  "2x2_dp_mp": "batch:2,model:4",
  "8x8_m4": "batch:32,model:4",
  "8x16_m2": "batch:128,model:2",
  "8x16_m8": "batch:32,model:8",
  "16x16_m8": "batch:64,model:8",
  "virtual_2x4": "batch:2;model:4",
}


@pytest.fixture(autouse=True)
def clean_gin():
  gin.clear_config()
  yield
  gin.clear_config()


@pytest.fixture
def settings_of(monkeypatch):
  """From gin files and parameters to the `Settings` of a run, not carried out.

  The vocabulary is a number: those of the files would have to be trained.
  """

  def settings_of(names, params=(), vocab_size=VOCABULARY):
    gin.clear_config()
    params = [*MACROS, *params, "utils.run.vocabulary = None"]
    assert gin_files.parse_gin_defaults_and_flags(names, params) == []
    ran = []
    monkeypatch.setattr(entry, "MODES", dict.fromkeys(entry.MODES, ran.append))
    vocabulary = types.SimpleNamespace(vocab_size=vocab_size)
    entry.run(model_dir="/models/mine", vocabulary=vocabulary)
    (settings,) = ran
    return settings

  return settings_of


def specs(model_type, batch=1):
  names = (
    ("inputs", "targets") if model_type == "bitransformer" else ("targets",)
  )
  return {name: tf.TensorSpec([batch, LENGTH], tf.int32) for name in names}


def values(*names):
  """What macros and parameters files give in the end, as Python values."""
  found = {}
  for name in names:
    text = (CONFIGS / name).read_text(encoding="utf-8")
    for statement in gin_statements.statements(text, name):
      if isinstance(statement, gin_statements.Include):
        found |= values(statement.path)
      elif not (statement.references or statement.macros):
        key, _, value = statement.text.partition("=")
        found[key.strip()] = gin.config.parse_value(value.strip("\\\n "))
  return found


def sizes(*names):
  keys = ("num_layers", "d_model", "d_ff", "num_heads", "d_kv")
  found = values("base.gin", *names)
  return tuple(found[key] for key in keys)


def language_model_size(layers, d_model, d_ff, heads, d_kv, max_length):
  """The sum of the sizes of the variables of a language model."""
  table = VOCABULARY * d_model
  attention = 4 * d_model * heads * d_kv
  block = attention + 2 * d_model * d_ff + 2 * d_model  # with two norms
  return 2 * table + max_length * d_model + layers * block + d_model


def translation_model_size(layers, d_model, d_ff, heads, d_kv, max_length):
  """The same plus, in the decoder, attention to the encoder with its norm."""
  one = language_model_size(layers, d_model, d_ff, heads, d_kv, max_length)
  tables = (2 * VOCABULARY + max_length) * d_model
  cross_attention = layers * (4 * d_model * heads * d_kv + d_model)
  return 2 * one - tables + cross_attention


FAMILIES = [
  *[("lm1b", k, billions, language_model_size) for k, billions in LM1B.items()],
  *[
    ("wmt14", k, billions, translation_model_size)
    for k, billions in WMT14.items()
  ],
]


def size_file(family, k):
  return f"models/sizes/{family}_k{'m1' if k < 0 else k}.gin"


def graph_of_the_loss(settings):
  """A model called once, on one short row; its variables have their sizes."""
  run = context.prepare(settings)

  def loss(mesh, rows):
    tensors = features.import_features(mesh, rows)
    return run.model.call_simple(
      compute_loss=True,
      mode="train",
      variable_dtype=run.variable_dtype,
      **features.model_arguments(tensors, settings.model_type),
    )

  return build_graph(loss, specs(settings.model_type))


@pytest.mark.parametrize(("family", "k", "billions", "size_of"), FAMILIES)
def test_a_size_of_the_paper_has_the_published_number_of_parameters(
  family, k, billions, size_of, settings_of
):
  name = size_file(family, k)
  d_kv, d_ff = (256, 8192) if family == "lm1b" else (128, 4096)
  numbers = (6, 1024, d_ff * 2**k, 8 * 2**k, d_kv)
  assert sizes(name) == numbers

  graph = graph_of_the_loss(settings_of([name, "layouts/single.gin"]))
  count = variable_cost(graph).parameters
  assert abs(count / 1e9 - billions) < 0.001
  max_length = values("base.gin")["transformer.Unitransformer.max_length"]
  assert count == size_of(*numbers, max_length=max_length)


@pytest.mark.parametrize(
  ("family", "embeddings", "positions", "softmax"),
  [
    (
      "lm1b",
      ["transformer/embedding"],
      ["transformer/positional_embedding"],
      ["transformer/logits/kernel"],
    ),
    (
      "wmt14",
      ["shared/embedding"],
      ["shared/positional_embedding"],
      ["decoder/logits/kernel"],
    ),
  ],
)
def test_what_the_models_of_the_paper_share_and_what_they_learn(
  family, embeddings, positions, softmax, settings_of
):
  files = [size_file(family, 0), "layouts/single.gin"]
  graph = graph_of_the_loss(settings_of(files))
  named = {v.full_name: v.shape.dimension_names for v in graph.all_variables}
  vocab = [name for name, dims in named.items() if "vocab" in dims]
  assert sorted(vocab) == sorted(embeddings + softmax)
  found = [name for name, dims in named.items() if "max_length" in dims]
  assert found == positions


def test_the_families_are_trained_as_in_the_paper():
  for family, smoothing in (("lm1b", 0.0), ("wmt14", 0.1)):
    bound = values("base.gin", size_file(family, 0))
    schedule = "learning_rate_schedules.learning_rate_schedule_noam."
    assert bound[schedule + "warmup_steps"] == 10000
    assert bound["dropout_rate"] == 0.1
    assert bound["utils.run.layout_rules"] == (
      "batch:batch;vocab:model;d_ff:model;heads:model"
    )
    label_smoothing = "decoder/transformer.Unitransformer.label_smoothing"
    assert bound[label_smoothing] == smoothing


def test_no_size_is_missing():
  found = {name for name in FILES if name.startswith("models/sizes/")}
  wanted = {size_file(family, k) for family, k, _, _ in FAMILIES}
  assert found == wanted | {"models/sizes/lm1b.gin", "models/sizes/wmt14.gin"}


@pytest.mark.parametrize("model", SIZES)
def test_a_model_has_the_sizes_of_the_original(model):
  assert sizes(f"models/{model}.gin") == SIZES[model]


@pytest.mark.parametrize("layout", MESHES)
def test_a_layout_has_the_mesh_of_the_original(layout):
  bound = values(f"layouts/{layout}.gin")
  assert bound["utils.run.mesh_shape"] == MESHES[layout]


def test_no_layout_is_missing():
  found = {pathlib.Path(name).stem for name in LAYOUTS}
  assert found == {*MESHES, "8x8_dp_r4"}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_splits_over_every_dimension_of_its_mesh_and_no_other(name):
  bound = values(name)
  pairs = [
    [part.split(":") for part in text.replace(";", ",").split(",") if part]
    for text in (
      bound["utils.run.mesh_shape"],
      bound["utils.run.layout_rules"],
    )
  ]
  (mesh, rules) = pairs
  assert {axis for axis, _ in mesh} == {axis for _, axis in rules}
  assert math.prod(int(size) for _, size in mesh) in (1, 8, 32, 128, 256, 512)


def test_activations_have_the_type_that_suits_the_device():
  bound = values("base.gin")
  assert bound["utils.get_variable_dtype.master_dtype"] == "float32"
  assert bound["utils.get_variable_dtype.slice_dtype"] == "float32"
  assert "utils.get_variable_dtype.activation_dtype" not in bound


@pytest.mark.parametrize("name", FILES)
def test_a_file_binds_and_nothing_in_it_is_skipped(name):
  assert gin_files.parse_gin_defaults_and_flags([name], MACROS) == []


def graph_of_a_step(settings):
  """Model, gradients and optimizer of one step of training."""
  run = context.prepare(settings)
  step = train_step.make_train_step(run).fn
  return build_graph(step, specs(settings.model_type, BATCH))


def check_on(graph, machine):
  """Raises LayoutError if the graph cannot be laid out on the mesh."""
  virtual = mtf.virtual_mesh_impl.VirtualMeshImpl
  impl = virtual(machine.mesh_shape, machine.layout_rules)
  check_layout(graph.operations, {op.mesh: impl for op in graph.operations})


def different_programs(settings_of):
  """Tiny models as (settings, names): many differ in their sizes only."""
  found = {}
  for name in MODELS:
    files = [name, *TINY, "layouts/single.gin"]
    settings = settings_of(files, DIVISIBLE, vocab_size=300)
    found.setdefault(gin.config_str(), (settings, []))[1].append(name)
  return found.values()


def test_a_step_of_every_model_can_be_laid_out_on_every_mesh(settings_of):
  machines = {name: settings_of([name]).machine for name in LAYOUTS}
  wrong, pairs = [], 0
  for settings, models in different_programs(settings_of):
    graphs = {}
    for layout, machine in machines.items():
      outer = machine.outer_batch  # all of a layout that the graph depends on
      if outer not in graphs:
        graphs[outer] = graph_of_a_step(
          dataclasses.replace(settings, machine=machine)
        )
      pairs += len(models)
      try:
        check_on(graphs[outer], machine)
      except mtf.LayoutError as error:
        wrong.append(f"{models} on {layout}: {error}")
  assert not wrong, "\n".join(wrong)
  assert pairs == len(MODELS) * len(LAYOUTS)


def test_a_step_assigns_to_all_variables_of_a_model(settings_of):
  files = ["models/bi_base.gin", *TINY, "layouts/virtual_2x4.gin"]
  graph = graph_of_a_step(settings_of(files, vocab_size=300))
  assigned = {v for op in graph.operations for v in op.variables}
  assert assigned == set(graph.all_variables)
  assert set(graph.trainable_variables) < assigned  # and to their slots


def test_heads_that_a_mesh_does_not_divide_are_found(settings_of):
  files = ["models/bi_base.gin", *TINY, "layouts/2x2_mp.gin"]
  settings = settings_of(files, vocab_size=300)
  with pytest.raises(mtf.LayoutError, match=r"'heads' \(4\) .*'model' \(8\)"):
    check_on(graph_of_a_step(settings), settings.machine)


@pytest.mark.parametrize("name", in_folder("problems"))
def test_a_problem_names_a_data_set_and_a_vocabulary(name, settings_of):
  gin_files.parse_gin_defaults_and_flags([name], MACROS)
  vocabulary = gin.query_parameter("run.vocabulary")
  assert "trained_sentencepiece_vocabulary" in repr(vocabulary)
  settings = settings_of([name, "layouts/single.gin"])
  assert settings.training.dataset_fn.__name__ == "text_dataset"


RATES = {  # at steps 0, 10,000, 40,000, 95,000 and 100,000 of 100,000
  "paper": [0.01, 0.01, 0.005, 95000**-0.5 / 2, 0.0],
  "constant": [0.01, 0.01, 0.01, 0.01, 0.01],
  "slanted_triangular": [
    0.01 / 32,
    0.01,
    0.01 / 32 * (1 + 31 * 60 / 90),
    0.01 / 32 * (1 + 31 * 5 / 90),
    0.01 / 32,
  ],
}


@pytest.mark.parametrize("name", in_folder("learning_rate_schedules"))
def test_a_learning_rate_is_the_one_that_its_file_describes(name, settings_of):
  settings = settings_of([name, "layouts/single.gin"])
  at = functools.partial(
    settings.training.learning_rate, total_train_steps=100000
  )
  rates = [float(at(step)) for step in (0, 10000, 40000, 95000, 100000)]
  expected = RATES[pathlib.Path(name).stem]
  np.testing.assert_allclose(rates, expected, rtol=1e-5)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_trains_and_evaluates_on_a_virtual_mesh_of_eight(
  name, settings_of
):
  settings = settings_of([name])
  assert settings.mode.value == "train_eval"
  assert settings.evaluation.split == "test"
  machine = settings.machine
  assert machine.devices is None
  assert machine.mesh_shape == mtf.convert_to_shape("batch:2;model:4")
  assert machine.layout_rules == mtf.convert_to_layout_rules(
    "batch:batch;vocab:model;d_ff:model;heads:model"
  )
  is_lm = name.endswith("_lm.gin")
  assert settings.model_type == ("lm" if is_lm else "bitransformer")


@pytest.mark.parametrize("name", in_folder("compile"))
def test_what_is_compiled_is_the_papers_model_on_the_papers_machine(
  name, settings_of
):
  settings = settings_of([name])
  assert settings.mode.value == "compile"
  is_lm = settings.model_type == "lm"
  cores, parameters = (512, 4.9e9) if is_lm else (128, 2.9e9)
  assert settings.machine.mesh_shape.size == cores
  graph = graph_of_the_loss(settings)
  count = sum(v.size for v in graph.trainable_variables)
  assert count == pytest.approx(parameters, rel=0.02)


def test_the_runs_that_are_shipped():
  assert [pathlib.Path(name).stem for name in RUNS] == [
    "multi30k_ende",
    "multi30k_lm",
    "quickstart",
    "quickstart_lm",
  ]


def test_multi30k_is_decoded_with_a_beam_of_four(settings_of):
  settings_of(["runs/multi30k_ende.gin"])
  assert gin.query_parameter("Bitransformer.decode.beam_size") == 4


def test_the_data_of_multi30k_is_where_the_macro_says(settings_of):
  for name in ("runs/multi30k_ende.gin", "runs/multi30k_lm.gin"):
    settings_of([name])
    assert gin.query_parameter("%data_dir") == "/data/mine"
