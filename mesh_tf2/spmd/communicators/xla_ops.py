"""The XLA operations that TensorFlow compiles and does not export.

`tf.raw_ops` has sums, all-to-alls and permutes of replicas, and nothing by
which a replica learns its own number, takes a maximum over others, keeps just
its part of a sum, or hears what all others have in one communication. What
TensorFlow has for these are operations in a module that is not public; no other
file may import it.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

# The serialization that StableHLO text is read as.
_CALL_VERSION = 9


def replica_id() -> tf.Tensor:
  """The number of this replica: int32, a scalar."""
  return gen_xla_ops.xla_replica_id()


def all_reduce(
  x: tf.Tensor, groups: Sequence[Sequence[int]], reduction: str
) -> tf.Tensor:
  """The Add, Max or Min of `x` over the members of a group."""
  return gen_xla_ops.xla_all_reduce(
    input=x,
    group_assignment=groups,
    reduce_op=reduction,
    mode="CrossReplica",
  )


def reduce_scatter(x: tf.Tensor, groups: Sequence[Sequence[int]]) -> tf.Tensor:
  """The sum of everybody's part i of the first axis, on member i."""
  return gen_xla_ops.xla_reduce_scatter(
    input=x,
    group_assignment=groups,
    scatter_dimension=0,
    reduce_op="Add",
  )


def all_gather(x: tf.Tensor, groups: Sequence[Sequence[int]]) -> tf.Tensor:
  """Everybody's `x`, along a new first axis.

  There is no operation for this one at all, but there is one that takes
  StableHLO, in which it can be said.
  """
  sizes, count = x.shape.as_list(), len(groups[0])
  one, part, all_parts = (
    _type(s, x.dtype) for s in (sizes, [1, *sizes], [count, *sizes])
  )
  module = f"""
    module @all_gather {{
      func.func public @main(%x: {one}) -> {all_parts} {{
        %part = stablehlo.reshape %x : ({one}) -> {part}
        %all = "stablehlo.all_gather"(%part) {{
          all_gather_dim = 0 : i64,
          replica_groups = dense<{[list(g) for g in groups]}>
            : tensor<{len(groups)}x{count}xi64>
        }} : ({part}) -> {all_parts}
        return %all : {all_parts}
      }}
    }}
  """
  (y,) = gen_xla_ops.xla_call_module(
    [x],
    version=_CALL_VERSION,
    module=module,
    Sout=[[count, *sizes]],
    Tout=[x.dtype],
    platforms=["TPU"],
    # Where it is compiled on a host, the platform is not the one it is for.
    disabled_checks=["platform"],
    function_list=[],
  )
  return y


def _type(sizes: Sequence[int], dtype: tf.DType) -> str:
  return f"tensor<{''.join(f'{n}x' for n in sizes)}{_ELEMENT[dtype]}>"


_ELEMENT = {
  tf.bool: "i1",
  tf.int8: "i8",
  tf.int16: "i16",
  tf.int32: "i32",
  tf.int64: "i64",
  tf.uint8: "ui8",
  tf.uint16: "ui16",
  tf.uint32: "ui32",
  tf.uint64: "ui64",
  tf.float16: "f16",
  tf.bfloat16: "bf16",
  tf.float32: "f32",
  tf.float64: "f64",
}
