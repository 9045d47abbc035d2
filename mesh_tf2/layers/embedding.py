"""Embeddings: a table, and reading rows of it."""

from __future__ import annotations

from typing import Any

from ..core.graph import Mesh, Tensor
from ..core.shape import Dimension, Shape
from ..ops import initializers
from ..ops.gather import gather
from ..ops.variables import VariableDType, get_variable


def embedding_weights(
  mesh: Mesh,
  vocab_dim: Dimension,
  output_dim: Dimension,
  variable_dtype: VariableDType,
  name: str = "embedding",
  ensemble_dim: Dimension | None = None,
  initializer: Any = None,
) -> Tensor:
  """A table with a row for each id: the variable `name`.

  Args:
    mesh: the mesh.
    vocab_dim: counts the rows.
    output_dim: the dimension of a row.
    variable_dtype: of the variable.
    name: of the variable.
    ensemble_dim: if given, there is a table for each member.
    initializer: by default the standard normal distribution.
  """
  lead = [] if ensemble_dim is None else [ensemble_dim]
  return get_variable(
    mesh,
    name,
    Shape([*lead, vocab_dim, output_dim]),
    variable_dtype,
    initializer=initializer or initializers.RandomNormal(0.0, 1.0),
  )


def embedding(
  indices: Tensor,
  vocab_dim: Dimension,
  output_dim: Dimension,
  variable_dtype: VariableDType,
  name: str = "embedding",
) -> Tensor:
  """Row `indices[i]` of a new table, for each position i.

  Args:
    indices: int32, in [0, vocab_dim.size).
    vocab_dim: counts the rows.
    output_dim: the dimension of a row.
    variable_dtype: of the variable.
    name: of the variable.

  Returns:
    The dimensions of `indices`, then `output_dim`.
  """
  weights = embedding_weights(
    indices.mesh, vocab_dim, output_dim, variable_dtype, name
  )
  return gather(weights, indices, vocab_dim)
