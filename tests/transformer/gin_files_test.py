"""Gin files: found, read, bound; and what a mistake in one is answered."""

import sys

import gin
import pytest

from mesh_tf2.transformer import gin_binder, gin_files, gin_statements
from mesh_tf2.transformer.gin_files import (
  GinFileError,
  parse_gin_defaults_and_flags,
)

BASE = """\
# What every run starts from.
import mesh_tensorflow.optimize
import mesh_tensorflow.transformer.learning_rate_schedules
import mesh_tensorflow.transformer.transformer
import mesh_tensorflow.transformer.transformer_layers

d_model = 1024
num_heads = 8
dropout_rate = 0.1

transformer.make_layer_stack.layers = [
    @mesh_tensorflow.transformer.transformer_layers.SelfAttention,
    @mesh_tensorflow.transformer.transformer_layers.DenseReluDense,
]
decoder/transformer.make_layer_stack.layers = [
    @mesh_tensorflow.transformer.transformer_layers.SelfAttention,
    # mesh_tensorflow.transformer.transformer_layers.EncDecAttention, twice
    @transformer_layers.EncDecAttention,
    @decoder/DenseReluDense,
]
Unitransformer.d_model = %d_model
SelfAttention.num_heads = %num_heads
SelfAttention.dropout_rate = %dropout_rate
LocalSelfAttention.dropout_rate = %dropout_rate
mesh_tensorflow.transformer.utils.run.mesh_shape = \\
    @mesh_tensorflow.transformer.utils.tpu_mesh_shape()
utils.tpu_mesh_shape.model_parallelism = 1
utils.run.optimizer = @optimize.AdafactorOptimizer
"""


def register_dummies():  # noqa: C901 - one stand-in after the other
  """Registers stand-ins under the names and modules of the original."""
  package = "mesh_tf2.transformer"

  @gin.configurable(module=f"{package}.transformer_layers")
  class SelfAttention:
    def __init__(self, num_heads=8, key_value_size=128, dropout_rate=0.0):
      self.settings = (num_heads, key_value_size, dropout_rate)

  @gin.configurable(module=f"{package}.transformer_layers")
  class EncDecAttention(SelfAttention):
    def __init__(self, relative_attention_type=None, **kwargs):
      super().__init__(**kwargs)

  @gin.configurable(module=f"{package}.transformer_layers")
  class DenseReluDense:
    def __init__(self, hidden_size=4096, dropout_rate=0.0):
      self.hidden_size = hidden_size

  @gin.configurable(module=f"{package}.transformer")
  def make_layer_stack(layers=gin.REQUIRED, num_layers=6):
    return layers, num_layers

  @gin.configurable(module=f"{package}.transformer")
  class Unitransformer:
    def __init__(self, d_model=1024, max_length=512):
      self.d_model = d_model

    @gin.configurable(module="Unitransformer")
    def sample_autoregressive(self, temperature: float | None = 0.0):
      return temperature

  @gin.configurable(module=f"{package}.utils", denylist=["model_dir"])
  def run(model_dir, mesh_shape=gin.REQUIRED, optimizer=None, train_steps=1):
    return model_dir, mesh_shape, optimizer, train_steps

  @gin.configurable(module=f"{package}.utils")
  def tpu_mesh_shape(tpu_topology=gin.REQUIRED, model_parallelism=gin.REQUIRED):
    return tpu_topology, model_parallelism

  @gin.configurable(module="mesh_tf2.optimize")
  def AdafactorOptimizer(learning_rate=None):
    return learning_rate

  for module in ("mesh_tf2.optimize", f"{package}.learning_rate_schedules"):

    @gin.configurable("product_learning_rate", module=module)
    def product_learning_rate(factors=gin.REQUIRED):
      return factors


@pytest.fixture(autouse=True)
def registry(monkeypatch):
  """A registry of gin that holds nothing but the stand-ins."""
  own = gin.selector_map.SelectorMap()
  for name, value in gin.config._REGISTRY.items():
    if name.startswith("gin."):
      own[name] = value
  monkeypatch.setattr(gin.config, "_REGISTRY", own)
  for name in ("_INVERSE_REGISTRY", "_CONFIG", "_OPERATIVE_CONFIG"):
    kept = dict(getattr(gin.config, name)) if "INVERSE" in name else {}
    monkeypatch.setattr(gin.config, name, kept)
  monkeypatch.setattr(gin.config, "_IMPORTS", set())
  monkeypatch.setattr(gin.config, "_CONFIG_IS_LOCKED", False)
  register_dummies()


