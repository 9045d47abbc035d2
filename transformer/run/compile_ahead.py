"""Compiles a step of training for a TPU that is not here, and prints a table.

No checkpoint is looked for, no data is read, and no variable is made.
"""

from __future__ import annotations

import gin
import tensorflow as tf

import mesh_tf2 as mtf

from .context import prepare
from .mesh_shapes import MODULE
from .settings import Settings
from .train_step import make_train_step


@gin.configurable(module=MODULE)
def compile_step(settings: Settings, topology: str = gin.REQUIRED) -> None:
  """Prints memory, time and communication of each core as a table.

  Args:
    settings: of a run.
    topology: the TPU: "v2:16x16x1"; see `mtf.tpu.compile`.

  Raises:
    MissingCompilerError: there is no compiler for TPUs here.
    ValueError: there is no such topology, or it has another number of cores
      than the mesh.
  """
  report = compiled_step(settings, topology)
  print(f"{report}\n\ncompiled in {report.compile_seconds:.0f} s")


def compiled_step(settings: Settings, topology: str) -> mtf.tpu.CompiledProgram:
  """What the compiler says of a step of training; see `compile_step`."""
  context = prepare(settings)
  return mtf.tpu.compile(
    context.program,
    make_train_step(context),
    batch_spec(settings),
    topology=topology,
  )


def batch_spec(settings: Settings) -> dict[str, tf.TensorSpec]:
  """A batch of unpacked examples: inputs, if the model reads any, and targets.

  Args:
    settings: of a run.
  """
  names = ["targets"]
  if settings.model_type in ("bitransformer", "aligned"):
    names.insert(0, "inputs")
  return {
    name: tf.TensorSpec(
      [settings.batch_size, settings.sequence_length[name]], tf.int32
    )
    for name in names
  }
