"""The layer that looks at one position at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import gin

import mesh_tf2 as mtf

from .transformer_layer import TransformerLayer

if TYPE_CHECKING:
  from ..model.context import Context

configurable = gin.configurable(
  module="mesh_tf2.transformer.transformer_layers"
)


@configurable
class DenseReluDense(TransformerLayer):
  """Two dense layers with an activation function between them.

  Args:
    hidden_size: the size of d_ff, the dimension in between.
    dropout_rate: of what is hidden; all positions share the decisions.
    activation: the name of a function in `mtf`, or a function. A list makes as
      many first layers and multiplies their outputs: ["gelu", "linear"] is a
      gated gelu.
    use_bias: whether the dense layers have biases.
  """

  def __init__(
    self,
    hidden_size: int = 4096,
    dropout_rate: float = 0.0,
    activation: str | Sequence[str] = "relu",
    use_bias: bool = False,
  ) -> None:
    self.hidden_size = hidden_size
    self.dropout_rate = dropout_rate
    self.activation = activation
    self.use_bias = use_bias

  def call(
    self,
    context: Context,
    x: mtf.Tensor,
    losses: list[mtf.Tensor] | None = None,
  ) -> mtf.Tensor:
    """Applies the layer.

    Args:
      context: of the call.
      x: has d_model.
      losses: has no influence.
    """
    model_dim = context.model.model_dim
    hidden_dim = mtf.Dimension("d_ff", self.hidden_size)
    h = mtf.layers.dense_product(
      x,
      reduced_dims=[model_dim],
      new_dims=hidden_dim,
      activation_functions=self.activation,
      use_bias=self.use_bias,
      variable_dtype=context.variable_dtype,
      name="wi",
    )
    if context.train and self.dropout_rate:
      noise_shape = h.shape.drop([context.length_dim])
      h = mtf.dropout(h, True, rate=self.dropout_rate, noise_shape=noise_shape)
    return mtf.layers.dense(
      h,
      model_dim,
      reduced_dims=[hidden_dim],
      use_bias=self.use_bias,
      variable_dtype=context.variable_dtype,
      name="wo",
    )