@pytest.fixture
def configs(tmp_path, monkeypatch):
  """A folder of installed configs, with only a base in it."""
  folder = tmp_path / "configs"
  (folder / "models").mkdir(parents=True)
  (folder / "base.gin").write_text(BASE)
  (folder / "models/tiny.gin").write_text(
    "# -*-Python-*-\nd_model = 128\nnum_heads = 4\n"
    "mesh_tensorflow.transformer.moe.MoE1D.hidden_size = 512\n"
    "MoE1D.num_experts = 8\n"
  )
  (tmp_path / "here").mkdir()
  monkeypatch.chdir(tmp_path / "here")
  monkeypatch.setattr(gin_files, "_configs", lambda: folder)
  return folder


@pytest.fixture
def parse(configs, tmp_path):
  def _parse(text=None, **kwargs):
    if text is not None:
      (tmp_path / "here/mine.gin").write_text(text)
      kwargs["gin_files"] = ["mine.gin"]
    return parse_gin_defaults_and_flags(register=lambda: None, **kwargs)

  return _parse


def complaint(parse, text, **kwargs):
  with pytest.raises(GinFileError) as error:
    parse(text, **kwargs)
  return str(error.value)


# What is bound.


def test_a_file_in_the_style_of_the_original_binds_what_it_says(parse):
  parse()
  stack = gin.query_parameter("decoder/make_layer_stack.layers")
  names = [reference.selector for reference in stack]
  assert names == [
    "mesh_tf2.transformer.transformer_layers.SelfAttention",
    "transformer_layers.EncDecAttention",
    "DenseReluDense",
  ]
  attention = gin.get_configurable(
    "mesh_tf2.transformer.transformer_layers.SelfAttention"
  )
  assert attention().settings == (8, 128, 0.1)
  assert gin.config_is_locked()


def test_later_files_and_parameters_override_earlier_ones(parse):
  parse(
    "num_heads = 2\nd_model = 7\n",
    gin_params=["num_heads = 3", "run.train_steps = 10\nrun.optimizer = None"],
  )
  attention = gin.get_configurable(
    "mesh_tf2.transformer.transformer_layers.SelfAttention"
  )
  assert attention().settings[0] == 3
  assert gin.query_parameter("run.train_steps") == 10
  assert gin.query_parameter("run.optimizer") is None


def test_the_config_stays_open_if_asked(parse):
  parse(finalize_config=False)
  assert not gin.config_is_locked()


def test_a_block_binds_like_single_lines(parse):
  parse(
    "decoder/mesh_tensorflow.transformer.transformer_layers.DenseReluDense:\n"
    "  # a comment\n"
    "  hidden_size = 3\n"
    "\n"
    "  dropout_rate = (\n"
    "      0.5)\n"
    "run.train_steps = 4\n"
  )
  assert gin.query_parameter("decoder/DenseReluDense.hidden_size") == 3
  assert gin.query_parameter("decoder/DenseReluDense.dropout_rate") == 0.5
  assert gin.query_parameter("run.train_steps") == 4


def test_strings_and_comments_that_name_the_original_stay(parse):
  parse(
    'run.train_steps = {  # mesh_tensorflow.transformer "x\n'
    '    "mesh_tensorflow.y": "a # mesh_tensorflow.z",\n'
    "    'k': '''two\n"
    "lines of mesh_tensorflow.text''',\n"
    "}\n"
  )
  assert gin.query_parameter("run.train_steps") == {
    "mesh_tensorflow.y": "a # mesh_tensorflow.z",
    "k": "two\nlines of mesh_tensorflow.text",
  }


def test_both_names_of_a_product_of_rates_stand_for_one_thing(parse):
  one = "mesh_tf2.transformer.learning_rate_schedules.product_learning_rate"
  for name in (
    "optimize.product_learning_rate",
    "mesh_tensorflow.optimize.product_learning_rate",
    "learning_rate_schedules.product_learning_rate",
  ):
    gin.clear_config()
    parse(
      f"{name}.factors = [0.5]\nrun.optimizer = @{name}\n",
      finalize_config=False,
    )
    assert gin.query_parameter(f"{one}.factors") == [0.5]
    value = gin.query_parameter("run.optimizer")
    assert gin.get_configurable(value.selector) is gin.get_configurable(one)


def test_an_operative_config_reads_back(parse):
  parse()
  run = gin.get_configurable("mesh_tf2.transformer.utils.run")
  with gin.unlock_config():
    gin.bind_parameter("tpu_mesh_shape.tpu_topology", "2x2")
  before = run("dir")
  text = gin.operative_config_str()
  gin.clear_config()
  parse(text)
  assert run("dir") == before == ("dir", ("2x2", 1), before[2], 1)


