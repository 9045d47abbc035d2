"""Meshes on machines, against a search that knows nothing of tilings."""

import itertools
import math

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import mesh_tf2 as mtf
from mesh_tf2.spmd import hierarchical_tiling, topology
from mesh_tf2.spmd.torus import Torus, axis_hops


def are_neighbours(a, b, shape, wraps):
  """Whether one link joins two cores, given by their coordinates."""
  differing = [i for i in range(len(shape)) if a[i] != b[i]]
  if len(differing) != 1:
    return False
  (i,) = differing
  step = abs(a[i] - b[i])
  is_core = len(shape) > 2 and i == len(shape) - 1
  return is_core or step == 1 or (wraps[i] and step == shape[i] - 1)


def embedding_exists(sizes, shape, wraps, rings):
  """Backtracking over cores, processor by processor."""
  cores = list(itertools.product(*map(range, shape)))
  near = {
    a: {b for b in cores if are_neighbours(a, b, shape, wraps)} for a in cores
  }
  places = list(itertools.product(*map(range, sizes)))
  before = []
  for place in places:
    linked = []
    for axis, size in enumerate(sizes):
      row = [*place]
      if place[axis] > 0:
        row[axis] = place[axis] - 1
        linked.append(places.index(tuple(row)))
      if rings and size > 2 and place[axis] == size - 1:
        row[axis] = 0
        linked.append(places.index(tuple(row)))
    before.append(linked)
  chosen = []

  def extend():
    if len(chosen) == len(places):
      return True
    linked = before[len(chosen)]
    options = set(cores) - set(chosen)
    for i in linked:
      options &= near[chosen[i]]
    for core in sorted(options):
      chosen.append(core)
      if extend():
        return True
      chosen.pop()
    return False

  return extend()


def kinds(sizes, shape, wraps):
  l2p = topology.auto_logical_to_physical_tpu(sizes, shape, wraparound=wraps)
  return [hop.kind for hop in axis_hops(sizes, l2p, Torus(shape, wraps))]


