"""What a layer of a stack is."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import mesh_tf2 as mtf

if TYPE_CHECKING:
  from ..model.context import Context


class TransformerLayer(abc.ABC):
  """A function from activations to activations of the same shape.

  It makes its variables when it is called.
  """

  _name: str | None = None

  @abc.abstractmethod
  def call(
    self,
    context: Context,
    x: mtf.Tensor,
    losses: list[mtf.Tensor] | None = None,
  ) -> mtf.Tensor:
    """Applies the layer.

    Args:
      context: of the call of the model.
      x: batch, length, d_model; without the length in the mode "incremental".
      losses: a list to put further losses into.

    Returns:
      A tensor of the shape of `x`.
    """

  @property
  def name(self) -> str | None:
    """The scope of its variables within the stack."""
    return self._name

  def set_name(self, name: str) -> None:
    """Chooses the scope of its variables within the stack."""
    self._name = name
