"""Variables that begin with the values of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ..spmd.laid_out import LaidOutVariable, Slices
from ..spmd.mesh import MeshImpl
from ..spmd.state import VariableState
from .compare import CheckpointMismatchError, compare
from .reader import Reader

STEP_NAME = "global_step"
SEED_NAME = "mesh_tf2/seed"

# Names of what optimizers remember: a model that is not trained does without.
SLOT = (
  r".*(_slot_(vr|vc|v|m)|/adam_[mv]|_momentum_v|/ExponentialMovingAverage)"
  r"|(adam|moving_average)/step|loss_scale/(scale|good_steps)"
)


class RestoringState(VariableState):
  """Variables that begin with the values of a checkpoint, if there is one."""

  def __init__(self, store: dict[str, LaidOutVariable], seed: int) -> None:
    super().__init__(store, seed)
    self._reader: Reader | None = None
    self._found: dict[str, Any] = {}

  def restore_from(
    self, reader: Reader, found: dict[str, Any], existing: Mapping[str, Any]
  ) -> None:
    """From now on, new variables begin with the values in `reader`.

    Args:
      reader: of the checkpoint.
      found: its inventory.
      existing: the variables that there are already, by name.

    Raises:
      CheckpointMismatchError: it lacks one of those. Nothing has changed then.
    """
    before = self._reader, self._found
    self._reader, self._found = reader, found
    try:
      self.check(existing)
    except CheckpointMismatchError:
      self._reader, self._found = before
      raise

  def names(self) -> set[str]:
    """The variables in the checkpoint."""
    return set(self._found) - {STEP_NAME, SEED_NAME}

  def check(self, wanted: Mapping[str, Any]) -> None:
    """Raises CheckpointMismatchError unless the checkpoint has all of them."""
    if self._reader is None:
      return
    shapes = {
      n: (tuple(s.shape.to_integer_list), s.master_dtype)
      for n, s in wanted.items()
    }
    found = {n: self._found[n] for n in self.names()}
    try:
      compare(shapes, found, optional=lambda name: True)
    except CheckpointMismatchError:
      # This time with what the program does not want, which may be what it
      # lacks under another name.
      compare(shapes, found, optional=SLOT)
      raise

  def read_slices(self, spec: Any, mesh_impl: MeshImpl) -> Slices:
    """The slices of a variable, each read by itself."""
    reader = self._reader
    if reader is None:
      raise AssertionError(f"no checkpoint to read {spec.name} from")
    full = tuple(spec.shape.to_integer_list)
    dtype = self._found[spec.name][1]

    def read(begin: list[int], size: list[int]) -> tf.Tensor:
      value = reader.read(spec.name, full, tuple(begin), tuple(size), dtype)
      return tf.cast(value, spec.slice_dtype)

    return mesh_impl.assemble(spec.shape, read)

  def initial_slices(self, op: Any, mesh_impl: MeshImpl) -> Slices:
    """The checkpoint's value, else the initializer's."""
    if self._reader is not None and op.full_name in self._found:
      return self.read_slices(op.spec, mesh_impl)
    return super().initial_slices(op, mesh_impl)
