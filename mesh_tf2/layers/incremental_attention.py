"""Attention of one position after another, as in decoding.

Keys and values of the positions so far are kept; a step adds its own.
"""

from __future__ import annotations

from typing import Any

from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Shape
from ..ops.binary import add, greater, multiply
from ..ops.linear.einsum import einsum
from ..ops.source import mtf_range, one_hot
from .attention import dot_product_attention, multihead_attention_vars
from .attention_masks import hide


def multihead_self_attention_incremental(
  query_antecedent: Tensor,
  prev_k: Tensor,
  prev_v: Tensor,
  step_num: Tensor,
  master_dtype: Any,
  slice_dtype: Any,
  name: str | None = "multihead_attention",
) -> tuple[Tensor, Tensor, Tensor]:
  """One step of `multihead_attention` to the positions so far.

  Args:
    query_antecedent: batch dimensions, channels: the input at this position.
    prev_k: batch dimensions, heads, memory_length, kv_channels: the keys so
      far, zeros at and after this position.
    prev_v: likewise, the values.
    step_num: int32 scalar: the position, counted from 0.
    master_dtype: of the variable in a checkpoint.
    slice_dtype: of the variable in memory.
    name: the scope of the variable `qkvo`.

  Returns:
    The output of the shape of `query_antecedent`, and the new keys and values.
  """
  x = query_antecedent
  *batch, channels = x.shape.dims
  heads, memory_length, kv_channels = prev_k.shape.dims[-3:]
  with layer_scope(x.graph, name, "multihead_attention"):
    wq, wk, wv, wo = multihead_attention_vars(
      x.mesh, heads, channels, kv_channels, master_dtype, slice_dtype, x.dtype
    )
    here = one_hot(step_num, memory_length, dtype=prev_k.dtype)
    shape = Shape([*batch, heads, kv_channels])
    q, k, v = (einsum([x, w], shape) for w in (wq, wk, wv))
    new_k = add(prev_k, multiply(k, here, prev_k.shape))
    new_v = add(prev_v, multiply(v, here, prev_v.shape))
    position = mtf_range(x.mesh, memory_length, step_num.dtype)
    mask = hide(greater(position, step_num), x.dtype)
    o = dot_product_attention(q, new_k, new_v, mask, is_training=False)
    return einsum([o, wo], x.shape), new_k, new_v


def multihead_encdec_attention_incremental(
  query_antecedent: Tensor,
  wq: Tensor,
  wo: Tensor,
  k: Tensor,
  v: Tensor,
  mask: Tensor | None,
  name: str | None = "multihead_attention",
) -> Tensor:
  """One step of attention to keys and values that are there already.

  Args:
    query_antecedent: query dimensions, channels: the input at this position.
    wq: heads, channels, kv_channels: the kernel of the queries.
    wo: heads, channels, kv_channels: the kernel of the outputs.
    k: some of the query dimensions, heads, memory_length, kv_channels.
    v: likewise.
    mask: added to the logits, or None.
    name: a scope; there are no variables in it.

  Returns:
    The shape of `query_antecedent`.
  """
  x = query_antecedent
  heads, _, kv_channels = k.shape.dims[-3:]
  with layer_scope(x.graph, name, "multihead_attention"):
    q = einsum([x, wq], Shape([*x.shape.dims[:-1], heads, kv_channels]))
    o = dot_product_attention(q, k, v, mask, is_training=False)
    return einsum([o, wo], x.shape)