def test_a_layer_that_is_not_there_may_be_sized_but_not_used(parse):
  skipped = parse(gin_files=["models/tiny.gin"])
  assert [source.text for source in skipped] == [
    "LocalSelfAttention.dropout_rate = %dropout_rate",
    "mesh_tensorflow.transformer.moe.MoE1D.hidden_size = 512",
    "MoE1D.num_experts = 8",
  ]
  gin.clear_config()
  text = complaint(parse, "make_layer_stack.layers = [\n  @MoE1D]")
  assert "mine.gin, line 2: there is no configurable 'MoE1D'" in text


# How files are found.


def test_files_are_found_here_then_by_prefix_then_among_the_configs(
  parse, configs, tmp_path
):
  found = []
  for folder in ("here", "one", "two"):
    (tmp_path / folder / "models").mkdir(parents=True)
  for folder in ("configs", "two", "one", "here"):
    (tmp_path / folder / "models/tiny.gin").write_text(
      f'run.train_steps = "{folder}"'
    )
    gin.clear_config()
    parse(
      gin_files=["models/tiny.gin"],
      location_prefixes=[str(tmp_path / "one"), str(tmp_path / "two")],
    )
    found.append(gin.query_parameter("run.train_steps"))
  assert found == ["configs", "two", "one", "here"]


def test_an_include_is_read_where_it_stands(parse, configs):
  parse(
    'd_model = 1\nnum_heads = 1\ninclude "models/tiny.gin"\nnum_heads = 2\n'
  )
  assert gin.query_parameter("d_model/gin.macro.value") == 128
  assert gin.query_parameter("num_heads/gin.macro.value") == 2


def test_the_configs_that_are_installed_are_listed_by_short_names(configs):
  assert gin_files.packaged_files() == ["base.gin", "models/tiny.gin"]


def test_a_missing_file_is_told_with_the_nearest_name(parse, tmp_path):
  prefix = str(tmp_path / "one")
  with pytest.raises(GinFileError) as error:
    parse(gin_files=["models/tinny.gin"], location_prefixes=[prefix])
  text = str(error.value)
  assert "there is no gin file 'models/tinny.gin'" in text
  assert f"below {prefix}" in text
  assert text.endswith("did you mean 'models/tiny.gin'?")


def test_a_missing_include_is_told_with_its_line(parse):
  text = complaint(parse, 'd_model = 1\ninclude "models/other.gin"\n')
  assert text.startswith("mine.gin, line 2: there is no gin file 'models/other")


def test_a_file_that_includes_itself_is_refused(parse):
  text = complaint(parse, "\n\ninclude 'mine.gin'\n")
  assert text.startswith("mine.gin, line 3: mine.gin includes itself")


def test_a_file_that_is_not_text_is_refused(parse, tmp_path):
  (tmp_path / "here/b.gin").write_bytes(b"\xff\xfe\x00")
  with pytest.raises(GinFileError, match=r"b\.gin cannot be read: .*utf-8"):
    parse(gin_files=["b.gin"])


# Mistakes, each with the line it is on and the nearest name.

