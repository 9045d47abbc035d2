"""The instruction set of a mesh: what a lowering may ask of its processors.

A laid-out tensor (`Slices`) is one slice per processor; how it is kept is the
implementation's affair. Slices vary along exactly the mesh axes that split the
tensor. The collectives below are all the communication there is; everything
that can be built from them is built once, in this file.
"""

from __future__ import annotations

import abc
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from ..core.layout import (
  LayoutLike,
  pnum_to_processor_coordinates,
)
from ..core.shape import Dimension, Shape, ShapeLike
from . import slices as on_slice
from .laid_out import Collective, LaidOutVariable, PendingSum, Slices
from .mesh_layout import MeshLayout


class MeshImpl(MeshLayout, abc.ABC):
  """A mesh shape, layout rules, and the instructions of its processors.

  Args:
    shape: the mesh dimensions; no dimensions mean one processor.
    layout_rules: which tensor dimensions are split over which mesh dimensions.
  """

  needs_variables_first = False  # whether none can be made while a program runs
  delays_sums = True  # whether sums over many rounds of a loop wait for its end

  def __init__(self, shape: ShapeLike, layout_rules: LayoutLike) -> None:
    super().__init__(shape, layout_rules)
    self._observe: Callable[[Collective], None] | None = None
    self._is_observed = True
    self._runs: tf.Variable | None = None
    self.variable_store: dict[str, LaidOutVariable] = {}

  @property
  def supports_control_dependencies(self) -> bool:
    """Whether `depend` can order operations here."""
    return True

  def count_run(self) -> tf.Tensor:
    """How often it has run before: an int64 scalar."""
    if self._runs is None:
      with tf.init_scope():
        self._runs = tf.Variable(
          -1,
          dtype=tf.int64,
          trainable=False,
          experimental_enable_variable_lifting=False,
        )
    self._runs.assign_add(1)
    return self._runs.read_value()

  # Running a program.

  def run(self, fn: Callable[..., Any], *args: Any) -> Any:
    """Runs what every processor runs; returns what the first one returns."""
    return fn(*args)

  def made_on_processors(self, fn: Callable[[], Slices]) -> Slices:
    """The slices that `fn` makes, to be kept outside of the program."""
    return fn()

  # Instructions without communication.

  @abc.abstractmethod
  def slicewise(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Runs any TensorFlow function on each processor's own slices."""

  @abc.abstractmethod
  def map_trailing(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Like `slicewise`, for a function that acts on the trailing axes.

    `fn` must accept further axes in front of every slice, equal or of size 1,
    and broadcast over them. That lets a virtual mesh run it once.
    """

  def map_trailing_sum(
    self,
    fn: Callable[..., tf.Tensor],
    xs: Sequence[Slices],
    mesh_axes: Sequence[int],
  ) -> Slices:
    """`map_trailing`, to be summed over `mesh_axes` when somebody asks.

    `fn` takes a further argument `lead`: those of the axes in front over which
    it is to sum as well (and to drop), none where there are no such axes.
    """
    y = self.map_trailing(lambda *xs: fn(*xs, lead=()), *xs)
    return self.pending_sum(y, mesh_axes)

  @abc.abstractmethod
  def einsum(self, equation: str, *xs: Slices) -> Slices:
    """`tf.einsum` on each processor's slices; lower-case letters only."""

  @abc.abstractmethod
  def processor_coordinate(self, mesh_axis: int) -> Slices:
    """Each processor's coordinate on a mesh axis, an int32 scalar."""

  @abc.abstractmethod
  def slice_sizes(self, x: Slices) -> list[int]:
    """The sizes of one slice of `x`."""

  @abc.abstractmethod
  def dtype(self, x: Slices) -> tf.DType:
    """The dtype of `x`."""

  # Input, output, state.

  @abc.abstractmethod
  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """The slices of a whole tensor."""

  @abc.abstractmethod
  def export_tensor(self, x: Slices, shape: Shape) -> tf.Tensor:
    """The whole tensor that the slices make up."""

  @abc.abstractmethod
  def create_variable(
    self, name: str, value: Slices, trainable: bool
  ) -> LaidOutVariable:
    """A variable that starts as `value`."""

  @abc.abstractmethod
  def distinct_slices(
    self, x: Slices, shape: Shape
  ) -> Iterator[tuple[list[int], tf.Tensor]]:
    """Where each slice begins, and the slice; replicas once."""

  @abc.abstractmethod
  def assemble(
    self, shape: Shape, read: Callable[[list[int], list[int]], tf.Tensor]
  ) -> Slices:
    """Slices made by `read(begin, size)`, asked once for each distinct one."""

  @abc.abstractmethod
  def flatten(self, x: Slices) -> list[tf.Tensor]:
    """The TensorFlow tensors that `x` is kept in."""

  @abc.abstractmethod
  def unflatten(self, like: Slices, tensors: Sequence[tf.Tensor]) -> Slices:
    """Slices kept in `tensors` the way `like` is kept."""

  # Communication. The public methods record what is sent.

  def allreduce(
    self, x: Slices, mesh_axes: Sequence[int], reduction: str = "SUM"
  ) -> Slices:
    """SUM, MAX or MIN over the processors that differ along `mesh_axes`."""
    if not mesh_axes:
      return x
    self._record("allreduce", mesh_axes, x)
    return self._allreduce(x, tuple(mesh_axes), reduction)

  def allconcat(self, x: Slices, mesh_axis: int, concat_axis: int) -> Slices:
    """Every processor gets the slices of its group, joined along an axis."""
    y = self._allconcat(x, mesh_axis, concat_axis)
    self._record("allconcat", (mesh_axis,), y)
    return y

  def alltoall(
    self, x: Slices, mesh_axis: int, split_axis: int, concat_axis: int
  ) -> Slices:
    """Splits one axis over the group and gathers another one."""
    self._record("alltoall", (mesh_axis,), x)
    return self._alltoall(x, mesh_axis, split_axis, concat_axis)

  def reduce_scatter(
    self, x: Slices, mesh_axis: int, split_axis: int
  ) -> Slices:
    """The sum over a mesh axis; each processor gets its own part of an axis."""
    y = self._reduce_scatter(x, mesh_axis, split_axis)
    self._record("reduce_scatter", (mesh_axis,), y)
    return y

  def permute(
    self,
    x: Slices,
    sources: Sequence[int],
    parts: Sequence[int],
    varies: Sequence[int],
  ) -> Slices:
    """Every processor receives one part of the slice of one processor.

    Args:
      x: slices whose first axis numbers the parts.
      sources: for each processor the number of the one that it receives from;
        no processor sends twice.
      parts: for each processor which part it receives.
      varies: the mesh axes along which the result differs.

    Returns:
      Slices whose first axis has size 1.
    """
    y = self._permute(x, sources, parts, varies)
    axes = self._axes_between(sources)
    if axes:
      self._record("permute", axes, y)
    return y

  def _axes_between(self, sources: Sequence[int]) -> tuple[int, ...]:
    """The mesh axes along which anything moves."""
    pairs = [
      zip(
        pnum_to_processor_coordinates(self._shape, source),
        pnum_to_processor_coordinates(self._shape, pnum),
        strict=True,
      )
      for pnum, source in enumerate(sources)
    ]
    return tuple(
      a
      for a, column in enumerate(zip(*pairs, strict=True))
      if any(x != y for x, y in column)
    )

  def shift(self, x: Slices, mesh_axis: int, offset: int, wrap: bool) -> Slices:
    """Sends each slice `offset` processors further along a mesh axis.

    Processors that receive nothing get zeros, unless the axis wraps.
    """
    self._record("shift", (mesh_axis,), x, offset)
    return self._shift(x, mesh_axis, offset, wrap)

  @abc.abstractmethod
  def _allreduce(
    self, x: Slices, mesh_axes: tuple[int, ...], reduction: str
  ) -> Slices: ...

  @abc.abstractmethod
  def _allconcat(
    self, x: Slices, mesh_axis: int, concat_axis: int
  ) -> Slices: ...

  @abc.abstractmethod
  def _alltoall(
    self, x: Slices, mesh_axis: int, split_axis: int, concat_axis: int
  ) -> Slices: ...

  @abc.abstractmethod
  def _permute(
    self,
    x: Slices,
    sources: Sequence[int],
    parts: Sequence[int],
    varies: Sequence[int],
  ) -> Slices: ...

  @abc.abstractmethod
  def _shift(
    self, x: Slices, mesh_axis: int, offset: int, wrap: bool
  ) -> Slices: ...

  @contextlib.contextmanager
  def observed(self, observe: Callable[[Collective], None]) -> Iterator[None]:
    """Calls `observe` with each collective inside the block."""
    before, self._observe = self._observe, observe
    try:
      yield
    finally:
      self._observe = before

  @contextlib.contextmanager
  def unobserved(self) -> Iterator[None]:
    """Counts no collective inside the block."""
    before, self._is_observed = self._is_observed, False
    try:
      yield
    finally:
      self._is_observed = before

  def _record(
    self, kind: str, mesh_axes: Sequence[int], x: Slices, offset: int = 0
  ) -> None:
    if self._observe is not None and self._is_observed:
      elements = math.prod(self.slice_sizes(x))
      axes, dtype = tuple(mesh_axes), self.dtype(x)
      self._observe(Collective(kind, axes, elements, dtype, offset))

  # Built from the instructions.

  def allsplit(self, x: Slices, mesh_axis: int, split_axis: int) -> Slices:
    """Each processor keeps its own part of an axis. No communication."""
    m = self._shape[mesh_axis].size
    sizes = self.slice_sizes(x)
    part = sizes[split_axis] // m
    at = split_axis - len(sizes)

    def keep(x: tf.Tensor, coordinate: tf.Tensor) -> tf.Tensor:
      return tf.gather(x, tf.range(part) + coordinate * part, axis=at)

    return self.slicewise(keep, x, self.processor_coordinate(mesh_axis))

  def pending_sum(self, x: Slices, mesh_axes: Sequence[int]) -> Slices:
    """`x`, to be summed over `mesh_axes` when somebody needs the sum."""
    if not mesh_axes:
      return x
    return PendingSum(
      mesh_axes, lambda: x, lambda: self.allreduce(x, mesh_axes, "SUM")
    )

  def _reduce_scatter(
    self, x: Slices, mesh_axis: int, split_axis: int
  ) -> Slices:
    total = self._allreduce(x, (mesh_axis,), "SUM")
    return self.allsplit(total, mesh_axis, split_axis)

  def sum_scattered(
    self,
    x: PendingSum,
    change: Callable[[Slices], Slices],
    places: Mapping[int, int],
  ) -> Slices:
    """Takes a pending sum, so that a processor gets just its own part.

    Args:
      x: a sum over at least the mesh axes in `places`.
      change: a linear function of slices without communication, to be called
        first.
      places: for each mesh axis to split, the axis of a slice that it splits.
        Read after `change` is called.
    """
    with x.counting():
      y = change(x.partial())
      for a, at in places.items():
        y = self.reduce_scatter(y, a, at)
      rest = [a for a in x.mesh_axes if a not in places]
      return self.allreduce(y, rest)

  def einsum_sum(
    self, equation: str, xs: Sequence[Slices], mesh_axes: Sequence[int]
  ) -> Slices:
    """Einsum, to be summed over `mesh_axes` when somebody needs the sum."""
    return self.pending_sum(self.einsum(equation, *xs), mesh_axes)

  def global_index(self, shape: Shape) -> Slices:
    """The row-major position in the whole tensor of each element: uint64."""
    sizes, total = self.slice_shape(shape), None
    layout = self.tensor_layout(shape)
    stride = 1
    for i in reversed(range(len(shape))):
      after = len(shape) - 1 - i
      steps = tf.cast(tf.range(sizes[i], dtype=tf.int64), tf.uint64)
      local = on_slice.append_axes(steps * _u64(stride), after)
      if (a := layout[i]) is not None:
        local = self._offset(a, local, sizes[i] * stride)
      total = local if total is None else self._add(total, local)
      stride *= shape[i].size
    if total is None:
      total = tf.zeros([], tf.uint64)
    return self.constant(total) if tf.is_tensor(total) else total

  def positions(self, dim: Dimension, dtype: Any = tf.int32) -> Slices:
    """Each processor's part of 0, 1, ..., dim.size - 1."""
    (n,) = self.slice_shape(Shape([dim]))
    local = tf.range(n)
    axis = self.tensor_dimension_to_mesh_axis(dim)
    if axis is None:
      return self.constant(tf.cast(local, dtype))

    def add(coordinate: tf.Tensor) -> tf.Tensor:
      return tf.cast(on_slice.append_axes(coordinate * n, 1) + local, dtype)

    return self.map_trailing(add, self.processor_coordinate(axis))

  def _offset(self, mesh_axis: int, local: tf.Tensor, step: int) -> Slices:
    def add(coordinate: tf.Tensor) -> tf.Tensor:
      begin = tf.cast(coordinate, tf.uint64) * _u64(step)
      return on_slice.append_axes(begin, local.shape.rank) + local

    return self.map_trailing(add, self.processor_coordinate(mesh_axis))

  def _add(self, x: Slices, y: Slices) -> Slices:
    parts = [self.constant(v) if tf.is_tensor(v) else v for v in (x, y)]
    rank = max(len(self.slice_sizes(p)) for p in parts)

    def add(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
      return x + y

    return self.map_trailing(add, *(self._pad_rank(p, rank) for p in parts))

  def _pad_rank(self, x: Slices, rank: int) -> Slices:
    sizes = self.slice_sizes(x)
    full = [1] * (rank - len(sizes)) + sizes
    return self.map_trailing(lambda x: on_slice.reshape(x, len(sizes), full), x)

  def constant(self, value: tf.Tensor) -> Slices:
    """The same value on every processor."""
    anonymous = Shape((f"_{i}", n) for i, n in enumerate(value.shape.as_list()))
    return self.import_tensor(value, anonymous)

  def full(self, value: tf.Tensor, shape: Shape) -> Slices:
    """Slices of a tensor of `shape`, each element the scalar `value`."""
    sizes = self.slice_shape(shape)
    axes = self.tensor_layout(shape).mesh_axes
    if not axes:
      return self.constant(tf.fill(sizes, value))

    def fill(*coordinates: tf.Tensor) -> tf.Tensor:
      ranked = [c.shape.as_list() for c in coordinates]
      lead = [max(column) for column in zip(*ranked, strict=True)]
      return tf.fill([*lead, *sizes], value)

    return self.map_trailing(fill, *map(self.processor_coordinate, axes))

  def broadcast_to(self, x: Slices, shape: Shape) -> Slices:
    """Fills up a slice with size-1 axes to the slice of `shape`."""
    sizes = self.slice_shape(shape)
    if self.slice_sizes(x) == sizes:
      return x

    def fill(x: tf.Tensor) -> tf.Tensor:
      lead = x.shape.as_list()[: x.shape.rank - len(sizes)]
      return tf.broadcast_to(x, [*lead, *sizes])

    return self.map_trailing(fill, x)


def _u64(value: int) -> tf.Tensor:
  return tf.constant(value, tf.uint64)
