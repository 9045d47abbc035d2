"""What every mode works with: settings, a program, and a model on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import logging

import mesh_tf2 as mtf
from mesh_tf2.data.vocabulary import inputs_vocabulary, targets_vocabulary

from .dtypes import get_variable_dtype
from .models import build_model
from .settings import Settings


@dataclasses.dataclass(frozen=True)
class Context:
  """A model in a program, and what it is for.

  Attributes:
    settings: what the run needs to know.
    program: owns the variables.
    model: a `Unitransformer` or a `Bitransformer`.
    variable_dtype: the types of the model's variables.
  """

  settings: Settings
  program: mtf.Program
  model: Any
  variable_dtype: mtf.VariableDType

  def describe(self) -> str:
    """One line: on what, how large, from which seed."""
    settings, machine = self.settings, self.settings.machine
    mesh = machine.mesh_shape
    rows = ", ".join(f"{k} {n}" for k, n in settings.sequence_length.items())
    parameters = sum(
      v.shape.size for v in self.program.variables.values() if v.trainable
    )
    return (
      f"mesh [{mesh}] ({mesh.size} processor{'s' * (mesh.size > 1)}; "
      f"{machine.line or _devices(machine.devices)}), layout "
      f"{str(machine.layout_rules) or 'none'}, {parameters:,} parameters in "
      f"{self.variable_dtype.slice_dtype.name} (activations "
      f"{self.variable_dtype.activation_dtype.name}), batch "
      f"{settings.batch_size} x ({rows}), seed {self.program.seed.numpy()}"
    )


def prepare(settings: Settings) -> Context:
  """A program and a model; no variable exists yet."""
  machine = settings.machine
  program = mtf.Program(
    machine.mesh_shape,
    machine.layout_rules,
    seed=machine.seed,
    devices=machine.devices,
    strategy=machine.strategy,
  )
  if not program.processes.is_first:
    logging.set_verbosity(logging.WARNING)  # the first one tells the rest
  model = build_model(
    settings.model_type,
    inputs_vocabulary(settings.vocabulary).vocab_size,
    targets_vocabulary(settings.vocabulary).vocab_size,
    machine.layout_rules,
    machine.mesh_shape,
  )
  return Context(settings, program, model, get_variable_dtype())


def _devices(devices: Sequence[str] | None) -> str:
  """What the processors of a mesh are, in a few words."""
  if devices:
    return ", ".join(dict.fromkeys(map(str, devices)))
  kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
  return f"one {kind}"