MISTAKES = [
  (
    "\n\nSelfAtention.num_heads = 4",
    "mine.gin, line 3: there is no configurable 'SelfAtention'; did you mean "
    "'SelfAttention'?\n  SelfAtention.num_heads = 4",
  ),
  (
    "transformer_layer.SelfAttention.num_heads = 4",
    "line 1: there is no configurable 'transformer_layer.SelfAttention'; did "
    "you mean 'transformer_layers.SelfAttention'?",
  ),
  (
    "mesh_tensorflow.transformer.utils.rum.train_steps = 4",
    "'mesh_tf2.transformer.utils.rum'; did you mean "
    "'mesh_tf2.transformer.utils.run'?",
  ),
  (
    "make_layer_stack.layers = [\n  @SelfAttention,\n  @DenseRelu,\n]",
    "line 3: there is no configurable 'DenseRelu'; did you mean "
    "'DenseReluDense'?\n  @DenseRelu,",
  ),
  (
    "SelfAttention.num_head = 4",
    "line 1: SelfAttention has no parameter 'num_head'; did you mean "
    "'num_heads'?",
  ),
  (
    "EncDecAttention.key_value_sizes = 4",
    "EncDecAttention has no parameter 'key_value_sizes'; did you mean "
    "'key_value_size'?",
  ),
  (
    "SelfAttention:\n  num_heads = 1\n  key_size = 4",
    "line 3: SelfAttention has no parameter 'key_size'",
  ),
  ("SelfAtention:\n  num_heads = 1", "line 1: there is no configurable 'SelfA"),
  ("run.model_dir = 'x'", "line 1: Configurable 'run' has denylisted kwarg"),
  (
    "Unitransformer.d_model = %d_modle",
    "line 1: the macro 'd_modle' has no value; give it one: d_modle = ...; "
    "did you mean 'd_model'?",
  ),
  (
    "run.mesh_shape = %model_dir",
    "the macro 'model_dir' has no value; name the folder with --model_dir",
  ),
  (
    "a = %b\nUnitransformer.d_model = %a",
    "line 1: the macro 'b' has no value; give it one: b = ...",
  ),
  (
    "d_model = %d_ff\nd_ff = %d_model",
    "line 1: the macro 'd_model' has its value from itself, by way of "
    "mine.gin, line 2: d_ff = %d_model; give one of them a value of its own",
  ),
  (
    "a = %b\nb = %c\nc = [%d, %b]\nd = 1",
    "line 2: the macro 'b' has its value from itself, by way of mine.gin, "
    "line 3: c = [%d, %b]; give",
  ),
  ("a = %a", "line 1: the macro 'a' has its value from itself; give"),
  (
    "d_modle = 512",
    "line 1: nothing uses the macro 'd_modle'; did you mean 'd_model'?",
  ),
  (
    "product_learning_rate.factors = []",
    "'product_learning_rate' stands for more than one: "
    "optimize.product_learning_rate or "
    "learning_rate_schedules.product_learning_rate",
  ),
  (
    "import mesh_tensorflow.transformer.transfomer",
    "line 1: there is no module 'mesh_tf2.transformer.transfomer'; did you "
    "mean 'mesh_tf2.transformer.transformer'?",
  ),
  (
    "import package_that_is_missing.models",
    "there is no module 'package_that_is_missing'; install "
    "package_that_is_missing, or skip what needs packages that are not "
    "installed with --gin_skip_unknown",
  ),
  (
    "package_that_is_missing.f.x = 1",
    "there is no configurable 'package_that_is_missing.f'; install",
  ),
  ("json.dumps.x = 1", "'json.dumps'; import what registers it first"),
  (
    "d_model = 1\n\nrun.train_steps = [1,\n  2\nrun.optimizer = 3\n",
    "line 3: cannot be read (a bracket or a string that begins here is not "
    "closed)\n  run.train_steps = [1,",
  ),
  (
    "run.train_steps = [\n  1,\n  soon]",
    "line 3: 'soon' is not a value; text stands in quotes\n  soon]",
  ),
  ("run.train_steps = 1 2", "line 1: cannot be read (Expected newline.)"),
  (
    "Unitransformer.sample_autoregressive.temperature = 'warm'",
    "line 1: Unitransformer.sample_autoregressive.temperature is a number, "
    "got the text 'warm'",
  ),
  (
    "t = '1'\nUnitransformer.sample_autoregressive.temperature = %t",
    "line 1: Unitransformer.sample_autoregressive.temperature is a number, "
    "got the text '1'",
  ),
  ("run.train_steps", "line 1: wanted `name.parameter = value`"),
  ("include models", 'line 1: wanted a file: include "models/tiny.gin"'),
]


@pytest.mark.parametrize(("text", "wanted"), MISTAKES)
def test_a_mistake_is_told_with_its_line_and_the_nearest_name(
  text, wanted, parse
):
  told = complaint(parse, text)
  assert wanted in told
  assert told.count("\n") <= 1


def test_a_mistake_in_a_parameter_is_told_as_such(parse):
  text = complaint(parse, None, gin_params=["run.train_step = 3"])
  assert text == (
    "--gin_param, line 1: run has no parameter 'train_step'; did you mean "
    "'train_steps'?\n  run.train_step = 3"
  )


def test_a_slip_in_a_known_name_gets_no_advice_to_install_something(parse):
  told = complaint(parse, "transformer_layer.SelfAttention.num_heads = 4")
  assert "install" not in told


def test_what_is_overridden_need_not_have_a_value(parse):
  parse("run.train_steps = %nowhere\nrun.train_steps = 3\n")
  assert gin.query_parameter("run.train_steps") == 3


def test_a_constant_is_a_value_for_a_macro(parse, monkeypatch):
  constants = gin.selector_map.SelectorMap()
  monkeypatch.setattr(gin.config, "_CONSTANTS", constants)
  gin.constant("some.module.STEPS", 5)
  parse("run.train_steps = %some.module.STEPS")


