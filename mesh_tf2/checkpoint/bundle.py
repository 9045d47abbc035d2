"""Writes checkpoints from slices, in TensorFlow's own V2 format.

A checkpoint is data files and one index file. It comes into being when its
index gets its name, which is the last thing that happens: a process that is
killed before leaves the checkpoints that were there as they were.

Slices are written in parts of at most `PART_BYTES`, so that a generator of
slices need not hold them all.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from . import files
from .index import index_path, read_index, spec
from .reader import SLICEABLE
from .reader import Reader as Reader
from .staging import is_temporary, staging
from .tiling import Tiling, check_stored, same_tensor

PART_BYTES = 1 << 29

_DATA = re.compile(r"\.data-\d{5}-of-(?P<shards>\d{5})")


@dataclasses.dataclass(frozen=True)
class Slice:
  """A slice of a tensor.

  Attributes:
    name: of the tensor.
    full_shape: of the whole tensor.
    begin: of the slice, in each dimension.
    value: the slice; its shape is the slice's size.
  """

  name: str
  full_shape: tuple[int, ...]
  begin: tuple[int, ...]
  value: tf.Tensor

  def __post_init__(self) -> None:
    if not self.name or "\0" in self.name:
      raise ValueError(f"{self.name!r} cannot name a tensor in a checkpoint")

  @property
  def size(self) -> tuple[int, ...]:
    """How many elements, in each dimension."""
    return tuple(self.value.shape)

  @property
  def nbytes(self) -> int:
    """Of the value; of strings, of what points to them."""
    return math.prod(self.size) * max(self.value.dtype.size, 1)


def write(prefix: str | os.PathLike[str], slices: Iterable[Slice]) -> None:
  """Writes a checkpoint, at once, over one of the same name if there is one.

  Args:
    prefix: of its files, `"dir/model.ckpt-100"`. The folder is made if need be.
    slices: cover every tensor, and no element twice. May be a generator.

  Raises:
    ValueError: slices of a tensor overlap, leave something out, or do not agree
      in shape or type; nothing is written then.
    OSError: the folder cannot be written to, or the disk is full.
  """
  tilings = _write(os.fspath(prefix), slices, check_whole=True)
  if not tilings:
    raise ValueError(f"there is nothing to write to {prefix}: no slices")


def write_part(part: str | os.PathLike[str], slices: Iterable[Slice]) -> None:
  """Writes some slices, as one of several processes that write a checkpoint.

  When all have done so, one of them calls `merge`.

  Args:
    part: prefix of the part's files, in the folder of the checkpoint; another
      one for each process.
    slices: at least one; each to be written by just one process.

  Raises:
    ValueError: slices overlap, or do not agree in shape or type; or the pieces
      of a tensor of a type that is only stored whole are not all here.
    OSError: the folder cannot be written to, or the disk is full.
  """
  tilings = _write(os.fspath(part), slices, check_whole=False)
  if not tilings:
    raise ValueError(f"a part without slices is not to be written: {part}")


def merge(prefix: str | os.PathLike[str], parts: Sequence[str]) -> None:
  """Makes parts into one checkpoint, at once; the parts are used up.

  Args:
    prefix: of the checkpoint's files.
    parts: prefixes that `write_part` has written.

  Raises:
    ValueError: slices overlap, leave something out, or do not agree in shape
      or type; the parts stay as they are then.
    FileNotFoundError: a part is not there.
    DamagedCheckpointError: a part is damaged.
  """
  prefix, parts = os.fspath(prefix), [os.fspath(part) for part in parts]
  indexes = [read_index(part) for part in parts]
  for index in indexes:
    index.check_files()
  check_stored(index.tensors for index in indexes)
  with staging(prefix) as folder:
    _commit(_merge(folder, parts), prefix)


def _write(
  prefix: str, slices: Iterable[Slice], check_whole: bool
) -> dict[str, Tiling]:
  if not tf.executing_eagerly():
    raise RuntimeError("checkpoints are written outside of a tf.function")
  tilings: dict[str, Tiling] = {}
  with staging(prefix) as folder:
    parts = list(_save_parts(folder, prefix, _storable(slices, tilings)))
    if check_whole:
      for tiling in tilings.values():
        tiling.check_whole()
    if parts:
      _commit(_merge(folder, parts), prefix)
  return tilings


def _storable(
  slices: Iterable[Slice], tilings: dict[str, Tiling]
) -> Iterator[Slice]:
  """Slices as they can be stored: checked, not empty, or whole."""
  gathered: dict[str, np.ndarray] = {}
  for piece in slices:
    dtype = piece.value.dtype
    name, full = piece.name, piece.full_shape
    is_new = name not in tilings
    tiling = same_tensor(tilings, name, full, dtype)
    tiling.add(piece.begin, piece.size)
    if not math.prod(full):
      if is_new:
        yield Slice(name, full, (0,) * len(full), tf.zeros(full, dtype))
    elif dtype in SLICEABLE or piece.size == full:
      if math.prod(piece.size):
        yield piece
    else:
      whole = gathered.setdefault(name, np.empty(full, dtype.as_numpy_dtype))
      at = zip(piece.begin, piece.size, strict=True)
      whole[tuple(slice(b, b + n) for b, n in at)] = piece.value.numpy()
      if tiling.is_whole:
        value = tf.constant(gathered.pop(name), dtype)
        yield Slice(name, full, (0,) * len(full), value)
  for name in gathered:
    dtype = tilings[name].dtype.name
    tilings[name].check_whole(f"; TensorFlow stores {dtype} only whole")


def _save_parts(
  folder: str, prefix: str, slices: Iterable[Slice]
) -> Iterator[str]:
  """Writes slices in parts.

  The number of parts is one that no file at `prefix` has in its name, so that
  the files of a checkpoint that is to be replaced stay until the new is there.
  """
  taken = _shard_counts(prefix)
  batch: list[Slice] = []
  done = total = 0
  for piece in slices:
    if batch and total + piece.nbytes > PART_BYTES:
      yield _save(files.join(folder, f"part-{done}"), batch)
      batch, total, done = [], 0, done + 1
    batch.append(piece)
    total += piece.nbytes
  while batch:
    is_last = done + 1 not in taken or len(batch) == 1
    now = len(batch) if is_last else 1
    yield _save(files.join(folder, f"part-{done}"), batch[:now])
    batch, done = batch[now:], done + 1


def _save(part: str, batch: Sequence[Slice]) -> str:
  with files.python_errors(part), tf.device("CPU:0"):
    tf.raw_ops.SaveV2(
      prefix=part,
      tensor_names=[piece.name for piece in batch],
      shape_and_slices=[_spec(piece) for piece in batch],
      tensors=[piece.value for piece in batch],
    )
  return part


def _spec(piece: Slice) -> str:
  if piece.size == piece.full_shape:
    return ""
  at = list(zip(piece.begin, piece.size, strict=True))
  return spec(piece.full_shape, at)


def _merge(folder: str, parts: Sequence[str]) -> str:
  """One index and consistently named data files, in `folder`; its prefix."""
  merged = files.join(folder, "all")
  with files.python_errors(merged):
    tf.raw_ops.MergeV2Checkpoints(
      checkpoint_prefixes=parts,
      destination_prefix=merged,
      delete_old_dirs=False,
    )
  return merged


def _commit(staged: str, prefix: str) -> None:
  """Gives the files of a checkpoint their names, that of the index last.

  What else has a name of the checkpoint is on the disk before that, too.
  """
  folder, base = files.split(prefix)
  source, stage = files.split(staged)
  new = {
    base + name.removeprefix(stage): files.join(source, name)
    for name in files.names(source)
    if _data(name, stage)
  }
  beside = [n for n in files.names(folder) if n.startswith(f"{base}.")]
  old = {name for name in beside if _data(name, base)}
  if old & set(new):  # else the old index would be there with new data
    files.remove(index_path(prefix))
  own = {name for name in beside if not is_temporary(name)}
  for name in own - old - {index_path(base)}:
    files.sync(files.join(folder, name))
  for path in [*new.values(), index_path(staged)]:
    files.sync(path)
  for name, path in new.items():
    files.rename(path, files.join(folder, name))
  files.sync(folder)
  files.rename(index_path(staged), index_path(prefix))
  files.sync(folder)
  for name in old - set(new):
    files.remove(files.join(folder, name))


def _shard_counts(prefix: str) -> set[int]:
  """The numbers of data files in the names of files at `prefix`."""
  folder, base = files.split(prefix)
  matches = [_data(name, base) for name in files.names(folder)]
  return {int(match["shards"]) for match in matches if match}


def _data(name: str, base: str) -> re.Match[str] | None:
  """The name of a data file of the checkpoint `base`, taken apart."""
  if not name.startswith(base):
    return None
  return _DATA.fullmatch(name.removeprefix(base))
