"""The instructions of a mesh that an implementation has to have.

A laid-out tensor (`Slices`) is one slice per processor; how it is kept is the
implementation's affair. Slices vary along exactly the mesh axes that split the
tensor. The collectives below are all the communication there is.
"""

from __future__ import annotations

import abc
import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from ..core.layout import LayoutLike, pnum_to_processor_coordinates
from ..core.shape import Shape, ShapeLike
from .laid_out import Collective, LaidOutVariable, Slices
from .mesh_layout import MeshLayout
from .processes import Processes


class Instructions(MeshLayout, abc.ABC):
  """A mesh shape, layout rules, and the instructions of its processors.

  Args:
    shape: the mesh dimensions; no dimensions mean one processor.
    layout_rules: which tensor dimensions are split over which mesh dimensions.
  """

  needs_variables_first = False  # whether none can be made while a program runs
  is_one_device = False  # whether all processors are on the same one
  delays_sums = True  # whether sums over many rounds of a loop wait for its end

  def __init__(self, shape: ShapeLike, layout_rules: LayoutLike) -> None:
    super().__init__(shape, layout_rules)
    self._observe: Callable[[Collective], None] | None = None
    self._is_observed = True
    self._runs: tf.Variable | None = None
    self.variable_store: dict[str, LaidOutVariable] = {}
    self.processes = Processes()

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

  @contextlib.contextmanager
  def looped(self) -> Iterator[None]:
    """Around what is traced as a part of a TensorFlow loop."""
    yield

  @property
  def runs_on_processor(self) -> bool:
    """Whether what is traced now is the program of one processor alone."""
    return False

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

    Processors that receive nothing get zeros, unless the axis wraps. What goes
    all the way around is counted, as the original does, but not sent.
    """
    way = offset % self.shape[mesh_axis].size if wrap else offset
    self._record("shift", (mesh_axis,), x, offset, stays=not way)
    return self._shift(x, mesh_axis, way, wrap) if way else x

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
    self,
    kind: str,
    mesh_axes: Sequence[int],
    x: Slices,
    offset: int = 0,
    stays: bool = False,
  ) -> None:
    if self._observe is not None and self._is_observed:
      elements = math.prod(self.slice_sizes(x))
      axes, dtype = tuple(mesh_axes), self.dtype(x)
      self._observe(Collective(kind, axes, elements, dtype, offset, stays))
