"""Arrays in, arrays out: for tests of functions of mesh tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.graph import Graph, Mesh, Tensor
from ..core.shape import Dimension, Shape
from ..spmd.lowering import Lowering
from ..spmd.placement import PlacementMeshImpl
from .source import import_tf_tensor


class NumpyConverter:
  """A graph on a mesh of one processor, to and from arrays.

  Example:
    >>> import mesh_tf2 as mtf
    >>> converter = mtf.test_utils.NumpyConverter()
    >>> x = converter.convert_np_array_to_mtf_tensor([1, 2], ["batch"])
    >>> print(converter.convert_mtf_tensor_to_np_array(x))
    [1 2]
  """

  def __init__(self) -> None:
    self.graph = Graph()
    self.mesh = Mesh(self.graph, "my_mesh")

  def convert_np_array_to_mtf_tensor(
    self,
    x: Any,
    dim_names: Sequence[str] | None = None,
    dtype: Any = tf.int32,
  ) -> Tensor:
    """An array as a mesh tensor.

    Args:
      x: an array, or a nest of lists of numbers.
      dim_names: a name for each of its axes; by default `dim0`, `dim1`, ...
      dtype: of the tensor.
    """
    array = np.asarray(x)
    names = dim_names or [f"dim{i}" for i in range(array.ndim)]
    shape = Shape(
      Dimension(name, size)
      for name, size in zip(names, array.shape, strict=True)
    )
    return import_tf_tensor(self.mesh, tf.cast(array, dtype), shape)

  def convert_mtf_tensor_to_tf_tensor(
    self, mtf_tensor: Tensor
  ) -> tuple[Lowering, tf.Tensor]:
    """The lowering of the graph as it is now, and the value of a tensor."""
    mesh_impl = PlacementMeshImpl("", "", [""])
    lowering = Lowering(self.graph, {self.mesh: mesh_impl})
    return lowering, lowering.export_to_tf_tensor(mtf_tensor)

  def convert_mtf_tensor_to_np_array(self, mtf_tensor: Tensor) -> np.ndarray:
    """The value of a tensor."""
    _, value = self.convert_mtf_tensor_to_tf_tensor(mtf_tensor)
    return np.asarray(value.numpy())
