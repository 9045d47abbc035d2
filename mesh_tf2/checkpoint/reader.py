"""Reads any slice of any tensor of a checkpoint, and says what is damaged.

Only those stored slices are read that a wanted one overlaps, one at a time. So
to read a checkpoint in the slices it was written in costs one pass over it.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from ..core.errors import did_you_mean
from . import files
from .errors import DamagedCheckpointError
from .index import Piece, Stored, index_path, read_index, spec
from .tiling import Box, Tiling, check_stored, overlap

# The types of which TensorFlow cuts and joins stored slices.
SLICEABLE = frozenset(
  {
    tf.bfloat16,
    tf.float32,
    tf.float64,
    tf.complex64,
    tf.complex128,
    tf.bool,
    tf.int8,
    tf.int16,
    tf.int32,
    tf.int64,
    tf.uint8,
  }
)
DAMAGE = (
  tf.errors.DataLossError,
  tf.errors.NotFoundError,
  tf.errors.OutOfRangeError,
)
# What is checked at once: that many bytes, or that many tensors or slices.
CHECKED_BYTES = 1 << 26
CHECKED_UNITS = 256


class Reader:
  """A checkpoint in TensorFlow's V2 format, whoever wrote it.

  Args:
    prefix: of its files, `"dir/model.ckpt-100"`.

  Raises:
    FileNotFoundError: there is no such checkpoint.
    DamagedCheckpointError: its index file is damaged.
  """

  def __init__(self, prefix: str | os.PathLike[str]) -> None:
    self.prefix = os.fspath(prefix)
    try:
      self._index = read_index(self.prefix)
    except FileNotFoundError:
      raise FileNotFoundError(
        f"there is no checkpoint {self.prefix}: no file "
        f"{index_path(self.prefix)}{_way_out(self.prefix)}"
      ) from None

  def inventory(self) -> dict[str, tuple[tuple[int, ...], tf.DType]]:
    """Shape and type of every tensor, by name."""
    tensors = sorted(self._index.tensors.items())
    return {name: (stored.shape, stored.dtype) for name, stored in tensors}

  def read(
    self,
    name: str,
    full_shape: Sequence[int],
    begin: Sequence[int],
    size: Sequence[int],
    dtype: tf.DType,
  ) -> tf.Tensor:
    """Reads a slice.

    Args:
      name: of the tensor.
      full_shape: of the whole tensor.
      begin: of the slice, in each dimension.
      size: of the slice, in each dimension.
      dtype: of the tensor.

    Returns:
      The slice, of shape `size`.

    Raises:
      ValueError: the checkpoint has no such tensor, or no such slice of it.
      DamagedCheckpointError: a file with a part of the slice is damaged.
    """
    stored = self._stored(name, tuple(full_shape), dtype)
    box = (tuple(begin), tuple(size))
    Tiling(name, stored.shape, dtype).add(*box)
    if not math.prod(size):
      return tf.zeros(size, dtype)
    pieces = [p for p in stored.pieces if overlap((p.begin, p.size), box)]
    same = [p.spec for p in pieces if (p.begin, p.size) == box]
    try:
      if same or dtype in SLICEABLE:
        words = same[0] if same else _words(stored, box)
        return self._restore([(name, stored, words)])[0]
      return self._assemble(name, stored, pieces, box)
    except DAMAGE:
      self._find_damage([_Unit(name, stored, "", tuple(pieces))])
      raise

  def verify(self, contents: bool = True) -> None:
    """Checks every file of the checkpoint.

    Args:
      contents: whether to read all data and check its sums, too, some slices at
        a time. Else only the index is read, and the data files are measured.

    Raises:
      DamagedCheckpointError: a file is missing, cut short, or holds other bytes
        than were written; its message begins with the path of that file.
    """
    self._index.check_files()
    try:
      check_stored([self._index.tensors])
    except ValueError as error:
      path = index_path(self.prefix)
      raise DamagedCheckpointError(f"{path} is damaged: {error}") from None
    if contents:
      for batch in self._batches():
        try:
          self._restore([(x.name, x.stored, x.words) for x in batch])
        except DAMAGE:
          self._find_damage(batch)
          raise

  def _stored(
    self, name: str, full_shape: tuple[int, ...], dtype: tf.DType
  ) -> Stored:
    stored = self._index.tensors.get(name)
    if stored is None:
      near = did_you_mean(name, self._index.tensors)
      raise ValueError(f'{self.prefix} has no tensor "{name}"{near}')
    if (stored.shape, stored.dtype) != (full_shape, dtype):
      raise ValueError(
        f'{self.prefix} has "{name}" as {stored.dtype.name}'
        f"{list(stored.shape)}, not as {dtype.name}{list(full_shape)}; read it "
        "as it is, then convert it"
      )
    return stored

  def _restore(
    self, wanted: Sequence[tuple[str, Stored, str]]
  ) -> list[tf.Tensor]:
    with tf.device("CPU:0"):
      return tf.raw_ops.RestoreV2(
        prefix=self.prefix,
        tensor_names=[name for name, _, _ in wanted],
        shape_and_slices=[words for _, _, words in wanted],
        dtypes=[stored.dtype for _, stored, _ in wanted],
      )

  def _assemble(
    self, name: str, stored: Stored, pieces: Iterable[Piece], box: Box
  ) -> tf.Tensor:
    """A slice of a type that TensorFlow cannot cut or join itself."""
    begin, size = box
    result = np.empty(size, stored.dtype.as_numpy_dtype)
    for piece in pieces:
      source, target = [], []
      for b, n, at, m in zip(begin, size, piece.begin, piece.size, strict=True):
        low, high = max(b, at), min(b + n, at + m)
        source.append(slice(low - at, high - at))
        target.append(slice(low - b, high - b))
      value = self._restore([(name, stored, piece.spec)])[0].numpy()
      result[tuple(target)] = value[tuple(source)]
    return tf.constant(result, stored.dtype)

  def _batches(self) -> Iterator[list[_Unit]]:
    batch: list[_Unit] = []
    total = 0
    for unit in self._units():
      full = total + unit.nbytes > CHECKED_BYTES
      if batch and (full or len(batch) == CHECKED_UNITS):
        yield batch
        batch, total = [], 0
      batch.append(unit)
      total += unit.nbytes
    if batch:
      yield batch

  def _units(self) -> Iterator[_Unit]:
    """All pieces; those of a small tensor together, which is a lot faster."""
    for name, stored in self._index.tensors.items():
      together = _Unit(name, stored, "", stored.pieces)
      if stored.dtype in SLICEABLE and together.nbytes <= CHECKED_BYTES:
        yield together
      else:
        for piece in stored.pieces:
          yield _Unit(name, stored, piece.spec, (piece,))

  def _find_damage(self, suspects: Iterable[_Unit]) -> None:
    """Raises DamagedCheckpointError about the first that cannot be read."""
    for unit in suspects:
      for piece in unit.pieces:
        try:
          self._restore([(unit.name, unit.stored, piece.spec)])
        except DAMAGE as error:
          raise DamagedCheckpointError(
            f'{self._index.data_path(piece.shard)} is damaged: "{unit.name}" '
            f"cannot be read from it: {files.message(error)}"
          ) from None


@dataclasses.dataclass(frozen=True)
class _Unit:
  """Pieces of a tensor that are read in one go, with `words` for RestoreV2."""

  name: str
  stored: Stored
  words: str
  pieces: tuple[Piece, ...]

  @property
  def nbytes(self) -> int:
    return sum(piece.nbytes for piece in self.pieces)


def _words(stored: Stored, box: Box) -> str:
  begin, size = box
  if size == stored.shape:
    return ""
  return spec(stored.shape, list(zip(begin, size, strict=True)))


def _way_out(prefix: str) -> str:
  if tf.io.gfile.isdir(prefix):
    return "; it is a folder: give a checkpoint in it, like model.ckpt-100"
  if tf.io.gfile.exists(prefix):
    return "; a file alone is no checkpoint: give the path without its suffix"
  return ""
