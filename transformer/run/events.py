"""Scalars for TensorBoard.

`tf.summary.scalar` wants the package `tensorboard` beside TensorFlow. An event
file does not: a scalar is a tensor with a note for the plug-in that draws it.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import tensorflow as tf

from mesh_tf2.ops.effects import SCALAR_METADATA


class Scalars:
  """Writes scalars to an event file.

  Args:
    directory: where the file is made; it is made with the first scalar. None
      to write nothing, as all processes but the first do.
  """

  def __init__(self, directory: pathlib.Path | str | None) -> None:
    self._directory = directory
    self._writer: tf.summary.SummaryWriter | None = None

  def write(self, step: int, values: Mapping[str, float]) -> None:
    """Adds one point to the curve of each name."""
    if self._directory is None:
      return
    if self._writer is None:
      self._writer = tf.summary.create_file_writer(str(self._directory))
    with self._writer.as_default(step=step):
      for name, value in values.items():
        tf.summary.write(
          name, tf.constant(value, tf.float32), metadata=SCALAR_METADATA
        )

  def flush(self) -> None:
    """Has everything so far reach the disk."""
    if self._writer is not None:
      self._writer.flush()

  def close(self) -> None:
    """Finishes the file."""
    if self._writer is not None:
      self._writer.close()
