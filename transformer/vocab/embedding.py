"""One table for a vocabulary: from ids to activations, and back to logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gin

import mesh_tf2 as mtf

if TYPE_CHECKING:
  from ..model.context import Context

configurable = gin.configurable(module="mesh_tf2.transformer.transformer")


@configurable
class VocabEmbedding:
  """A table with a row of activations for each id.

  The variable is made in the current scope.

  Args:
    mesh: the mesh.
    vocab_dim: the ids.
    output_dim: d_model.
    variable_dtype: of the table.
    name: of the table.
    ensemble_dim: if given, there is a table for each member.
    scale_variable_like_classifier_weights: whether the table begins as the
      weights of a classifier do, with variance 1 / d_model, and activations
      are scaled up; or else it begins with variance 1, and logits are scaled
      down.
  """

  def __init__(
    self,
    mesh: mtf.Mesh,
    vocab_dim: mtf.Dimension,
    output_dim: mtf.Dimension,
    variable_dtype: mtf.VariableDType,
    name: str,
    ensemble_dim: mtf.Dimension | None,
    scale_variable_like_classifier_weights: bool = False,
  ) -> None:
    self._vocab_dim = vocab_dim
    self._output_dim = output_dim
    self._scales_embedding = scale_variable_like_classifier_weights
    stddev = output_dim.size**-0.5 if self._scales_embedding else 1.0
    self._weights = mtf.layers.embedding_weights(
      mesh,
      vocab_dim,
      output_dim,
      variable_dtype,
      name,
      ensemble_dim,
      initializer=mtf.initializers.RandomNormal(0.0, stddev),
    )

  def ids_to_embedding(self, ids: mtf.Tensor, context: Context) -> mtf.Tensor:
    """The row of each id: the dimensions of `ids`, then d_model."""
    x = mtf.gather(self._weights, ids, self._vocab_dim)
    if self._scales_embedding:
      x = mtf.multiply(x, self._output_dim.size**0.5)
    return x

  def hidden_to_logits(
    self, hidden: mtf.Tensor, context: Context
  ) -> mtf.Tensor:
    """How well each row fits activations.

    Args:
      hidden: has d_model.
      context: of the call.

    Returns:
      The dimensions of `hidden` but d_model, then the ids.
    """
    if not self._scales_embedding:
      hidden = mtf.multiply(hidden, self._output_dim.size**-0.5)
    return mtf.einsum([hidden, self._weights], reduced_dims=[self._output_dim])


@configurable
def get_vocab_embedding_cls(cls: Any = VocabEmbedding) -> Any:
  """The class that models use for their tables; bound in gin files."""
  return cls