def test_a_macro_of_an_earlier_call_is_known(parse):
  gin.parse_config("steps = 3")
  parse("run.train_steps = %steps")


def test_a_class_that_takes_anything_is_bound_with_anything(parse):
  @gin.configurable(module="mesh_tf2.transformer.transformer_layers")
  class Anything:
    def __init__(self, **kwargs):
      self.kwargs = kwargs

  parse("Anything.whatever = 3")
  assert Anything().kwargs == {"whatever": 3}


def test_a_module_of_the_user_is_imported(parse, tmp_path, monkeypatch):
  (tmp_path / "users_layers.py").write_text(
    "import gin\n@gin.configurable(module='users_layers')\n"
    "def layer(size=1):\n  return size\n"
  )
  monkeypatch.syspath_prepend(str(tmp_path))
  try:
    parse("import users_layers\nusers_layers.layer.size = 3\n")
    assert sys.modules["users_layers"].layer() == 3
    assert "import users_layers" in gin.config_str()
  finally:
    sys.modules.pop("users_layers", None)


def test_a_module_that_needs_a_missing_one_says_so(
  parse, tmp_path, monkeypatch
):
  (tmp_path / "broken_layers.py").write_text("import package_that_is_missing")
  monkeypatch.syspath_prepend(str(tmp_path))
  text = complaint(parse, "import broken_layers", skip_unknown=True)
  assert "line 1: broken_layers needs package_that_is_missing" in text


# The switch for names of packages that are not installed.

FOREIGN = """\
import mesh_tensorflow.transformer.utils
import t5_that_is_missing.models

# Parameters for mixtures:
mesh_train_dataset_fn.mixture_or_task_name = %MIXTURE_NAME
MIXTURE_NAME = 'glue'
t5_that_is_missing.models.metric.fn = @SelfAttention
run.optimizer = @t5_that_is_missing.models.get_optimizer
run.train_steps = 3
"""


def test_the_switch_skips_names_of_missing_packages(parse):
  skipped = parse(FOREIGN, skip_unknown=True)
  skipped = [source.line for source in skipped if source.file == "mine.gin"]
  assert skipped == [2, 5, 7, 8]
  assert gin.query_parameter("run.train_steps") == 3
  assert gin.query_parameter("run.optimizer").selector == (
    "optimize.AdafactorOptimizer"
  )


def test_without_the_switch_the_first_missing_package_stops(parse):
  assert "line 2: there is no module 't5_that" in complaint(parse, FOREIGN)


@pytest.mark.parametrize(
  "text",
  [
    "SelfAtention.num_heads = 4",
    "transformer_layer.SelfAttention.num_heads = 4",
    "SelfAttention.num_head = 4",
    "run.optimizer = @optimize.AdafactorOptimiser",
    "Unitransformer.d_model = %d_modle",
    "d_modle = 4",
    "import mesh_tensorflow.transformer.transfomer",
  ],
)
def test_the_switch_does_not_skip_our_names_misspelt(text, parse):
  told = complaint(parse, FOREIGN + text, skip_unknown=True)
  assert "line 10: " in told
  assert "did you mean" in told


def test_nothing_is_skipped_unless_a_package_is_missing(parse):
  text = complaint(parse, "mesh_train_dataset_fn.x = 1", skip_unknown=True)
  assert "there is no configurable 'mesh_train_dataset_fn'" in text


# Cutting text into statements.


def test_statements_know_their_lines_and_the_names_they_use():
  text = (
    "# é mesh_tensorflow.x\n"
    "a/b/mesh_tensorflow.c.d = \\\n"
    '    {"é": %x/y, 1: @mesh_tensorflow.e(),\n'
    "     2: -3}\n"
  )
  (binding,) = gin_statements.statements(text, "f.gin")
  assert binding.scope == "a/b"
  assert binding.selector == "mesh_tf2.c"
  assert binding.parameter == "d"
  assert binding.source.line == 2
  assert binding.text == (
    'a/b/mesh_tf2.c.d = \\\n    {"é": %x/y, 1: @mesh_tf2.e(),\n     2: -3}'
  )
  assert [(m.name, m.source.line) for m in binding.macros] == [("x/y", 3)]
  assert [(r.name, r.source.line) for r in binding.references] == [
    ("mesh_tf2.e", 3)
  ]


def test_the_switch_is_named_in_the_error_as_on_the_command_line():
  assert gin_files.SKIP_FLAG == gin_binder.SKIP_FLAG == "--gin_skip_unknown"
