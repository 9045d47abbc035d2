"""What a primitive is: one kind of operation, all of it in one class."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from .shape import Shape

if TYPE_CHECKING:
  from ..spmd.laid_out import Slices
  from ..spmd.lowering import Lowering
  from ..spmd.mesh import MeshImpl
  from .graph import Apply, Tensor


@dataclasses.dataclass(frozen=True)
class Aval:
  """What is known of a tensor before it runs: its shape and dtype."""

  shape: Shape
  dtype: tf.DType

  def __repr__(self) -> str:
    return f"{self.dtype.name}[{self.shape}]"


class Primitive(abc.ABC):
  """One kind of operation: all that is known of it stands in its class.

  A subclass is a frozen dataclass. Its fields are the static parameters.
  """

  keeps_pending = False  # whether `lower` takes sums that are not reduced yet
  flops_per_point = 1  # floating-point operations per point of `iteration`
  work_counter = ""  # under which key the points of `iteration` are counted

  @property
  def name(self) -> str:
    """Under which name the operation appears in the graph and in errors."""
    return type(self).__name__.lower()

  @property
  def counted_as(self) -> str:
    """The class of operation under which the outputs are counted."""
    return f"{type(self).__name__}Operation"

  @abc.abstractmethod
  def infer(self, *avals: Aval) -> Aval | tuple[Aval, ...]:
    """The outputs' shapes and dtypes. Raises ValueError on bad inputs."""

  def gradient(self, op: Apply, *dys: Tensor) -> Sequence[Tensor | None]:
    """The gradient for each input; None where the input does not matter."""
    raise NotImplementedError(f"{self.name} has no gradient")

  @abc.abstractmethod
  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Any:
    """Every processor's slice of the outputs, given those of the inputs."""

  def lower_in(self, lowering: Lowering, op: Apply, *xs: Slices) -> Any:
    """Like `lower`; overridden where more than the mesh is needed."""
    return self.lower(lowering.mesh_impl(op), op, *xs)

  def iteration(self, op: Apply) -> Shape:
    """The points that are computed, for the count of operations."""
    return op.outputs[0].shape

  def unsplittable(self, op: Apply) -> frozenset[str]:
    """Names of the dimensions that must not be split."""
    return frozenset()
