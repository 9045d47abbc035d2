"""Communication by TensorFlow's collective operations: NCCL, or gRPC and rings.

For the replicas of `MirroredStrategy` and `MultiWorkerMirroredStrategy`. Each
group of processors has a key, each communication of the program another one;
both are counted while the program is traced, which goes the same way on every
replica. Each replica has an ordering token of its own: without one, TensorFlow
would run the communications of different devices one after another, and each
would wait for the others for ever.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from .base import Communicator, Groups

# How long a process that does not answer is waited for. Writing a checkpoint,
# or tracing a function, takes a process less.
TIMEOUT_SECONDS = 600

# Each communicator has a range of keys of its own: TensorFlow remembers a key's
# group and shape as long as the process lives. The first range is that of the
# strategies themselves.
_RANGE = 1 << 21
_ranges = itertools.count(1)

_MERGE = {"SUM": "Add", "MAX": "Max", "MIN": "Min"}
_LOCALLY = {
  "SUM": tf.reduce_sum,
  "MAX": tf.reduce_max,
  "MIN": tf.reduce_min,
}

# Collectives know these dtypes; others travel as one of them.
_SENT = (tf.float32, tf.float64, tf.float16, tf.int32, tf.int64)


class CollectiveOps(Communicator):
  """Collective operations among the replicas of a strategy.

  All processes must make their communicators in the same order.

  Args:
    strategy: whose replicas are the processors, in their order.
    timeout_seconds: after which a communication with a processor that does not
      answer is an error; 0 waits for ever.
  """

  def __init__(
    self, strategy: tf.distribute.Strategy, timeout_seconds: float = 0
  ) -> None:
    self._timeout = float(timeout_seconds)
    with strategy.scope():
      self._tokens = tf.Variable(
        0.0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.NONE,
        name="mesh_ordering_token",
        experimental_enable_variable_lifting=False,
      )
    # The first of the replicas that this process has.
    self._first = _first_replica(strategy)
    self._keys: dict[tuple[tuple[int, ...], ...], int] = {}
    self._start = self._next_key = next(_ranges) * _RANGE
    # Communications of earlier programs, and of each replica in this one.
    self._before = 0
    self._apart = False  # whether each communication is a function of its own
    self._calls: dict[int, int] = {}

  def start_program(self) -> None:
    """Brings the counts together, wherever an error has ended a program."""
    self._before = max([self._before, *self._calls.values()])
    self._calls.clear()

  @contextlib.contextmanager
  def looped(self) -> Iterator[None]:
    """Around communications that are a part of a TensorFlow loop.

    TensorFlow takes the loop into the name of a communication, and the loop of
    each replica is another one; in a function of its own it has no loop.
    """
    before, self._apart = self._apart, True
    try:
      yield
    finally:
      self._apart = before

  def on_host(self) -> contextlib.AbstractContextManager[Any]:
    """The CPU of the replica's process."""
    return tf.device("/device:CPU:0")

  def processor_number(self) -> tf.Tensor:
    """A constant: each replica has a program of its own."""
    return tf.constant(self._number(), tf.int32)

  def allreduce(
    self, x: tf.Tensor, groups: Groups, reduction: str
  ) -> tf.Tensor:
    """One `CollectiveReduceV2`; where it has no kernel, a gather and a sum."""
    if not _is_sent(x, groups):
      return x
    if not _is_reduced(x.dtype):
      return _LOCALLY[reduction](self.allgather(x, groups), axis=0)
    sent = x if x.dtype in (*_SENT, tf.bfloat16) else tf.cast(x, tf.int32)
    reduce = functools.partial(
      tf.raw_ops.CollectiveReduceV2, merge_op=_MERGE[reduction], final_op="Id"
    )
    return tf.cast(self._call(reduce, sent, groups), x.dtype)

  def allgather(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """One `CollectiveGatherV2`."""
    size = len(groups[0])
    if not _is_sent(x, groups):
      return tf.stack([x] * size)
    sent = _packed(x)
    gather = tf.raw_ops.CollectiveGatherV2
    y = self._call(gather, sent[tf.newaxis], groups)
    return _unpacked(tf.ensure_shape(y, [size, *sent.shape]), x.dtype)

  def alltoall(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """One `CollectiveAllToAllV2`."""
    if not _is_sent(x, groups):
      return x
    sent = _packed(x)
    y = self._call(tf.raw_ops.CollectiveAllToAllV2, sent, groups)
    return _unpacked(tf.ensure_shape(y, sent.shape), x.dtype)

  def reduce_scatter(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """An all-to-all, and a sum: not every device has a kernel for both."""
    return tf.reduce_sum(self.alltoall(x, groups), axis=0)

  def permute(
    self, x: tf.Tensor, sources: Sequence[int | None], groups: Groups
  ) -> tf.Tensor:
    """An all-to-all within each group, of which one part is no zeros."""
    me = self._number()
    group = _group_of(me, groups)
    if len(group) == 1:
      return x if sources[me] == me else tf.zeros_like(x)
    zeros = tf.zeros_like(x)
    parts = [x if sources[target] == me else zeros for target in group]
    came = self.alltoall(tf.stack(parts), groups)
    source = sources[me]
    return zeros if source is None else came[group.index(source)]

  def _number(self) -> int:
    context = tf.distribute.get_replica_context()
    if context is None:
      raise ValueError(
        "a processor of an SPMD program speaks only inside strategy.run"
      )
    number = context.replica_id_in_sync_group
    return int(tf.get_static_value(number) if tf.is_tensor(number) else number)

  def _call(
    self, collective: Callable[..., tf.Tensor], x: tf.Tensor, groups: Groups
  ) -> tf.Tensor:
    """Carries out a collective operation among the members of each group."""
    me = self._number()
    self._calls[me] = self._calls.get(me, self._before) + 1
    index = next(i for i, group in enumerate(groups) if me in group)

    run = functools.partial(
      collective,
      group_size=len(groups[0]),
      group_key=self._first_key(groups) + index,
      instance_key=self._start + self._calls[me],
      ordering_token=[self._tokens.values[me - self._first].handle],
      communication_hint="auto",
      timeout_seconds=self._timeout,
    )
    if not self._apart:
      return run(input=x)
    apart = {"_noinline": True}
    return tf.function(
      lambda x: run(input=x), autograph=False, experimental_attributes=apart
    )(x)

  def _first_key(self, groups: Groups) -> int:
    known = tuple(map(tuple, groups))
    if known not in self._keys:
      self._keys[known] = self._next_key
      self._next_key += len(known)
    return self._keys[known]


@functools.cache
def communicator_of(
  strategy: tf.distribute.Strategy, timeout_seconds: float | None = None
) -> CollectiveOps:
  """The communicator of a strategy: the same one whenever it is asked for.

  Args:
    strategy: whose replicas are the processors.
    timeout_seconds: see `CollectiveOps`; by default `TIMEOUT_SECONDS` where
      other processes have to answer, and none within one process.

  Raises:
    TypeError: it is none of those whose replicas can be processors.
  """
  several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
  if not several and not isinstance(strategy, tf.distribute.MirroredStrategy):
    raise TypeError(
      f"strategy is {strategy!r}; the processors of a program are the replicas "
      "of a MirroredStrategy, MultiWorkerMirroredStrategy or TPUStrategy; for "
      "one device, give none"
    )
  if timeout_seconds is None:
    timeout_seconds = TIMEOUT_SECONDS if several else 0
  return CollectiveOps(strategy, timeout_seconds)


def _first_replica(strategy: tf.distribute.Strategy) -> int:
  """The number of the first replica that runs in this process."""
  numbers = strategy.experimental_local_results(
    strategy.experimental_distribute_values_from_function(
      lambda context: tf.constant(context.replica_id_in_sync_group)
    )
  )
  return int(numbers[0])


def _group_of(number: int, groups: Groups) -> Sequence[int]:
  return next(group for group in groups if number in group)


# What is only moved keeps its bits; one complex128 is two float64.
_SAME_BITS = {
  tf.bfloat16: tf.float16,
  tf.uint32: tf.int32,
  tf.uint64: tf.int64,
  tf.complex64: tf.int64,
  tf.complex128: tf.float64,
}


def _is_sent(x: tf.Tensor, groups: Groups) -> bool:
  """Whether there is anybody to send to, and anything.

  TensorFlow crashes where it gathers nothing.
  """
  return len(groups[0]) > 1 and x.shape.num_elements() != 0


def _is_reduced(dtype: tf.DType) -> bool:
  """Whether a collective operation can reduce it, if need be as int32."""
  return dtype in _SENT or dtype.size < tf.int32.size


def _packed(x: tf.Tensor) -> tf.Tensor:
  """`x` in a dtype that collectives take."""
  if x.dtype in _SENT:
    return x
  if x.dtype in _SAME_BITS:
    return tf.bitcast(x, _SAME_BITS[x.dtype])
  return tf.cast(x, tf.int32)


def _unpacked(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
  """The way back."""
  if dtype in _SAME_BITS:
    return tf.bitcast(x, dtype)
  return tf.cast(x, dtype)
