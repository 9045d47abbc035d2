"""The configs that are shipped bind, and hold the numbers they promise."""

import math
import pathlib

import gin
import numpy as np
import pytest

from mesh_tf2.transformer import gin_files, gin_statements

FILES = gin_files.packaged_files()
CONFIGS = pathlib.Path(__file__).resolve().parents[1] / "configs"
LAYOUTS = [name for name in FILES if name.startswith("layouts/")]

VOCABULARY = 32768
# Billions of parameters by k: how wide a model is, in powers of two. They are
# the published sizes to three decimals, cut off, not rounded.
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


@pytest.mark.parametrize(("family", "k", "billions", "size_of"), FAMILIES)
def test_a_size_of_the_paper_has_the_published_number_of_parameters(
  family, k, billions, size_of
):
  name = size_file(family, k)
  numbers = sizes(name)
  d_kv, d_ff = (256, 8192) if family == "lm1b" else (128, 4096)
  assert numbers == (6, 1024, d_ff * 2**k, 8 * 2**k, d_kv)
  bound = values("base.gin", name)
  assert not bound[
    "transformer.Unitransformer.shared_embedding_and_softmax_weights"
  ]
  max_length = bound["transformer.Unitransformer.max_length"]
  count = size_of(*numbers, max_length=max_length)
  assert math.floor(count / 1e6) == round(billions * 1e3)


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
  assert {pathlib.Path(name).stem for name in LAYOUTS} == set(MESHES)


@pytest.mark.parametrize("name", [*LAYOUTS, "8x8_dp_r4.gin"])
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
  assert gin_files.parse_gin_defaults_and_flags([name]) == []


def test_the_shipped_schedule_is_the_one_of_the_paper():
  gin_files.parse_gin_defaults_and_flags(["models/sizes/lm1b_k0.gin"])
  schedule = gin.get_configurable("learning_rate_schedule_noam")
  rates = [schedule(step, 136000) for step in (0, 10000, 40000, 136000)]
  np.testing.assert_allclose(rates, [0.01, 0.01, 0.005, 0.0], rtol=1e-6)
