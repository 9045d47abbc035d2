"""Multi-head attention, with its four kernels in one variable or in four.

Splitting the heads costs one allreduce of the output; splitting the positions
that are looked at costs those of a softmax over a split dimension.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Mesh, Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension, Shape
from ..ops.binary import add
from ..ops.cast import cast
from ..ops.initializers import Initializer, RandomNormal
from ..ops.linear.concat_split import unstack
from ..ops.linear.einsum import einsum
from ..ops.random import dropout as drop
from ..ops.softmax import softmax
from ..ops.variables import VariableDType, get_variable
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .attention_masks import rename_length_to_memory_length

PARTS = ("q", "k", "v", "o")


@dataclasses.dataclass(frozen=True)
class Normals(Initializer):
  """Normal, with a standard deviation for each position of dimension 0."""

  stddevs: tuple[float, ...]

  def slices(
    self, mesh: MeshImpl, shape: Shape, dtype: tf.DType, key: tf.Tensor
  ) -> Slices:
    """The slices of a tensor of `shape`; `key` seeds its random numbers."""
    normal = RandomNormal(0.0, 1.0).slices(mesh, shape, tf.float32, key)
    part = shape.size // len(self.stddevs)

    def scale(index: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
      at = tf.cast(index, tf.int64) // part
      return tf.cast(z * tf.gather(self.stddevs, at), dtype)

    return mesh.map_trailing(scale, mesh.global_index(shape), normal)


def multihead_attention_vars(
  mesh: Mesh,
  heads: Dimension,
  io_channels: Dimension,
  kv_channels: Dimension,
  master_dtype: Any,
  slice_dtype: Any,
  activation_dtype: Any,
) -> list[Tensor]:
  """The kernels of attention, kept in one variable `qkvo`.

  Args:
    mesh: the mesh.
    heads: counts the heads.
    io_channels: of inputs and outputs.
    kv_channels: of a key, and of a value.
    master_dtype: of the variable in a checkpoint.
    slice_dtype: of the variable in memory.
    activation_dtype: of the kernels.

  Returns:
    Four tensors (for queries, keys, values and outputs): heads, io_channels,
    kv_channels.
  """
  dtype = VariableDType(master_dtype, slice_dtype, activation_dtype)
  return multihead_attention_params(
    mesh, heads, io_channels, kv_channels, dtype, combine=True
  )


def multihead_attention_params(
  mesh: Mesh,
  heads: Dimension,
  io_channels: Dimension,
  kv_channels: Dimension,
  variable_dtype: VariableDType,
  combine: bool = False,
) -> list[Tensor]:
  """The kernels of attention: variables `q`, `k`, `v` and `o`.

  Queries and keys are drawn so that a logit has about unit variance: neither
  is divided by sqrt(kv_channels) later on.

  Args:
    mesh: the mesh.
    heads: counts the heads.
    io_channels: of inputs and outputs.
    kv_channels: of a key, and of a value.
    variable_dtype: of the variables.
    combine: whether there is one variable `qkvo` instead, with a first
      dimension of that name.

  Returns:
    Four tensors: heads, io_channels, kv_channels.
  """
  shape = Shape([heads, io_channels, kv_channels])
  v = io_channels.size**-0.5
  qk = v * kv_channels.size**-0.25
  o = (heads.size * kv_channels.size) ** -0.5
  stddevs = (qk, qk, v, o)
  if combine:
    qkvo = Dimension("qkvo", len(PARTS))
    stacked = get_variable(
      mesh,
      "qkvo",
      Shape([qkvo, *shape]),
      variable_dtype,
      initializer=Normals(stddevs),
    )
    return unstack(stacked, qkvo)
  return [
    get_variable(
      mesh, name, shape, variable_dtype, initializer=RandomNormal(0.0, stddev)
    )
    for name, stddev in zip(PARTS, stddevs, strict=True)
  ]


def dot_product_attention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  mask: Tensor | None,
  is_training: bool,
  dropout: float = 0.0,
  dropout_broadcast_dims: Sequence[Dimension] | None = None,
  extra_logit: Any = None,
) -> Tensor:
  """softmax(q * k + mask) * v.

  Args:
    q: ..., length, depth_k. Without a length there is one query.
    k: ..., memory_length, depth_k.
    v: ..., memory_length, depth_v.
    mask: added to the logits, or None.
    is_training: whether dropout is on.
    dropout: the rate of dropout on the weights.
    dropout_broadcast_dims: dimensions that share the decisions of dropout.
    extra_logit: a number, or a tensor without memory_length: one more logit,
      which weighs a value of zero.

  Returns:
    The dimensions of `q`, with depth_v for depth_k.
  """
  lead, memory = q.shape.dims[:-1], k.shape.dims[-2]
  logits = einsum([q, k], Shape([*lead, memory]))
  if mask is not None:
    logits = add(logits, cast(mask, logits.dtype), logits.shape)
  weights = softmax(logits, memory, extra_logit=extra_logit)
  noise_shape = weights.shape.drop(dropout_broadcast_dims or ())
  weights = drop(weights, is_training, rate=dropout, noise_shape=noise_shape)
  return einsum([weights, v], Shape([*lead, v.shape.dims[-1]]))


def multihead_attention(  # noqa: PLR0913  the original's signature
  query_antecedent: Tensor,
  memory_antecedent: Tensor | None,
  mask: Tensor | None,
  kv_channels: Dimension,
  heads: Dimension,
  is_training: bool,
  dropout: float = 0.0,
  dropout_broadcast_dims: Sequence[Dimension] | None = None,
  master_dtype: Any = tf.float32,
  slice_dtype: Any = tf.float32,
  name: str | None = "multihead_attention",
) -> Tensor:
  """Attention with kernels for queries, keys, values and outputs.

  Vaswani et al., Attention is all you need, 2017.

  Args:
    query_antecedent: batch dimensions, length, channels.
    memory_antecedent: the same batch dimensions, memory_length, channels; or
      None: the queries look at themselves.
    mask: added to the logits, or None.
    kv_channels: of a key, and of a value.
    heads: counts the heads.
    is_training: whether dropout is on.
    dropout: the rate of dropout on the weights.
    dropout_broadcast_dims: dimensions that share the decisions of dropout.
    master_dtype: of the variable in a checkpoint.
    slice_dtype: of the variable in memory.
    name: the scope of the variable `qkvo`.

  Returns:
    The shape of `query_antecedent`.

  Raises:
    ShapeError: batch dimensions or channels differ.
  """
  x = query_antecedent
  *batch, length, channels = x.shape.dims
  with layer_scope(x.graph, name, "multihead_attention"):
    wq, wk, wv, wo = multihead_attention_vars(
      x.mesh, heads, channels, kv_channels, master_dtype, slice_dtype, x.dtype
    )
    m = memory_antecedent
    if m is None:
      m = rename_length_to_memory_length(x, length.name)
    *memory_batch, memory_length, memory_channels = m.shape.dims
    if memory_batch != batch or memory_channels != channels:
      raise ShapeError(
        f"multihead_attention: the memory is [{m.shape}], the queries are "
        f"[{x.shape}]; all but the dimension before the last must agree"
      )
    q = einsum([x, wq], Shape([*batch, heads, length, kv_channels]))
    k = einsum([m, wk], Shape([*batch, heads, memory_length, kv_channels]))
    v = einsum([m, wv], Shape([*batch, heads, memory_length, kv_channels]))
    o = dot_product_attention(
      q, k, v, mask, is_training, dropout, dropout_broadcast_dims
    )
    return einsum([o, wo], x.shape)
