"""A mesh of which every processor runs the same program on its own slices.

A laid-out tensor is one TensorFlow tensor: the slice of the processor that runs
the program. What the processors have to say to each other goes through a
communicator. The program is as large for 512 processors as for two.

Outside of the program, where variables are made, saved and restored, a value is
what the processors of this process hold (`LocalSlices`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.errors import LayoutError
from ..core.layout import LayoutLike, processor_groups
from ..core.shape import Shape, ShapeLike
from .communicators.base import Communicator
from .laid_out import LaidOutVariable, Slices
from .mesh import MeshImpl
from .processes import Cluster


@dataclasses.dataclass(frozen=True)
class LocalSlices:
  """The slices of the processors of this process, by their numbers."""

  by_number: Mapping[int, tf.Tensor]


class SimdVariable(LaidOutVariable):
  """A variable of which every replica has another value: its own slice."""

  def __init__(
    self,
    strategy: tf.distribute.Strategy,
    name: str,
    value: LocalSlices,
    trainable: bool,
  ) -> None:
    del trainable  # optimizers go by the graph, not by what holds the values
    self._strategy, self._numbers = strategy, list(value.by_number)
    first = next(iter(value.by_number.values()))
    with strategy.scope():
      self._variable = tf.Variable(
        tf.zeros(first.shape, first.dtype),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.NONE,
        name=name,
        experimental_enable_variable_lifting=False,
      )
    self.assign(value)

  def read(self) -> tf.Tensor | LocalSlices:
    """This processor's slice; outside of the program, all that are here."""
    if _is_replica_of(self._strategy):
      return self._variable.read_value()
    parts = zip(self._numbers, self._variable.values, strict=True)
    return LocalSlices({n: v.read_value() for n, v in parts})

  def assign(self, value: tf.Tensor | LocalSlices) -> None:
    """Overwrites this processor's slice, or all that are here."""
    if isinstance(value, LocalSlices):
      for v, x in zip(
        self._variable.values, value.by_number.values(), strict=True
      ):
        v.assign(x)
    else:
      self._variable.assign(value)


