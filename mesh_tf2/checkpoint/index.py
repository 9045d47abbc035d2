"""The index of a checkpoint: which bytes of which file each tensor is.

Source: `tensorflow/core/protobuf/tensor_bundle.proto`, whose messages are the
values of the table in the index file. A tensor that was written in slices has
an entry that lists them, and an entry for each slice, whose key begins with a
zero byte and sorts as the slices do by begin and size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from . import files, table
from .errors import DamagedCheckpointError

Extent = tuple[int, int | None]  # begin and size; no size is all there is


@dataclasses.dataclass(frozen=True)
class Piece:
  """A slice of a tensor as it is stored.

  Attributes:
    begin: of its first element, in each dimension.
    size: in each dimension.
    spec: names it in `RestoreV2`; empty for a whole tensor.
    shard: the number of its data file.
    offset: its first byte in that file.
    nbytes: how many they are.
  """

  begin: tuple[int, ...]
  size: tuple[int, ...]
  spec: str
  shard: int
  offset: int
  nbytes: int


@dataclasses.dataclass(frozen=True)
class Stored:
  """A tensor as it is stored."""

  shape: tuple[int, ...]
  dtype: tf.DType
  pieces: tuple[Piece, ...]


@dataclasses.dataclass(frozen=True)
class Index:
  """All tensors of a checkpoint, by name."""

  prefix: str
  shards: int
  tensors: dict[str, Stored]

  def data_path(self, shard: int) -> str:
    """The data file of that number."""
    return f"{self.prefix}.data-{shard:05d}-of-{self.shards:05d}"

  def check_files(self) -> None:
    """Raises DamagedCheckpointError if a data file is missing or too short."""
    ends = dict.fromkeys(range(self.shards), 0)
    for stored in self.tensors.values():
      for piece in stored.pieces:
        end = piece.offset + piece.nbytes
        ends[piece.shard] = max(ends.get(piece.shard, 0), end)
    for shard, end in ends.items():
      path = self.data_path(shard)
      try:
        size, _ = files.size_and_time(path)
      except FileNotFoundError:
        raise DamagedCheckpointError(f"{path} is missing") from None
      if size < end:
        raise DamagedCheckpointError(
          f"{path} is cut short: it has {size} bytes, and the index tells of "
          f"{end}"
        )


def index_path(prefix: str) -> str:
  """The index file of a checkpoint."""
  return f"{prefix}.index"


def read_index(prefix: str) -> Index:
  """Reads the index file of a checkpoint.

  Args:
    prefix: of the checkpoint's files.

  Raises:
    FileNotFoundError: there is no such checkpoint.
    DamagedCheckpointError: the index file is damaged.
  """
  path = index_path(prefix)
  data = files.read(path)
  try:
    return _parse(prefix, table.entries(data))
  except table.TableError as error:
    raise DamagedCheckpointError(f"{path} {error}") from None
  except (IndexError, KeyError, TypeError, ValueError) as error:
    raise DamagedCheckpointError(
      f"{path} is a table, but not the index of a checkpoint: {error}"
    ) from None


def _parse(prefix: str, entries: Iterator[tuple[bytes, bytes]]) -> Index:
  shards, whole = 0, {}
  slices: dict[str, list[_Entry]] = {}
  for key, value in entries:
    if not key:
      shards = next((int(x) for n, x in _fields(value) if n == 1), 0)
    elif key[0]:
      whole[key.decode()] = _Entry.parse(value)
    else:
      name = key[1 : key.index(b"\0\1", 1)].decode()
      slices.setdefault(name, []).append(_Entry.parse(value))
  if not shards:
    raise ValueError("it has no header")
  tensors = {n: e.stored(n, slices.get(n, [])) for n, e in whole.items()}
  return Index(prefix, shards, tensors)


@dataclasses.dataclass
class _Entry:
  """The message `BundleEntryProto`."""

  dtype: int = 0
  shape: tuple[int, ...] = ()
  shard: int = 0
  offset: int = 0
  nbytes: int = 0
  slices: list[list[Extent]] = dataclasses.field(default_factory=list)

  @classmethod
  def parse(cls, message: bytes) -> _Entry:
    entry = cls()
    scalars = {1: "dtype", 3: "shard", 4: "offset", 5: "nbytes"}
    for number, value in _fields(message):
      if number in scalars:
        setattr(entry, scalars[number], value)
      elif number == 2:
        dims = [dict(_fields(dim)) for n, dim in _fields(value) if n == 2]
        entry.shape = tuple(int(dim.get(1, 0)) for dim in dims)
      elif number == 7:
        extents = [dict(_fields(extent)) for _, extent in _fields(value)]
        entry.slices.append([(e.get(1, 0), e.get(2)) for e in extents])
    return entry

  def stored(self, name: str, entries: list[_Entry]) -> Stored:
    """The tensor, whose slices have these entries, in the order of keys."""
    dtype = tf.dtypes.as_dtype(self.dtype)
    if not self.slices:
      zeros = (0,) * len(self.shape)
      return Stored(self.shape, dtype, (self._piece(zeros, self.shape, ""),))
    # A slice without a size comes first, like one of size -1.
    slices = sorted(
      self.slices, key=lambda s: [(b, -1 if n is None else n) for b, n in s]
    )
    if len(slices) != len(entries):
      raise table.TableError(
        f'lists {len(slices)} slices of "{name}", and has {len(entries)}'
      )
    pieces = []
    for extents, entry in zip(slices, entries, strict=True):
      begin = tuple(b for b, _ in extents)
      size = tuple(
        full if n is None else n
        for (_, n), full in zip(extents, self.shape, strict=True)
      )
      pieces.append(entry._piece(begin, size, spec(self.shape, extents)))
    return Stored(self.shape, dtype, tuple(pieces))

  def _piece(
    self, begin: tuple[int, ...], size: tuple[int, ...], spec: str
  ) -> Piece:
    return Piece(begin, size, spec, self.shard, self.offset, self.nbytes)


def spec(shape: tuple[int, ...], extents: Sequence[Extent]) -> str:
  """A slice in the words of `SaveV2` and `RestoreV2`: `"4 8 0,2:4,4"`."""
  dims = ":".join("-" if n is None else f"{b},{n}" for b, n in extents)
  return " ".join([*map(str, shape), dims])


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
  """Numbers and values of the fields of a protocol buffer."""
  at = 0
  while at < len(message):
    key, at = table.varint(message, at)
    number, kind = key >> 3, key & 7
    if kind == 0:
      value, at = table.varint(message, at)
      yield number, value
      continue
    size, at = (
      table.varint(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
    )
    yield number, message[at : at + size]
    at += size