def factorizations(n, length):
  if length == 1:
    return [(n,)] if n > 1 else []
  return [
    (first, *rest)
    for first in range(2, n)
    if n % first == 0
    for rest in factorizations(n // first, length - 1)
  ]


SMALL_MACHINES = [
  ((8,), (True,)),
  ((6,), (False,)),
  ((2, 4), (False, False)),
  ((3, 4), (False, False)),
  ((3, 4), (True, True)),
  ((3, 4), (True, False)),
  ((3, 3), (False, False)),
  ((3, 3), (True, False)),
  ((4, 4), (False, True)),
  ((4, 4), (True, True)),
  ((2, 5), (False, True)),
  ((2, 2, 2), (False, False, False)),
  ((4, 1, 2), (True, False, False)),
  ((3, 2, 2), (True, False, False)),
  ((3, 3, 1), (False, True, False)),
  ((4, 2, 2), (False, False, False)),
  ((2, 2, 4), (False, False, False)),
  ((3, 1, 4), (False, False, False)),
  ((2, 2, 3, 1), (False, False, False, False)),
  ((2, 2, 2, 2), (False, False, False, False)),
  ((4, 2, 1, 2), (True, False, False, False)),
]


@pytest.mark.parametrize(("shape", "wraps"), SMALL_MACHINES)
def test_axes_are_rings_or_lines_wherever_a_search_finds_any(shape, wraps):
  for length in (1, 2, 3, 4):
    for sizes in factorizations(math.prod(shape), length):
      found = kinds(list(sizes), shape, wraps)
      if embedding_exists(sizes, shape, wraps, rings=True):
        assert found == ["ring"] * length, sizes
      elif embedding_exists(sizes, shape, wraps, rings=False):
        assert "scattered" not in found, sizes
      else:
        assert "scattered" in found, sizes


@pytest.mark.parametrize(
  ("sizes", "shape", "wraps", "expected"),
  [
    # The machines of the paper: TPU v2 and v3, two cores a chip.
    ([16, 32], [16, 16, 1, 2], [1, 1, 0, 0], ["ring", "ring"]),
    ([16, 32], [16, 16, 1, 2], None, ["line", "ring"]),
    ([32, 16], [16, 16, 2], [1, 1, 0], ["ring", "ring"]),
    ([512], [16, 16, 2], None, ["ring"]),
    ([8, 4, 4], [8, 8, 1, 2], None, ["scattered", "ring", "line"]),
    ([2048], [32, 32, 1, 2], None, ["ring"]),
    # TPU v4: a three-dimensional torus, one core a chip.
    ([8, 16, 4], [8, 16, 4, 1], [1, 1, 1, 0], ["ring", "ring", "ring"]),
    ([4, 128], [8, 16, 4, 1], [1, 1, 1, 0], ["ring", "ring"]),
    ([2, 16, 16], [8, 16, 4, 1], [1, 1, 1, 0], ["ring", "ring", "ring"]),
    # TPU v5e: two dimensions, one core a chip.
    ([16, 16], [16, 16], [1, 1], ["ring", "ring"]),
    ([4, 8], [8, 4], None, ["line", "line"]),
    ([32], [4, 8], None, ["ring"]),
  ],
)
def test_axes_of_large_machines(sizes, shape, wraps, expected):
  shape = tuple(shape)
  wraps = None if wraps is None else tuple(map(bool, wraps))
  assert kinds(sizes, shape, wraps) == expected


@st.composite
def meshes_and_machines(draw):
  """Sizes of both; small primes are dealt out to each on their own."""
  primes = draw(st.lists(st.sampled_from([2, 2, 2, 3, 5]), max_size=7))
  rank = draw(st.integers(1, 4))
  axes = draw(st.integers(1, 4))
  shape, sizes = [1] * rank, [1] * axes
  for p in primes:
    shape[draw(st.integers(0, rank - 1))] *= p
    sizes[draw(st.integers(0, axes - 1))] *= p
  if rank > 2:  # the cores of a chip
    spare = shape[-1]
    shape[-1] = draw(st.sampled_from([n for n in (1, 2, 4) if spare % n == 0]))
    shape[0] *= spare // shape[-1]
  wraps = draw(st.none() | st.tuples(*[st.booleans()] * rank))
  return sizes, tuple(shape), wraps


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(meshes_and_machines())
def test_every_core_is_used_once_and_no_hops_are_longer_than_row_major(case):
  sizes, shape, wraps = case
  l2p = topology.auto_logical_to_physical_tpu(sizes, shape, wraparound=wraps)
  size = math.prod(sizes)
  assert sorted(l2p) == list(range(size))
  assert all(type(core) is int for core in l2p)
  torus = Torus(shape, wraps)
  ours = sum(hop.total for hop in axis_hops(sizes, l2p, torus))
  plain = sum(hop.total for hop in axis_hops(sizes, range(size), torus))
  assert ours <= plain


def test_hops_are_counted_in_links_around_every_axis():
  torus = Torus((4, 3), (True, False))
  row_major = axis_hops([4, 3], range(12), torus)
  assert [(h.kind, h.total) for h in row_major] == [("ring", 12), ("line", 16)]


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_any_number_of_cores_a_chip_gives_a_list_of_numbers(cores):
  l2p = topology.auto_logical_to_physical_tpu([4, 4 * cores], [4, 4, cores])
  assert sorted(l2p) == list(range(16 * cores))


def test_coordinates_are_those_of_the_numbers():
  numbers = topology.auto_logical_to_physical_tpu([4, 8], [4, 4, 2])
  places = topology.auto_logical_to_physical_tpu(
    [4, 8], [4, 4, 2], return_coordinates=True
  )
  assert [16 // 2 * x + 2 * y + core for x, y, core in places] == numbers


def test_a_mesh_may_be_given_by_its_dimensions():
  by_sizes = topology.auto_logical_to_physical_tpu([4, 8], [4, 4, 2])
  mesh = mtf.convert_to_shape("batch:4;model:8")
  assert topology.auto_logical_to_physical_tpu(mesh, [4, 4, 2]) == by_sizes


def test_many_axes_do_not_take_long():
  l2p = topology.auto_logical_to_physical_tpu([2] * 9, [16, 16, 2])
  assert sorted(l2p) == list(range(512))


@pytest.mark.parametrize(
  ("sizes", "shape", "wraps", "message"),
  [
    ([4, 4], [4, 4, 2], None, r"\[4, 4\] has 16 processors.* has 32 cores"),
    ([4], [1, 1, 1, 1, 4], None, r"physical_shape is \[1, 1, 1, 1, 4\]"),
    ([4], [4], [True, False], r"wraparound is \[True, False\]"),
  ],
)
def test_a_mesh_that_does_not_fit_is_named(sizes, shape, wraps, message):
  with pytest.raises(mtf.LayoutError, match=message):
    topology.auto_logical_to_physical_tpu(sizes, shape, wraparound=wraps)


def test_the_three_dimensions_of_a_topology_of_four():
  fold = topology.physical_shape_3d_from_topology_proto_4d
  assert fold([4, 8, 2, 1]) == [16, 4, 1]
  with pytest.raises(mtf.LayoutError, match=r"mesh_shape is \[4, 8\]"):
    fold([4, 8])


def made_up_topology(shape, hosts):
  """A topology whose devices are numbered host by host, x fastest."""
  places = [p[::-1] for p in itertools.product(*map(range, shape[::-1]))]
  places.sort(key=lambda p: p[3])
  coordinates = np.reshape(np.array(places, np.int32), [hosts, -1, 4])
  return tf.tpu.experimental.Topology(
    mesh_shape=np.array(shape, np.int32), device_coordinates=coordinates
  )


@pytest.mark.parametrize("shape", [(4, 4, 1, 2), (2, 2, 4, 1)])
def test_replicas_of_a_device_assignment_stand_where_the_mesh_has_them(shape):
  size = math.prod(shape)
  machine = made_up_topology(shape, hosts=2)
  assignment = topology.device_assignment(machine, [4, size // 4])
  assert assignment.num_replicas == size
  assert assignment.num_cores_per_replica == 1
  places = [assignment.coordinates(i, 0) for i in range(size)]
  assert len(set(places)) == size
  expected = topology.auto_logical_to_physical_tpu(
    [4, size // 4], shape, return_coordinates=True
  )
  assert [tuple(map(int, p)) for p in places] == expected
  assert "TPU:" in assignment.tpu_device(0, 0)


def test_places_on_the_machine_and_processors_are_found_from_each_other():
  assignment = topology.device_assignment(
    made_up_topology((4, 2, 2, 1), hosts=2), [4, 4]
  )
  places = [
    mtf.pnum_to_processor_coordinates_nd("x:4;y:4", n, assignment)
    for n in range(16)
  ]
  assert sorted(map(tuple, places)) == [
    (x, y, z, 0) for x in range(4) for y in range(2) for z in range(2)
  ]
  # The core of a chip that has one need not be named.
  short = [place[:3] for place in places]
  found = mtf.processor_coordinates_to_pnum_map_nd("x:4;y:4", short, assignment)
  assert found == list(range(16))
  with pytest.raises(mtf.LayoutError, match=r"no core at \[4, 0\]: the cores"):
    mtf.processor_coordinates_to_pnum_map_nd("", [[4, 0]], assignment)


def test_a_device_assignment_needs_every_core_of_the_topology():
  machine = tf.tpu.experimental.Topology(
    mesh_shape=np.array([2, 2, 1, 1], np.int32),
    device_coordinates=np.array(
      [[[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]], np.int32
    ),
  )
  with pytest.raises(mtf.LayoutError, match="has 4 places, but only 3 cores"):
    topology.device_assignment(machine, [4])


# Tiles of stated shapes.


def test_the_last_dimension_of_a_tiling_is_a_solid_block_of_cores():
  tiling = hierarchical_tiling.HierarchicalTiling(
    [("batch", [2, 2]), ("model", [2, 2])], [4, 4]
  )
  assert tiling.mesh_shape == mtf.convert_to_shape("batch:4;model:4")
  by_group = np.reshape(tiling.logical_to_physical, [4, 4])
  np.testing.assert_array_equal(by_group[0], [0, 1, 4, 5])
  np.testing.assert_array_equal(by_group[1], [2, 3, 6, 7])
  np.testing.assert_array_equal(by_group[:, 0], [0, 2, 8, 10])


@pytest.mark.parametrize(
  ("spec", "physical", "mesh"),
  [
    ([("batch", None), ("model", [1, 1, 2])], [4, 4, 2], "batch:16;model:2"),
    ([("a", [2, 1, 1]), ("b", None)], [4, 4, 2], "a:2;b:16"),
    ([("all", None)], [3, 5], "all:15"),
  ],
)
def test_one_mesh_dimension_takes_what_the_others_leave(spec, physical, mesh):
  tiling = hierarchical_tiling.HierarchicalTiling(spec, physical)
  size = math.prod(physical)
  assert tiling.mesh_shape == mtf.convert_to_shape(mesh)
  assert sorted(tiling.logical_to_physical) == list(range(size))
  shape = hierarchical_tiling.HierarchicalTiling.spec_to_mesh_shape(spec, size)
  assert shape == tiling.mesh_shape


@pytest.mark.parametrize(
  ("spec", "message"),
  [
    ([("a", [3, 1])], r"does not fill the machine \[4, 4\]"),
    ([("a", [2, 2])], "does not fill the machine"),
    ([("a", None), ("b", None)], "may have the tile None"),
    ([("a", [4])], r"tile \[4\] needs a size for each dimension"),
  ],
)
def test_tiles_that_do_not_fill_a_machine_are_named(spec, message):
  with pytest.raises(mtf.LayoutError, match=message):
    hierarchical_tiling.HierarchicalTiling(spec, [4, 4])


def test_tiles_that_do_not_use_up_the_processors_are_named():
  with pytest.raises(mtf.LayoutError, match="does not use up 6 processors"):
    hierarchical_tiling.HierarchicalTiling.spec_to_mesh_shape(
      [("a", [2, 2]), ("b", None)], 6
    )
