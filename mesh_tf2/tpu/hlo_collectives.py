"""What is sent, read off a compiled program.

XLA joins communications, splits them, changes their dtype, and adds some. What
it writes down in the end is groups of replicas; which mesh axes they lie along
is worked out again.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from ..core.layout import pnum_to_processor_coordinates, processor_groups
from ..core.shape import Shape

IRREGULAR = "(irregular)"  # in the place of mesh axes, where none fit

_KINDS = (
  "all-reduce",
  "all-gather",
  "all-to-all",
  "reduce-scatter",
  "collective-permute",
  "collective-broadcast",
)
_INSTRUCTION = re.compile(
  rf"^\s*(?:ROOT )?%[\w.-]+ = (?P<result>.+?) "
  rf"(?P<kind>{'|'.join(_KINDS)})(?P<start>-start)?\((?P<rest>.*)$"
)
_RESULT = re.compile(
  r"^\s*(?:ROOT )?%(?P<name>[\w.-]+) = (?P<result>\(.*?\)|\S+) [\w-]+\("
)
_NAME = re.compile(r"%([\w.-]+)")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%(?P<name>[\w.-]+) \(")
_ARRAY = re.compile(r"\b([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]")
_LISTED = re.compile(r"replica_groups=\{(\{[\d,{}]*\})\}")
_IOTA = re.compile(
  r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?"
)
_PAIRS = re.compile(r"source_target_pairs=\{(\{[\d,{}]*\})\}")
_BITS = re.compile(r"\d+")


@dataclasses.dataclass(frozen=True)
class CompiledCollective:
  """All communication of one kind along the same mesh axes.

  Attributes:
    kind: XLA's name for it: "all-reduce".
    mesh_dims: names of the mesh dimensions along which it goes.
    group_size: how many cores take part in each.
    count: of its instructions; what stands in a loop counts once.
    operand_bytes: of what one core puts in, all together.
    bytes: of its results, all together: a sum may be taken in float32, and come
      in bfloat16.
  """

  kind: str
  mesh_dims: tuple[str, ...]
  group_size: int
  count: int
  operand_bytes: int
  bytes: int

  @property
  def sent_bytes(self) -> float:
    """What a core sends in a ring."""
    part = (self.group_size - 1) / self.group_size
    if self.kind == "all-reduce":  # once to sum, once to hand out the sum
      return part * (self.operand_bytes + self.bytes)
    if self.kind == "reduce-scatter":
      return part * self.operand_bytes
    return self.bytes * (1 if self.kind == "collective-permute" else part)


def collectives(hlo: str, mesh_shape: Shape) -> tuple[CompiledCollective, ...]:
  """The communication in the text of a compiled program.

  Args:
    hlo: as XLA prints it.
    mesh_shape: whose processors are the replicas, in row-major order.
  """
  rows: collections.defaultdict[tuple[str, tuple[str, ...], int], list[int]]
  rows = collections.defaultdict(lambda: [0, 0, 0])
  for kind, groups, put_in, size in _instructions(hlo, mesh_shape.size):
    if kind == "collective-permute":
      dims = _dims_between(groups, mesh_shape)
      count = math.prod(mesh_shape.get_dim_by_name(n).size for n in dims)
    else:
      dims, count = _dims_of_groups(groups, mesh_shape), len(groups[0])
    if count > 1:
      total = rows[kind, dims, count]
      for i, n in enumerate((1, put_in, size)):
        total[i] += n
  return tuple(
    CompiledCollective(*key, *total) for key, total in sorted(rows.items())
  )


_Groups: TypeAlias = tuple[tuple[int, ...], ...]


def _instructions(
  hlo: str, replicas: int
) -> Iterator[tuple[str, _Groups, int, int]]:
  """Kind, groups or pairs, and bytes put in and got of each communication."""
  computation, known = "", {}
  for line in hlo.splitlines():
    if opened := _COMPUTATION.match(line):
      computation = opened["name"]
    elif made := _RESULT.match(line):
      known[made["name"]] = made["result"]
    if not (found := _INSTRUCTION.match(line)):
      continue
    kind, size = found["kind"], _bytes(found["result"])
    if found["start"]:
      size = _bytes_of_start(kind, found["result"])
    groups = _groups(found["rest"], replicas)
    operands = _NAME.findall(found["rest"].partition(")")[0])
    put_in = sum(_bytes(known.get(name, "")) for name in operands)
    if kind == "all-reduce" and "all-reduce-scatter" in computation:
      # A sum of which each keeps a part, as TPUs have it.
      kind, size = "reduce-scatter", size // len(groups[0])
    yield kind, groups, put_in, size


def _groups(text: str, replicas: int) -> _Groups:
  if found := _PAIRS.search(text) or _LISTED.search(text):
    return tuple(
      tuple(map(int, part.split(",")))
      for part in found[1].strip("{}").split("},{")
    )
  if found := _IOTA.search(text):
    sizes, start = ([int(n) for n in found[i].split(",")] for i in (1, 2))
    order = [int(n) for n in found[3].split(",")] if found[3] else None
    numbers = np.arange(math.prod(start)).reshape(start)
    grouped = np.transpose(numbers, order).reshape(sizes)
    return tuple(tuple(map(int, row)) for row in grouped)
  return (tuple(range(replicas)),)


@functools.lru_cache
def _dims_of_groups(groups: _Groups, mesh_shape: Shape) -> tuple[str, ...]:
  """The mesh dimensions along which the members of each group differ."""
  wanted = set(map(frozenset, groups))
  axes = range(len(mesh_shape))
  for count in range(len(mesh_shape) + 1):
    for some in itertools.combinations(axes, count):
      if set(map(frozenset, processor_groups(mesh_shape, some))) == wanted:
        return tuple(mesh_shape[a].name for a in some)
  return (IRREGULAR,)


def _dims_between(pairs: _Groups, mesh_shape: Shape) -> tuple[str, ...]:
  """The mesh dimensions along which sources and targets differ."""
  moved = set()
  for source, target in pairs:
    ends = (
      pnum_to_processor_coordinates(mesh_shape, n) for n in (source, target)
    )
    for d, a, b in zip(mesh_shape, *ends, strict=True):
      if a != b:
        moved.add(d.name)
  return tuple(d.name for d in mesh_shape if d.name in moved)


def _bytes(result: str) -> int:
  return sum(_array_bytes(*found) for found in _ARRAY.findall(result))


def _bytes_of_start(kind: str, result: str) -> int:
  """Of the results only: a start has its operands in front of them."""
  sizes = [_array_bytes(*found) for found in _ARRAY.findall(result)]
  if kind == "all-reduce":
    return sum(sizes)
  if kind == "collective-permute":
    return sizes[1]
  return sum(sizes[len(sizes) // 2 :])


def _array_bytes(dtype: str, sizes: str) -> int:
  elements = math.prod(int(n) for n in sizes.split(",") if n)
  bits = _BITS.search(dtype)
  return elements * (int(bits[0]) if bits else 8) // 8  # a truth value is pred
