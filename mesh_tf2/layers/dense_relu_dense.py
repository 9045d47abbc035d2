"""Two dense layers with a rectifier between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..core.graph import Tensor
from ..core.names import layer_scope
from ..core.shape import Dimension
from ..ops.random import dropout as drop
from ..ops.unary import relu
from ..ops.variables import VariableDType
from .dense import dense


def dense_relu_dense(
  x: Tensor,
  hidden_channels: Dimension,
  is_training: bool,
  dropout: float = 0.0,
  dropout_broadcast_dims: Sequence[Dimension] | None = None,
  master_dtype: Any = tf.float32,
  slice_dtype: Any = tf.float32,
  name: str | None = None,
) -> Tensor:
  """relu(x * wi) * wo, with dropout on what is hidden.

  Args:
    x: its last dimension is mapped to `hidden_channels` and back.
    hidden_channels: the dimension in between.
    is_training: whether dropout is on.
    dropout: the rate of dropout.
    dropout_broadcast_dims: dimensions that share the decisions of dropout.
    master_dtype: of the variables in a checkpoint.
    slice_dtype: of the variables in memory.
    name: the scope of the variables `wi/kernel` and `wo/kernel`.
  """
  channels = x.shape.dims[-1]
  dtype = VariableDType(master_dtype, slice_dtype, x.dtype)
  with layer_scope(x.graph, name, "dense_relu_dense"):
    h = dense(
      x,
      hidden_channels,
      reduced_dims=[channels],
      use_bias=False,
      activation=relu,
      variable_dtype=dtype,
      name="wi",
    )
    noise_shape = h.shape.drop(dropout_broadcast_dims or ())
    h = drop(h, is_training, rate=dropout, noise_shape=noise_shape)
    return dense(
      h,
      channels,
      reduced_dims=[hidden_channels],
      use_bias=False,
      variable_dtype=dtype,
      name="wo",
    )
