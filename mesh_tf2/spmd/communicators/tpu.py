"""Communication of TPU cores: operations that XLA compiles into the program.

Every core runs the same compiled program; groups are numbers of replicas, which
are the processors in their order. What is sent has the tensor's own dtype, but
for sums over large groups in bfloat16: those would lose what they add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from . import xla_ops
from .base import Communicator, Groups

# Dtypes that XLA reduces while it sends; others are gathered first.
_REDUCED = (tf.float32, tf.float16, tf.bfloat16, tf.int32, tf.uint32)

# Dtypes that can be permuted; others travel as one of them.
_PERMUTED = (tf.float32, tf.float64, tf.bfloat16, tf.int32)

_MERGE = {"MAX": "Max", "MIN": "Min"}
_LOCALLY = {
  "SUM": tf.reduce_sum,
  "MAX": tf.reduce_max,
  "MIN": tf.reduce_min,
}


class TpuOps(Communicator):
  """Collectives of XLA among the replicas of a program.

  Args:
    bfloat16_max_group_size: sums over larger groups are taken in float32.
  """

  def __init__(self, bfloat16_max_group_size: int = 8) -> None:
    self._bfloat16_max = bfloat16_max_group_size

  def processor_number(self) -> tf.Tensor:
    """The number of the replica, known when the program runs."""
    return xla_ops.replica_id()

  def allreduce(
    self, x: tf.Tensor, groups: Groups, reduction: str
  ) -> tf.Tensor:
    """One all-reduce; of 64-bit numbers, an all-gather and its reduction."""
    if len(groups[0]) == 1:
      return x
    if x.dtype not in _REDUCED:
      return self._gathered_and_reduced(x, groups, reduction)
    if reduction != "SUM":
      return xla_ops.all_reduce(x, groups, _MERGE[reduction])
    y = tf.raw_ops.CrossReplicaSum(
      input=self._summable(x, groups), group_assignment=groups
    )
    return tf.cast(y, x.dtype)

  def allgather(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """One all-gather."""
    if len(groups[0]) == 1:
      return x[tf.newaxis]
    return xla_ops.all_gather(x, groups)

  def alltoall(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """One all-to-all."""
    size = len(groups[0])
    if size == 1:
      return x
    return tf.raw_ops.AllToAll(
      input=x,
      group_assignment=groups,
      concat_dimension=0,
      split_dimension=0,
      split_count=size,
    )

  def reduce_scatter(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """One reduce-scatter; of 64-bit numbers, an all-to-all and a sum."""
    if x.dtype not in _REDUCED:
      return tf.reduce_sum(self.alltoall(x, groups), axis=0)
    if len(groups[0]) > 1:
      sent = self._summable(x, groups)
      x = tf.cast(xla_ops.reduce_scatter(sent, groups), x.dtype)
    return tf.squeeze(x, axis=0)

  def permute(
    self, x: tf.Tensor, sources: Sequence[int | None], groups: Groups
  ) -> tf.Tensor:
    """One permute; who hears nobody gets zeros."""
    del groups  # the pairs say it all
    pairs = [[s, t] for t, s in enumerate(sources) if s is not None]
    sent, received = _permutable(x)
    y = tf.raw_ops.CollectivePermute(input=sent, source_target_pairs=pairs)
    return received(y)

  def _summable(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    is_small = len(groups[0]) <= self._bfloat16_max
    return x if x.dtype != tf.bfloat16 or is_small else tf.cast(x, tf.float32)

  def _gathered_and_reduced(
    self, x: tf.Tensor, groups: Groups, reduction: str
  ) -> tf.Tensor:
    return _LOCALLY[reduction](self.allgather(x, groups), axis=0)


def _permutable(
  x: tf.Tensor,
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
  """`x` without loss as something that can be permuted, and the way back."""
  if x.dtype in _PERMUTED:
    return x, lambda y: y
  if x.dtype.is_integer and x.dtype.size >= tf.int32.size:
    return tf.bitcast(x, tf.int32), lambda y: tf.bitcast(y, x.dtype)
  wider = tf.float32 if x.dtype.is_floating else tf.int32
  return tf.cast(x, wider), lambda y: tf.cast(y, x.dtype)
