"""Meshes and layouts to try, and where a slice ought to be.

Nothing here asks mesh_tf2 where a slice is: layouts are worked out again, so
that the two can be held against each other.
"""

import dataclasses
import functools
import itertools
import math
import random

import numpy as np
import tensorflow as tf

from mesh_tf2.spmd.communicators.collective_ops import communicator_of
from mesh_tf2.spmd.placement import PlacementMeshImpl
from mesh_tf2.spmd.simd import SimdMeshImpl
from mesh_tf2.spmd.virtual import VirtualMeshImpl

VIRTUAL, PLACEMENT, SIMD = "virtual", "placement", "simd"
KINDS = (VIRTUAL, PLACEMENT)  # those that run a program without a strategy


@dataclasses.dataclass(frozen=True)
class Setting:
  """An implementation, a mesh and a layout, the latter as pairs of names."""

  kind: str
  mesh: tuple[tuple[str, int], ...] = ()
  layout: tuple[tuple[str, str], ...] = ()

  def __str__(self):
    mesh = ";".join(f"{n}:{m}" for n, m in self.mesh) or "one processor"
    layout = ";".join(f"{d}:{m}" for d, m in self.layout) or "nothing split"
    return f"{self.kind} mesh, {mesh}, {layout}"

  @property
  def impl(self):
    """A new mesh implementation."""
    if self.kind == VIRTUAL:
      return VirtualMeshImpl(self.mesh, self.layout)
    if self.kind == SIMD:
      strategy = mirrored(self.processors)
      return SimdMeshImpl(
        self.mesh,
        self.layout,
        strategy,
        communicator_of(strategy, timeout_seconds=60),
      )
    devices = [""] * self.processors
    return PlacementMeshImpl(self.mesh, self.layout, devices)

  @property
  def processors(self):
    return math.prod(m for _, m in self.mesh)

  def mesh_axes(self, names):
    """For each dimension, the number of the mesh axis that splits it."""
    mesh_names = [n for n, _ in self.mesh]
    rules = dict(self.layout)
    found = [rules.get(n) for n in names]
    return [mesh_names.index(m) if m in mesh_names else None for m in found]

  def cut(self, whole, names, pnum):
    """The part of an array that processor `pnum` ought to hold."""
    sizes = [m for _, m in self.mesh]
    at = np.unravel_index(pnum, sizes) if sizes else ()
    index = []
    for n, axis in zip(whole.shape, self.mesh_axes(names), strict=True):
      if axis is None:
        index.append(slice(None))
      else:
        part = n // sizes[axis]
        index.append(slice(at[axis] * part, (at[axis] + 1) * part))
    return whole[tuple(index)]


@functools.lru_cache
def mirrored(replicas):
  """A strategy with so many replicas, each on a logical CPU device."""
  return tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])


def setting(mesh, layout, kind=VIRTUAL):
  """From strings such as "x:2;y:4" and "a:x;b:y"."""
  mesh = tuple((n, int(m)) for n, m in _pairs(mesh))
  return Setting(kind, mesh, tuple(_pairs(layout)))


def _pairs(text):
  return [tuple(part.split(":")) for part in text.split(";") if part]


ONE = ()
TWO = (("x", 2),)
FOUR = (("x", 2), ("y", 2))
EIGHT = (("x", 2), ("y", 4))
CUBE = (("x", 2), ("y", 2), ("z", 2))


def sampled_settings(dims, seed):
  """Legal settings for an operation on tensors with these dimensions.

  Every dimension is split by itself once; of the layouts that split two of
  them, a few are chosen, and one of those that split three if there is any.

  Args:
    dims: (name, sizes) of the dimensions that may be split.
    seed: of the choice.
  """
  chosen = [(ONE, ())]
  chosen += [(TWO, layout) for layout in _layouts(dims, TWO, 1)]
  rng = random.Random(seed)
  for mesh, count in ((FOUR, 2), (EIGHT, 2), (CUBE, 1)):
    layouts = _most_split(dims, mesh)
    chosen += [(mesh, s) for s in rng.sample(layouts, min(count, len(layouts)))]
  for mesh, layout in chosen:
    for kind in KINDS:
      many = mesh in (EIGHT, CUBE)
      if kind == VIRTUAL or not many or layout == chosen[-1][1]:
        yield Setting(kind, mesh, layout)


def simd_settings(dims, seed):
  """A legal setting on four processors, and for some rows on eight."""
  rng = random.Random(seed)
  for mesh in (FOUR, (EIGHT, CUBE)[seed % 2]) if seed % 5 == 0 else (FOUR,):
    layouts = _most_split(dims, mesh)
    if layouts:
      yield Setting(SIMD, mesh, rng.choice(layouts))


def wild_settings(names, seed, count=2):
  """Layouts that may be impossible: any name on any mesh axis."""
  rng = random.Random(seed)
  for _ in range(count):
    layout = tuple((n, rng.choice("xy")) for n in names if rng.random() < 0.8)
    for kind in KINDS:
      yield Setting(kind, FOUR, layout)


def _most_split(dims, mesh):
  """Layouts that split as many dimensions as the mesh has, or fewer."""
  for count in range(len(mesh), 0, -1):
    if found := _layouts(dims, mesh, count):
      return found
  return []


def _layouts(dims, mesh, count):
  """All ways to split `count` dimensions over as many mesh axes."""
  found = []
  for some in itertools.combinations(dims, count):
    for axes in itertools.permutations(mesh, count):
      pairs = list(zip(some, axes, strict=True))
      if all(n % m == 0 for (_, ns), (_, m) in pairs for n in ns):
        found.append(tuple((d, x) for (d, _), (x, _) in pairs))
  return found