class SimdMeshImpl(MeshImpl):
  """One program for all processors, which are the replicas of a strategy.

  Args:
    shape: the mesh dimensions.
    layout: the layout rules.
    strategy: has a replica for each processor.
    communicator: how its replicas send things to each other.

  Raises:
    LayoutError: the strategy has more or fewer replicas than the mesh.
  """

  def __init__(
    self,
    shape: ShapeLike,
    layout: LayoutLike,
    strategy: tf.distribute.Strategy,
    communicator: Communicator,
  ) -> None:
    super().__init__(shape, layout)
    if strategy.num_replicas_in_sync != self.size:
      raise LayoutError(
        f"mesh [{self.shape}] has {self.size} processors, but "
        f"{type(strategy).__name__} has {strategy.num_replicas_in_sync} "
        "replicas"
      )
    self._strategy = strategy
    self._communicator = communicator
    numbers = self._local_numbers()
    if len(numbers) < self.size:
      self.processes = Cluster(
        numbers[0] // len(numbers), self.size // len(numbers), self._largest
      )
      self._agree = tf.function(
        functools.partial(self.run, self._largest_of_all), autograph=False
      )

  needs_variables_first = True

  # Running a program.

  @contextlib.contextmanager
  def looped(self) -> Iterator[None]:
    """Tells the communicator."""
    with self._communicator.looped():
      yield

  @property
  def runs_on_processor(self) -> bool:
    """Whether a replica of the strategy is traced."""
    return _is_replica_of(self._strategy)

  def run(self, fn: Callable[..., Any], *args: Any) -> Any:
    """Runs `fn` on every processor; returns the first one's result."""
    return self.run_on_all(fn, *args)[0]

  def run_on_all(self, fn: Callable[..., Any], *args: Any) -> list[Any]:
    """Runs `fn`; returns the results of the processors of this process."""
    self._communicator.start_program()
    results = self._strategy.run(fn, args)
    flat = [
      self._strategy.experimental_local_results(y)
      for y in tf.nest.flatten(results)
    ]
    count = max(map(len, flat), default=1)
    return [
      tf.nest.pack_sequence_as(results, [values[i] for values in flat])
      for i in range(count)
    ]

  def _largest(self, value: int) -> int:
    values = self._strategy.experimental_distribute_values_from_function(
      lambda context: tf.constant(value, tf.int32)
    )
    return int(self._agree(values))

  def _largest_of_all(self, value: tf.Tensor) -> tf.Tensor:
    everybody = [list(range(self.size))]
    return self._communicator.allreduce(value, everybody, "MAX")

  def made_on_processors(self, fn: Callable[[], Slices]) -> LocalSlices:
    """What `fn` makes on every processor of this process."""

    @functools.partial(tf.function, autograph=False)
    def make() -> list[tuple[tf.Tensor, tf.Tensor]]:
      return self.run_on_all(
        lambda: (self._communicator.processor_number(), fn())
      )

    return LocalSlices({int(number): value for number, value in make()})

  # Instructions without communication.

  def slicewise(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Calls `fn`."""
    return fn(*xs)

  def map_trailing(self, fn: Callable[..., Any], *xs: Slices) -> Any:
    """Calls `fn`: there are no further axes."""
    return fn(*xs)

  def einsum(self, equation: str, *xs: Slices) -> Slices:
    """`tf.einsum`."""
    return tf.einsum(equation, *xs)

  def processor_coordinate(self, mesh_axis: int) -> Slices:
    """From the number of the processor."""
    size = self.shape[mesh_axis].size
    after = self.shape[mesh_axis + 1 :]
    stride = Shape(after).size
    return self._communicator.processor_number() // stride % size

  def slice_sizes(self, x: Slices) -> list[int]:
    """The sizes of the tensor."""
    return x.shape.as_list()

  def dtype(self, x: Slices) -> tf.DType:
    """The dtype of the tensor."""
    return x.dtype

  def flatten(self, x: Slices) -> list[tf.Tensor]:
    """The one tensor."""
    return [x]

  def unflatten(self, like: Slices, tensors: Sequence[tf.Tensor]) -> Slices:
    """The one tensor."""
    return tensors[0]

  # Input, output, state.

  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """Cuts the processor's own slice out of the whole tensor."""
    value = tf.convert_to_tensor(value)
    sizes = self.slice_shape(shape)
    if sizes == shape.to_integer_list:
      return value
    begin = [
      0 if a is None else self.processor_coordinate(a) * n
      for a, n in zip(self.tensor_layout(shape), sizes, strict=True)
    ]
    return tf.slice(value, begin, sizes)

  def export_tensor(self, x: Slices, shape: Shape) -> tf.Tensor:
    """Joins the slices of all processors, on every one of them."""
    if isinstance(x, LocalSlices):
      return self._export_local(x, shape)
    for i, a in enumerate(self.tensor_layout(shape)):
      if a is not None:
        x = self._allconcat(x, a, i)
    return x

  def _export_local(self, x: LocalSlices, shape: Shape) -> tf.Tensor:
    """The whole tensor, on the host; other processes must call it, too."""
    if len(x.by_number) < self.size:
      slices = self._strategy.experimental_distribute_values_from_function(
        lambda context: x.by_number[context.replica_id_in_sync_group]
      )
      join = functools.partial(self.export_tensor, shape=shape)
      run = functools.partial(self.run, join)
      return tf.function(run, autograph=False)(slices)
    dtype = next(iter(x.by_number.values())).dtype
    whole = np.zeros(shape.to_integer_list, dtype.as_numpy_dtype)
    for begin, part in self.distinct_slices(x, shape):
      ends = zip(begin, part.shape.as_list(), strict=True)
      whole[tuple(slice(b, b + n) for b, n in ends)] = part.numpy()
    return tf.constant(whole)

  def create_variable(
    self, name: str, value: Slices, trainable: bool
  ) -> LaidOutVariable:
    """A variable on every replica."""
    return SimdVariable(self._strategy, name, value, trainable)

  def distinct_slices(
    self, x: Slices, shape: Shape
  ) -> Iterator[tuple[list[int], tf.Tensor]]:
    """Those whose first holder is a processor of this process."""
    first: dict[tuple[int, ...], int] = {}
    for number in range(self.size):
      first.setdefault(tuple(self.slice_begin(shape, number)), number)
    for begin, number in first.items():
      if number in x.by_number:
        yield list(begin), x.by_number[number]

  def assemble(
    self, shape: Shape, read: Callable[[list[int], list[int]], tf.Tensor]
  ) -> Slices:
    """Reads what the processors of this process hold, each part once."""
    size, known = self.slice_shape(shape), {}
    parts = {}
    for number in self._local_numbers():
      begin = tuple(self.slice_begin(shape, number))
      if begin not in known:
        known[begin] = read(list(begin), size)
      parts[number] = known[begin]
    return LocalSlices(parts)

  def _local_numbers(self) -> list[int]:
    numbers = self._strategy.experimental_distribute_values_from_function(
      lambda context: tf.constant(context.replica_id_in_sync_group)
    )
    return list(map(int, self._strategy.experimental_local_results(numbers)))

  # Communication.

  def _allreduce(
    self, x: Slices, mesh_axes: tuple[int, ...], reduction: str
  ) -> Slices:
    groups = processor_groups(self.shape, mesh_axes)
    return self._communicator.allreduce(x, groups, reduction)

  def _allconcat(self, x: Slices, mesh_axis: int, concat_axis: int) -> Slices:
    y = self._communicator.allgather(x, self._groups(mesh_axis))
    return _joined(y, concat_axis)

  def _alltoall(
    self, x: Slices, mesh_axis: int, split_axis: int, concat_axis: int
  ) -> Slices:
    parts = _parts(x, split_axis, self.shape[mesh_axis].size)
    y = self._communicator.alltoall(parts, self._groups(mesh_axis))
    return _joined(y, concat_axis)

  def _reduce_scatter(
    self, x: Slices, mesh_axis: int, split_axis: int
  ) -> Slices:
    parts = _parts(x, split_axis, self.shape[mesh_axis].size)
    return self._communicator.reduce_scatter(parts, self._groups(mesh_axis))

  def _permute(
    self,
    x: Slices,
    sources: Sequence[int],
    parts: Sequence[int],
    varies: Sequence[int],
  ) -> Slices:
    targets = dict(zip(sources, range(self.size), strict=True))
    sent = [parts[targets[n]] if n in targets else 0 for n in range(self.size)]
    mine = tf.gather(sent, self._communicator.processor_number())
    part = tf.gather(x, [mine], axis=0)
    groups = processor_groups(self.shape, self._axes_between(sources))
    return self._communicator.permute(part, sources, groups)

  def _shift(
    self, x: Slices, mesh_axis: int, offset: int, wrap: bool
  ) -> Slices:
    groups = self._groups(mesh_axis)
    sources: list[int | None] = [None] * self.size
    for group in groups:
      for i, number in enumerate(group):
        source = i - offset
        if wrap or 0 <= source < len(group):
          sources[number] = group[source % len(group)]
    return self._communicator.permute(x, sources, groups)

  def _groups(self, mesh_axis: int) -> list[list[int]]:
    return processor_groups(self.shape, [mesh_axis])


def _is_replica_of(strategy: tf.distribute.Strategy) -> bool:
  context = tf.distribute.get_replica_context()
  return context is not None and context.strategy is strategy


def _joined(x: tf.Tensor, axis: int) -> tf.Tensor:
  """Parts along the first axis, put one behind another along an axis."""
  count, *sizes = x.shape.as_list()
  order = [*range(1, axis + 1), 0, *range(axis + 1, len(sizes) + 1)]
  sizes[axis] *= count
  return tf.reshape(tf.transpose(x, order), sizes)


def _parts(x: tf.Tensor, axis: int, count: int) -> tf.Tensor:
  """The parts of an axis, along a new first one."""
  sizes = x.shape.as_list()
  cut = [*sizes[:axis], count, sizes[axis] // count, *sizes[axis + 1 :]]
  rest = [i for i in range(len(cut)) if i != axis]
  return tf.transpose(tf.reshape(x, cut), [axis, *rest])
