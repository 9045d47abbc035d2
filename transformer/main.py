"""The command `mesh_transformer`, also `python -m mesh_tf2.transformer.main`.

    mesh_transformer --gin_file=models/lm_base.gin --gin_file=models/tiny.gin \
      --gin_file=layouts/single.gin --gin_file=mine.gin --model_dir=/tmp/lm

What is to be done stands in gin files and parameters: `run.entry.run` lists
what can be set. A mistake in them is a line on standard error and exit code 1.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import gin
import tensorflow as tf
from absl import app, flags

from mesh_tf2.core import quiet

from . import gin_files
from .run import entry, strategies
from .run.messages import show_messages
from .run.mistakes import mistake

_GIN_FILE = flags.DEFINE_multi_string(
  "gin_file",
  [],
  "A gin file: a path, or the short name of an installed one, such as "
  "models/tiny.gin. Later ones override earlier ones.",
)
_GIN_PARAM = flags.DEFINE_multi_string(
  "gin_param",
  [],
  "A binding such as 'run.train_steps = 100'. These override all files.",
)
_GIN_LOCATION_PREFIX = flags.DEFINE_multi_string(
  "gin_location_prefix", [], "A folder in which gin files are looked for."
)
_GIN_SKIP_UNKNOWN = flags.DEFINE_bool(
  "gin_skip_unknown", False, "Skip bindings of packages that are missing."
)
_MODEL_DIR = flags.DEFINE_string(
  "model_dir",
  None,
  "Where checkpoints and results are: run.model_dir, and the macro %model_dir.",
)
_MODULE_IMPORT = flags.DEFINE_multi_string(
  "module_import",
  [],
  "A module to import first: it may register what gin files name.",
)
_CLUSTER_TIMEOUT = flags.DEFINE_float(
  "cluster_timeout_seconds",
  600,
  "How long to wait at the start for the processes that TF_CONFIG names.",
)
_RUN_FLAGS = {
  "model_dir": _MODEL_DIR,
  "tpu": flags.DEFINE_string(
    "tpu", None, "A TPU: local, its name, or grpc://address:port."
  ),
  "tpu_job_name": flags.DEFINE_string("tpu_job_name", None, "No effect."),
  "gcp_project": flags.DEFINE_string("gcp_project", None, "No effect."),
  "tpu_zone": flags.DEFINE_string("tpu_zone", None, "No effect."),
}


def main() -> None:
  """The entry point of the command."""
  with quiet.native_messages_hidden():
    tf.config.list_physical_devices()  # looks for them, which is talkative
  app.run(_main)


def _main(arguments: Sequence[str]) -> int:
  """Does what flags and gin files say; returns the exit code."""
  show_messages()
  try:
    _run(arguments)
  except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
    return 130
  except Exception as error:
    message = mistake(error)
    if message is None:
      raise
    print(f"mesh_transformer: {message}", file=sys.stderr)
    return 1
  return 0


def _run(arguments: Sequence[str]) -> None:
  if arguments[1:]:
    raise ValueError(
      f"{arguments[1]!r} is no flag; did you mean --gin_file={arguments[1]}?"
    )
  for module in _MODULE_IMPORT.value:
    _import(module)
  strategies.join_cluster(os.environ.get("TF_CONFIG"), _CLUSTER_TIMEOUT.value)
  if _MODEL_DIR.value:
    # Files may name what they keep with the model: %model_dir.
    gin.bind_parameter("model_dir/gin.macro.value", _MODEL_DIR.value)
  gin_files.parse_gin_defaults_and_flags(
    _GIN_FILE.value,
    _GIN_PARAM.value,
    _GIN_LOCATION_PREFIX.value,
    skip_unknown=_GIN_SKIP_UNKNOWN.value,
  )
  with quiet.native_messages_hidden():
    tf.config.list_logical_devices()  # makes them; modules were to choose
  given: dict[str, Any] = {
    name: flag.value for name, flag in _RUN_FLAGS.items() if flag.value
  }
  # Nothing here is written to be rewritten: without this, TensorFlow reads the
  # source of the functions that make data again, which it cannot with every
  # version of Python.
  tf.autograph.experimental.do_not_convert(entry.run)(**given)


def _import(module: str) -> None:
  try:
    importlib.import_module(module)
  except ModuleNotFoundError as error:
    if not f"{module}.".startswith(f"{error.name}."):
      raise  # the module is there, and lacks something itself
    raise ValueError(
      f"--module_import={module}: there is no such module; is its folder in "
      "PYTHONPATH?"
    ) from None


if __name__ == "__main__":
  main()
