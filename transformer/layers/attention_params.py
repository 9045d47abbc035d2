"""The projections of attention: to queries, keys and values, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import mesh_tf2 as mtf

if TYPE_CHECKING:
  from ..model.context import Context


class AttentionParams:
  """The variables `q`, `k`, `v` and `o`, and what is done with them.

  Args:
    mesh: the mesh.
    query_input_dim: what queries are made of.
    memory_input_dim: what keys and values are made of.
    output_dim: what comes out.
    key_dim: what queries and keys are compared along.
    value_dim: the dimension of a value.
    query_heads_dims: for each of these there is a query.
    memory_heads_dims: for each of these there are a key and a value.
    variable_dtype: of the variables.
    shared_kv: whether one variable, `kv`, makes both keys and values.
    no_query: whether there is no `q`.
    combine_dims: whether variables have heads and keys in one dimension, with
      the name of the first: few large dimensions suit an accelerator.
    keep_query_heads_dims: whether `q` and `o` are an exception to that.
    fold_scaling_into_initializer: whether queries begin smaller by the square
      root of the key's size, instead of being divided by it each time.
  """

  def __init__(  # noqa: PLR0913  the original's signature
    self,
    mesh: mtf.Mesh,
    query_input_dim: mtf.Dimension,
    memory_input_dim: mtf.Dimension,
    output_dim: mtf.Dimension,
    key_dim: mtf.Dimension,
    value_dim: mtf.Dimension,
    query_heads_dims: Sequence[mtf.Dimension] | None,
    memory_heads_dims: Sequence[mtf.Dimension] | None,
    variable_dtype: mtf.VariableDType,
    shared_kv: bool = False,
    no_query: bool = False,
    combine_dims: bool = True,
    keep_query_heads_dims: bool = False,
    fold_scaling_into_initializer: bool = True,
  ) -> None:
    if shared_kv and key_dim != value_dim:
      raise ValueError(
        f"shared_kv: keys have {key_dim}, values {value_dim}; they must agree"
      )
    self.query_input_dim = query_input_dim
    self.memory_input_dim = memory_input_dim
    self.output_dim = output_dim
    self.key_dim = key_dim
    self.value_dim = value_dim
    self.query_heads_dims = list(query_heads_dims or ())
    self.memory_heads_dims = list(memory_heads_dims or ())
    self.shared_kv = shared_kv
    self.no_query = no_query
    self._combine = combine_dims
    self._combine_queries = combine_dims and not keep_query_heads_dims
    unit = mtf.layers.unit_scaling()  # then the product with keys is scaled
    self._scales_queries = not (fold_scaling_into_initializer or unit)
    self._mesh = mesh
    self._dtype = variable_dtype
    self._make_variables()

  def _make_variables(self) -> None:
    from_queries = self.query_input_dim.size**-0.5
    from_memory = self.memory_input_dim.size**-0.5
    heads = self._combine
    if not self.no_query:
      scale = 1.0 if self._scales_queries else self.key_dim.size**-0.5
      q_side = self._side(self.q_dims, self._combine_queries)
      shape = [self.query_input_dim, *q_side]
      self.wq = self._variable("q", shape, from_queries * scale)
    k_shape = [self.memory_input_dim, *self._side(self.k_dims, heads)]
    if self.shared_kv:
      self.wkv = self._variable("kv", k_shape, from_memory)
    else:
      self.wk = self._variable("k", k_shape, from_memory)
      v_shape = [self.memory_input_dim, *self._side(self.v_dims, heads)]
      self.wv = self._variable("v", v_shape, from_memory)
    o_side = self._side(self.o_dims, self._combine_queries)
    stddev = math.prod(d.size for d in self.o_dims) ** -0.5
    self.wo = self._variable("o", [*o_side, self.output_dim], stddev)

  def _side(
    self, dims: list[mtf.Dimension], combine: bool
  ) -> list[mtf.Dimension]:
    return [mtf.combined_dimension(dims)] if combine else dims

  def _variable(
    self, name: str, dims: list[mtf.Dimension], stddev: float
  ) -> mtf.Tensor:
    if mtf.layers.unit_scaling():
      stddev = 1.0
    return mtf.get_variable(
      self._mesh,
      name,
      mtf.Shape(dims),
      self._dtype,
      initializer=mtf.initializers.RandomNormal(0.0, stddev),
    )

  @property
  def q_dims(self) -> list[mtf.Dimension]:
    """The dimensions of a query."""
    return [*self.query_heads_dims, self.key_dim]

  @property
  def k_dims(self) -> list[mtf.Dimension]:
    """The dimensions of a key."""
    return [*self.memory_heads_dims, self.key_dim]

  @property
  def v_dims(self) -> list[mtf.Dimension]:
    """The dimensions of a value."""
    return [*self.memory_heads_dims, self.value_dim]

  @property
  def o_dims(self) -> list[mtf.Dimension]:
    """The dimensions of what attention finds."""
    return [*self.query_heads_dims, self.value_dim]

  def compute_q(self, query_antecedent: mtf.Tensor) -> mtf.Tensor:
    """Queries from a tensor with `query_input_dim`."""
    q = self._project(
      query_antecedent, self.wq, self.query_input_dim, self.q_dims
    )
    if self._scales_queries:
      q = mtf.multiply(q, self.key_dim.size**-0.5)
    return q

  def compute_k(self, memory_antecedent: mtf.Tensor) -> mtf.Tensor:
    """Keys from a tensor with `memory_input_dim`."""
    return self._project(
      memory_antecedent, self.wk, self.memory_input_dim, self.k_dims
    )

  def compute_v(self, memory_antecedent: mtf.Tensor) -> mtf.Tensor:
    """Values from a tensor with `memory_input_dim`."""
    return self._project(
      memory_antecedent, self.wv, self.memory_input_dim, self.v_dims
    )

  def compute_kv(self, memory_antecedent: mtf.Tensor) -> mtf.Tensor:
    """What is both keys and values, with `shared_kv`."""
    return self._project(
      memory_antecedent, self.wkv, self.memory_input_dim, self.k_dims
    )

  def compute_keys_and_values(
    self, memory_antecedent: mtf.Tensor
  ) -> list[mtf.Tensor]:
    """Keys and values; one tensor if they are the same."""
    if self.shared_kv:
      return [self.compute_kv(memory_antecedent)]
    return [
      self.compute_k(memory_antecedent),
      self.compute_v(memory_antecedent),
    ]

  def compute_output(
    self, o: mtf.Tensor, output_shape: mtf.Shape | None = None
  ) -> mtf.Tensor:
    """What attention found, mapped to `output_dim`.

    Args:
      o: has `o_dims`.
      output_shape: the order of the result's dimensions.
    """
    lead = o.shape.drop(self.o_dims).dims
    reduced = self.o_dims
    if self._combine_queries:
      reduced = self.wo.shape.dims[:1]
      o = mtf.transpose(o, mtf.Shape([*lead, *self.o_dims]))
      o = mtf.replace_dimensions(o, self.o_dims, reduced)
    return mtf.layers.us_einsum([o, self.wo], output_shape, reduced)

  def _project(
    self,
    x: mtf.Tensor,
    w: mtf.Tensor,
    input_dim: mtf.Dimension,
    dims: list[mtf.Dimension],
  ) -> mtf.Tensor:
    made = w.shape.dims[1:]
    shape = mtf.Shape([*(x.shape - input_dim), *made])
    y = mtf.layers.us_einsum([x, w], shape)
    return y if made == dims else mtf.replace_dimensions(y, made, dims)


def attention_params(  # noqa: PLR0913  the original's signature
  context: Context,
  kv_dim: mtf.Dimension,
  num_heads: int,
  num_memory_heads: int = 0,
  shared_kv: bool = False,
  no_query: bool = False,
  combine_dims: bool = True,
  keep_query_heads_dims: bool = False,
  fold_scaling_into_initializer: bool = True,
) -> AttentionParams:
  """The projections of a layer, in the current variable scope.

  Args:
    context: of the call.
    kv_dim: of keys and values.
    num_heads: how many queries there are for each position.
    num_memory_heads: how many keys and values there are for each position:
      0 for as many as queries; 1 for one that all queries share (Shazeer, Fast
      transformer decoding, 2019); or a number that divides `num_heads`.
    shared_kv: see `AttentionParams`.
    no_query: see `AttentionParams`.
    combine_dims: see `AttentionParams`.
    keep_query_heads_dims: see `AttentionParams`.
    fold_scaling_into_initializer: see `AttentionParams`.

  Raises:
    ValueError: the heads cannot be shared out evenly.
  """
  queries, memories = _heads_dims(num_heads, num_memory_heads)
  return AttentionParams(
    context.mesh,
    query_input_dim=context.model.model_dim,
    memory_input_dim=context.model.model_dim,
    output_dim=context.model.model_dim,
    key_dim=kv_dim,
    value_dim=kv_dim,
    query_heads_dims=queries,
    memory_heads_dims=memories,
    variable_dtype=context.variable_dtype,
    shared_kv=shared_kv,
    no_query=no_query,
    combine_dims=combine_dims,
    keep_query_heads_dims=keep_query_heads_dims,
    fold_scaling_into_initializer=fold_scaling_into_initializer,
  )


def _heads_dims(
  num_heads: int, num_memory_heads: int
) -> tuple[list[mtf.Dimension], list[mtf.Dimension]]:
  heads = mtf.Dimension("heads", num_heads)
  if num_heads == 1:
    return [], []
  if num_memory_heads == 0:
    return [heads], [heads]
  if num_memory_heads == 1:
    return [heads], []
  if num_heads % num_memory_heads:
    raise ValueError(
      f"num_memory_heads is {num_memory_heads}, which does not divide "
      f"num_heads, {num_heads}; choose a divisor, 0 or 1"
    )
  groups = mtf.Dimension("heads", num_memory_heads)
  members = mtf.Dimension("query_heads", num_heads // num_memory_heads)
  return [groups, members], [groups]
