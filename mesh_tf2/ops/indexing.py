"""Indexing by name: `x[{"length": slice(0, 10), "batch": 3}]`.

A number or a tensor of positions is looked up like a row of a table: nothing of
a split dimension travels but what is found.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension, Shape
from .gather import gather
from .linear.along import dimension_of
from .linear.reshape import rename_dimension
from .linear.slice_pad import mtf_slice
from .source import import_tf_tensor

_PICKED = "_picked"  # stands for the name of a dimension that is picked from


def pick(x: Tensor, index: Any) -> Tensor:
  """`x[index]`: some positions along some dimensions.

  Args:
    x: a tensor.
    index: says for each dimension, or its name, which positions to take: a
      slice (with any step but 0); a whole number, which removes the dimension;
      a list of whole numbers; or a tensor of integers, whose dimensions take
      the place of this one. A dimension that `x` and the tensor share is
      looked up element by element. Numbers and slices may count from the end
      with negative numbers; positions in a tensor may not, and one that does
      not exist finds zeros.

  Returns:
    A tensor. What is not mentioned is taken whole.

  Raises:
    ShapeError: there is no such dimension, or no such position.
    TypeError: `index` is no dictionary, or its values are none of these.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mesh = mtf.Mesh(mtf.Graph(), "mesh")
    >>> x = mtf.zeros(mesh, "batch:8 length:16")
    >>> x[{"length": slice(1, None), "batch": -1}].shape
    length:15
  """
  if not isinstance(index, Mapping):
    name = x.shape.dimension_names[0] if len(x.shape) else "length"
    raise TypeError(
      f"{x.name} is indexed by the names of its dimensions [{x.shape}], got "
      f"{index!r}; write for example x[{{{name!r}: 0}}]"
    )
  wanted = [
    (dimension_of("an index", x, key), value) for key, value in index.items()
  ]
  for dim, value in wanted:
    x = _pick_along(x, dim, value)
  return x


def _pick_along(x: Tensor, dim: Dimension, value: Any) -> Tensor:
  if isinstance(value, slice):
    return _pick_slice(x, dim, value)
  if isinstance(value, Tensor):
    return _pick_rows(x, dim, value)
  if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1:
    return _pick_list(x, dim, [_position(dim, v) for v in value])
  return gather(x, _position(dim, value), dim)


def _position(dim: Dimension, value: Any) -> int:
  """A position counted from the front.

  Raises:
    TypeError: it is no whole number.
    ShapeError: the dimension has no such position.
  """
  try:
    at = operator.index(value)
  except TypeError:
    at = None
  if at is None or isinstance(value, (bool, np.bool_)):
    raise TypeError(
      f"positions along {dim} are a slice, a whole number, a list of them, or "
      f"a tensor of integers, got {value!r}"
    )
  if not -dim.size <= at < dim.size:
    raise ShapeError(
      f"there is no position {at} along {dim}; take one from {-dim.size} to "
      f"{dim.size - 1}"
    )
  return at % dim.size


def _pick_slice(x: Tensor, dim: Dimension, value: slice) -> Tensor:
  positions = range(*value.indices(dim.size))
  if positions.step == 1 or len(positions) <= 1:
    begin = positions.start if len(positions) else 0
    whole = len(positions) == dim.size
    return x if whole else mtf_slice(x, begin, len(positions), dim.name)
  return _pick_list(x, dim, list(positions))


def _pick_list(x: Tensor, dim: Dimension, positions: list[int]) -> Tensor:
  shape = Shape([(dim.name, len(positions))])
  value = tf.constant(positions, tf.int32)
  return _pick_rows(x, dim, import_tf_tensor(x.mesh, value, shape))


def _pick_rows(x: Tensor, dim: Dimension, rows: Tensor) -> Tensor:
  """The dimensions of `rows` take the place of `dim`."""
  if not rows.dtype.is_integer:
    raise TypeError(
      f"positions along {dim} are integers, got {rows.aval!r}; the shape of a "
      "result cannot depend on values: choose elements with mtf.where"
    )
  again = dim.name in rows.shape.dimension_names
  if again:  # under another name until the old dimension is gone
    rows = rename_dimension(rows, dim.name, _PICKED)
  at = x.shape.index(dim)
  new = rows.shape.drop(x.shape)
  dims = x.shape.dims
  found = gather(x, rows, dim, Shape([*dims[:at], *new, *dims[at + 1 :]]))
  return rename_dimension(found, _PICKED, dim.name) if again else found
