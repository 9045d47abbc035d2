"""A mesh of which every processor runs the same program on its own slices.

The processors are the replicas of a strategy of TensorFlow's; what each of them
does is in `own_slice.py`.

Outside of the program, where variables are made, saved and restored, a value is
what the processors of this process hold (`LocalSlices`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.errors import LayoutError
from ..core.layout import LayoutLike
from ..core.shape import Shape, ShapeLike
from . import device_names
from .communicators.base import Communicator
from .laid_out import LaidOutVariable, Slices
from .own_slice import OwnSliceMeshImpl
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


class SimdMeshImpl(OwnSliceMeshImpl):
  """One program for all processors, which are the replicas of a strategy.

  Args:
    shape: the mesh dimensions.
    layout: the layout rules.
    strategy: has a replica for each processor.
    communicator: how its replicas send things to each other.

  Raises:
    LayoutError: the strategy has more or fewer replicas than the mesh, or a
      device that is not there.
  """

  def __init__(
    self,
    shape: ShapeLike,
    layout: LayoutLike,
    strategy: tf.distribute.Strategy,
    communicator: Communicator,
  ) -> None:
    super().__init__(shape, layout, communicator)
    if strategy.num_replicas_in_sync != self.size:
      raise LayoutError(
        f"mesh [{self.shape}] has {self.size} processors, but "
        f"{type(strategy).__name__} has {strategy.num_replicas_in_sync} "
        "replicas"
      )
    if isinstance(strategy, tf.distribute.MirroredStrategy):
      # TensorFlow says nothing of a missing one: the replicas wait for ever.
      for device in strategy.extended.worker_devices:
        device_names.existing(device)
    self._strategy = strategy
    numbers = self._local_numbers()
    if len(numbers) < self.size:
      self.processes = Cluster(
        numbers[0] // len(numbers), self.size // len(numbers), self._largest
      )
      self._agree = tf.function(
        functools.partial(self.run, self._largest_of_all), autograph=False
      )

  needs_variables_first = True

  @property
  def devices(self) -> list[str]:
    """The devices of the processors of this process, in their order."""
    return list(self._strategy.extended.worker_devices)

  # Running a program.

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
    # What is no tensor is the same on all, and comes back only once.
    every = [
      values if len(values) == count else values * count for values in flat
    ]
    return [
      tf.nest.pack_sequence_as(results, [values[i] for values in every])
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

    # Called as what it is traced to: TensorFlow warns of functions that are
    # traced again and again, as these are, one for each variable.
    made = make.get_concrete_function()()
    return LocalSlices({int(number): value for number, value in made})

  # Input, output, state.

  def import_tensor(self, value: tf.Tensor, shape: Shape) -> Slices:
    """Cuts out the processor's own slice; on the host, those that are here."""
    if self.runs_on_processor:
      return super().import_tensor(value, shape)
    return self.assemble(
      shape, lambda begin, size: tf.slice(value, begin, size)
    )

  def export_tensor(self, x: Slices, shape: Shape) -> tf.Tensor:
    """Joins the slices of all processors, on every one of them."""
    if isinstance(x, LocalSlices):
      return self._export_local(x, shape)
    return super().export_tensor(x, shape)

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


def _is_replica_of(strategy: tf.distribute.Strategy) -> bool:
  context = tf.distribute.get_replica_context()
  return context is not None and context.strategy is strategy
