"""Where the values of variables live between two lowerings."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..core.errors import VariableError
from .laid_out import LaidOutVariable, Slices
from .mesh import MeshImpl


class VariableState:
  """Variables by full name, each made the first time that it is read.

  Args:
    store: the variables that exist already; new ones are added to it.
    seed: of the initial values.
  """

  def __init__(self, store: dict[str, LaidOutVariable], seed: int = 0) -> None:
    self._store = store
    self._seed = seed

  def variable(self, op: Any, mesh_impl: MeshImpl) -> LaidOutVariable:
    """The laid-out variable of the graph variable `op`."""
    known = self._store.get(op.full_name)
    if known is None and mesh_impl.runs_on_processor:
      raise VariableError(
        f"variable {op.full_name} is wanted inside strategy.run, where none "
        "can be made: build the function with mtf.Program(strategy=...), which "
        "makes its variables first"
      )
    if known is None:
      with tf.init_scope():
        value = self.initial_slices(op, mesh_impl)
        known = mesh_impl.create_variable(op.full_name, value, op.trainable)
      known.spec = op.spec
      self._store[op.full_name] = known
    known.spec.check(op.spec)
    return known

  def initial_slices(self, op: Any, mesh_impl: MeshImpl) -> Slices:
    """What a variable that does not exist yet begins with."""
    return mesh_impl.made_on_processors(
      lambda: op.initial_slices(mesh_impl, self._seed)
    )

  def read(self, op: Any, mesh_impl: MeshImpl) -> Slices:
    """The current slices of the graph variable `op`."""
    return self.variable(op, mesh_impl).read()

  def assign(self, op: Any, mesh_impl: MeshImpl, value: Slices) -> None:
    """Overwrites the slices of the graph variable `op`."""
    self.variable(op, mesh_impl).assign(value)
