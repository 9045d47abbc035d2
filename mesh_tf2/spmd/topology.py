"""Mesh to torus: neighbours on the mesh are neighbours on the machine.

A collective over a mesh axis is fastest where the axis is a ring of cores, or
at least a line, in which each one has a link to the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.errors import LayoutError
from ..core.shape import ShapeLike, to_shape
from .spread import best_spread
from .torus import Torus


def physical_shape_3d_from_topology_proto_4d(
  mesh_shape: Sequence[int],
) -> list[int]:
  """From [x, y, z, cores] to [y * z, x, cores].

  Raises:
    LayoutError: there are not four sizes.
  """
  if len(mesh_shape) != 4:
    raise LayoutError(
      f"mesh_shape is {list(mesh_shape)}; that of a TPU topology has four "
      "sizes: [x, y, z, cores]"
    )
  x, y, z, cores = map(int, mesh_shape)
  return [y * z, x, cores]


def auto_logical_to_physical_tpu(
  logical_shape: ShapeLike | Sequence[int],
  physical_shape: Sequence[int],
  return_coordinates: bool = False,
  *,
  wraparound: Sequence[bool] | None = None,
) -> list[int] | list[tuple[int, ...]]:
  """Spreads a mesh over a machine so that its axes are rings of neighbours.

  Optimal: where all mesh axes can be rings or lines of neighbours at once, they
  are, and the lengths of all hops together are the least that these allow, for
  chips of one or two cores. That is so just if the dimensions of the machine
  can be dealt out to the axes whole, where a ring of four counts as two
  dimensions of two: two axes that are rings or lines at once form squares of
  neighbours, and the only squares in a machine are spanned by two dimensions.

  Only good: everything else. An axis gets a block of several dimensions, and
  shares some with other axes, which stretches its hops; the best of the first
  5,000 ways of sharing is taken, and never a worse one than row-major order. A
  line that cannot be a ring may end far from where it begins.

  Args:
    logical_shape: the mesh, or the sizes of its dimensions.
    physical_shape: chips and the cores of each: [x], [x, y], [x, y, cores] or
      [x, y, z, cores]; any sizes.
    return_coordinates: whether to return coordinates instead of numbers.
    wraparound: for each entry of `physical_shape` whether the last chip is
      linked with the first one; None if that is not known.

  Returns:
    For each processor, row-major over the mesh, the number of its core,
    row-major over `physical_shape`; or the coordinates of its core.

  Raises:
    LayoutError: the mesh has more or fewer processors than there are cores.
  """
  sizes = _sizes(logical_shape)
  torus = Torus(
    tuple(map(int, physical_shape)),
    None if wraparound is None else tuple(map(bool, wraparound)),
  )
  if math.prod(sizes) != torus.size:
    raise LayoutError(
      f"a mesh of sizes {sizes} has {math.prod(sizes)} processors, but a "
      f"machine of physical_shape {list(torus.shape)} has {torus.size} "
      "cores"
    )
  numbers = best_spread(sizes, torus)
  if return_coordinates:
    places = zip(*np.unravel_index(numbers, torus.shape), strict=True)
    return [tuple(map(int, place)) for place in places]
  return numbers.tolist()


def device_assignment(
  topology: tf.tpu.experimental.Topology,
  mesh_shape: ShapeLike | Sequence[int],
  wraparound: Sequence[bool] | None = None,
) -> tf.tpu.experimental.DeviceAssignment:
  """Gives each processor of a mesh its core, as a replica of a `TPUStrategy`.

  Args:
    topology: what `tf.tpu.experimental.initialize_tpu_system` returns.
    mesh_shape: the mesh, of as many processors as the topology has cores.
    wraparound: for x, y, z and cores whether there are wraparound links; None
      if that is not known.

  Returns:
    A device assignment with one core for each replica, for
    `tf.distribute.TPUStrategy(experimental_device_assignment=...)`. Replica i
    is processor i of the mesh.

  Raises:
    LayoutError: the mesh has another size, or cores are missing.
  """
  shape = [int(n) for n in topology.mesh_shape]
  present = {
    tuple(map(int, place))
    for place in np.reshape(topology.device_coordinates, [-1, len(shape)])
  }
  if len(present) != math.prod(shape):
    raise LayoutError(
      f"the TPU topology {shape} has {math.prod(shape)} places, but only "
      f"{len(present)} cores: a mesh cannot be spread over it; leave "
      "experimental_device_assignment out"
    )
  places = auto_logical_to_physical_tpu(
    mesh_shape, shape, return_coordinates=True, wraparound=wraparound
  )
  return tf.tpu.experimental.DeviceAssignment(
    topology, np.asarray(places, np.int32)[:, None, :]
  )


def pnum_to_processor_coordinates_nd(
  mesh_shape: ShapeLike, pnum: int, device_assignment: Any
) -> list[int]:
  """Where on the machine the core of a processor is.

  Args:
    mesh_shape: without effect: the assignment knows.
    pnum: the number of the processor, which is that of the replica.
    device_assignment: of TensorFlow; see `device_assignment`.

  Returns:
    As many coordinates as the topology has.
  """
  del mesh_shape
  return [int(c) for c in device_assignment.coordinates(pnum, 0)]


def processor_coordinates_to_pnum_map_nd(
  mesh_shape: ShapeLike,
  logical_to_physical: Sequence[Sequence[int]],
  device_assignment: Any,
) -> list[int]:
  """Which processor has the core at each of some places.

  Args:
    mesh_shape: without effect: the assignment knows.
    logical_to_physical: places on the machine; coordinates that are left out
      at the end are 0.
    device_assignment: of TensorFlow; see `device_assignment`.

  Returns:
    A processor's number for each place.

  Raises:
    LayoutError: there is no core at a place.
  """
  del mesh_shape
  count = device_assignment.num_replicas
  at = {
    tuple(pnum_to_processor_coordinates_nd("", n, device_assignment)): n
    for n in range(count)
  }
  length = len(next(iter(at)))
  numbers = []
  for place in logical_to_physical:
    full = (*map(int, place), *[0] * (length - len(place)))
    if full not in at:
      raise LayoutError(
        f"there is no core at {list(place)}: the cores of the device "
        f"assignment are between {list(min(at))} and {list(max(at))}"
      )
    numbers.append(at[full])
  return numbers


def _sizes(shape: Any) -> list[int]:
  """The sizes of a mesh, which may be given as such."""
  if all(isinstance(n, (int, np.integer)) for n in shape):
    return [int(n) for n in shape]
  return to_shape(shape).to_integer_list
