"""A bias of attention by the distance between query and memory.

Shaw et al., 2018, in the form of Raffel et al., Exploring the limits of
transfer learning, 2020: distances fall into buckets, exact ones for the
neighbourhood, then wider and wider ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

import mesh_tf2 as mtf

if TYPE_CHECKING:
  from ..model.context import Context

MAX_DISTANCE = 128  # from here on, all distances are in one bucket
TYPES = ("bias", "bias_shared", "contextual")


def relative_position_bucket(
  relative_position: mtf.Tensor,
  bidirectional: bool = True,
  num_buckets: int = 32,
  max_distance: int = MAX_DISTANCE,
) -> mtf.Tensor:
  """The bucket of each distance.

  Args:
    relative_position: int32: the position of the memory minus that of the
      query.
    bidirectional: whether positions behind the query have buckets of their own
      (half of all); or else share that of the query.
    num_buckets: how many there are.
    max_distance: from here on, all distances are in the last one.

  Returns:
    Int32, in [0, num_buckets).

  Raises:
    ValueError: there are too few buckets: each side needs two.
  """
  back = mtf.negative(relative_position)
  side = num_buckets // 2 if bidirectional else num_buckets
  if side < 2:
    raise ValueError(
      f"relative_attention_num_buckets is {num_buckets}; set it to at least "
      f"{4 if bidirectional else 2}"
    )
  distance = mtf.abs(back) if bidirectional else mtf.maximum(back, 0)
  # A table, since logarithms differ in the last bit from device to device.
  dim = mtf.Dimension("_distance", max_distance + 1)
  table = mtf.import_tf_tensor(
    back.mesh, _buckets(side, max_distance), mtf.Shape([dim])
  )
  bucket = mtf.gather(table, mtf.minimum(distance, max_distance), dim)
  if bidirectional:
    ahead = mtf.cast(mtf.less(back, 0), tf.int32)
    bucket = mtf.add(bucket, mtf.multiply(ahead, side))
  return bucket


def _buckets(count: int, max_distance: int) -> np.ndarray:
  """The bucket of each distance from 0 to `max_distance`."""
  exact = count // 2
  table = []
  for n in range(max_distance + 1):
    if n < exact:
      table.append(n)
      continue
    progress = math.log(n / exact) / math.log(max_distance / exact)
    # Powers land on whole numbers, which rounding must not miss.
    step = math.floor(progress * (count - exact) + 1e-9)
    table.append(min(exact + step, count - 1))
  return np.array(table, np.int32)


def relative_attention_bias(
  relative_attention_type: str,
  context: Context,
  x: mtf.Tensor | None,
  relative_position: mtf.Tensor,
  *,
  num_buckets: int,
  bidirectional: bool,
  heads_dims: list[mtf.Dimension],
  name: str = "relative_attention_bias",
) -> mtf.Tensor:
  """What is added to the logits of attention, for each head and distance.

  Args:
    relative_attention_type: "bias": learned numbers; "bias_shared": those of
      the first layer that asks for them under this name; "contextual": made
      from the activations at the query.
    context: of the call.
    x: the input of the layer; has d_model. For "contextual" only.
    relative_position: length, memory_length, perhaps more: int32.
    num_buckets: how many buckets of distances there are.
    bidirectional: see `relative_position_bucket`.
    heads_dims: for each of these there is a bias.
    name: of the variable.

  Returns:
    The heads, and the dimensions of `relative_position`.

  Raises:
    ValueError: the type is unknown.
  """
  if relative_attention_type not in TYPES:
    raise ValueError(
      f"relative_attention_type is {relative_attention_type!r}; it must be "
      f"None or one of {TYPES}"
    )
  buckets_dim = mtf.Dimension("buckets", num_buckets)

  def bias() -> mtf.Tensor:
    bucket = relative_position_bucket(
      relative_position, bidirectional, num_buckets
    )
    if relative_attention_type == "contextual":
      assert x is not None, "a contextual bias needs the activations"
      values = mtf.layers.dense(
        x,
        [buckets_dim, *heads_dims],
        reduced_dims=[context.model.model_dim],
        use_bias=False,
        variable_dtype=context.variable_dtype,
        name="relative_attention_ak",
      )
    else:
      values = mtf.get_variable(
        context.mesh,
        name,
        mtf.Shape([*heads_dims, buckets_dim]),
        context.variable_dtype,
      )
    others = values.shape.drop([buckets_dim, *heads_dims])
    dims = dict.fromkeys([*heads_dims, *others, *bucket.shape])
    return mtf.gather(values, bucket, buckets_dim, mtf.Shape(dims))

  if relative_attention_type == "bias_shared":
    return context.cached(name, bias)
  return bias()
