"""Begins a run with variables of another one."""

from __future__ import annotations

from collections.abc import Callable

import gin
from absl import logging

import mesh_tf2 as mtf
from mesh_tf2.checkpoint import Reader
from mesh_tf2.checkpoint.compare import compare

from .mesh_shapes import MODULE


@gin.configurable(module=MODULE)
def init_checkpoint_variable_mapping(
  name: str, mapping_fn: Callable[[str], str] | None = None
) -> str:
  """Under which name a checkpoint has the variable `name`."""
  return mapping_fn(name) if mapping_fn else name


@gin.configurable(module=MODULE)
def should_load_variable(
  name: str, filter_fn: Callable[[str], bool] | None = None
) -> bool:
  """Whether the variable `name` is to begin with a checkpoint's value."""
  return filter_fn(name) if filter_fn else True


def initialize(program: mtf.Program, path: str) -> None:
  """Gives variables the values that a checkpoint has under their names.

  Variables that it does not have keep what they have; the step stays 0.

  Args:
    program: has its variables already.
    path: the prefix of a checkpoint's files.

  Raises:
    FileNotFoundError: there is no such checkpoint.
    CheckpointMismatchError: a variable has another shape there.
    ValueError: it has none of the variables.
  """
  reader = Reader(path)
  found = reader.inventory()
  names = {
    name: init_checkpoint_variable_mapping(name)
    for name in program.variables
    if should_load_variable(name)
  }
  names = {name: other for name, other in names.items() if other in found}
  if not names:
    raise ValueError(
      f"run.init_checkpoint: {path} has none of the variables of this model, "
      f"which begin with {min(program.variables)!r}; it has {min(found)!r}"
    )
  variables = program.variables
  wanted = {
    other: (tuple(variables[name].shape.to_integer_list), found[other][1])
    for name, other in names.items()
  }
  compare(wanted, {n: found[n] for n in wanted}, checkpoint=path)
  for name, other in names.items():
    shape, dtype = found[other]
    zeros = [0] * len(shape)
    variables[name].assign(reader.read(other, shape, zeros, shape, dtype))
  logging.info(
    "%d of %d variables begin with the values in %s",
    len(names),
    len(variables),
    path,
  )
