"""Laid-out values that are made when somebody asks, for operations of users.

A user's `Operation.lower` may leave a sum to whoever reads it:
`lowering.set_tensor_lowering(y, LazyAllreduceSum(mesh_impl, x, mesh_axes))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .laid_out import PendingSum, Slices

if TYPE_CHECKING:
  from .instructions import Instructions


class LazyAllreduceSum(PendingSum):
  """Slices that are still to be summed over some mesh axes.

  Args:
    mesh_impl: the mesh that they are on.
    laid_out_input: the slices, before the sum.
    mesh_axes: the mesh axes to sum over.
    add_counter_fn: is called when the sum is taken, which happens once.
  """

  def __init__(
    self,
    mesh_impl: Instructions,
    laid_out_input: Slices,
    mesh_axes: Sequence[int],
    add_counter_fn: Callable[[], Any] | None = None,
  ) -> None:
    def total() -> Slices:
      if add_counter_fn is not None:
        add_counter_fn()
      return mesh_impl.allreduce(laid_out_input, self.mesh_axes, "SUM")

    super().__init__(mesh_axes, lambda: laid_out_input, total)
    self.mesh_impl = mesh_impl
    self.laid_out_input = laid_out_input
    self.add_counter_fn = add_counter_fn

  def to_laid_out_tensor(self) -> Slices:
    """The slices after the sum."""
    return self.total()

  @property
  def slice_shape(self) -> list[int]:
    """The sizes of one slice."""
    return self.mesh_impl.slice_sizes(self.laid_out_input)


class LazyLaidOutTensor:
  """Slices that are made anew whenever somebody asks.

  Args:
    to_laid_out_tensor_fn: makes them.
    slice_shape: the sizes of one slice.
  """

  def __init__(
    self, to_laid_out_tensor_fn: Callable[[], Slices], slice_shape: Any
  ) -> None:
    self._make = to_laid_out_tensor_fn
    self._slice_shape = slice_shape

  def to_laid_out_tensor(self) -> Slices:
    """The slices."""
    return self._make()

  @property
  def slice_shape(self) -> Any:
    """The sizes of one slice."""
    return self._slice_shape


def compatible_lazy_allreduce_sums(xs: Sequence[Any]) -> bool:
  """Whether these are sums still to be taken, all over the same mesh axes."""
  if not xs or not all(isinstance(x, PendingSum) for x in xs):
    return False
  impls = [getattr(x, "mesh_impl", None) for x in xs]
  return all(
    x.mesh_axes == xs[0].mesh_axes and impl is impls[0]
    for x, impl in zip(xs, impls, strict=True)
  )


def convert_args_to_laid_out_tensors(xs: Sequence[Any]) -> list[Any]:
  """Lazy values as the slices that they stand for; all others as they are."""
  return [_slices(x) for x in xs]


def _slices(x: Any) -> Any:
  if isinstance(x, PendingSum):
    return x.total()
  return x.to_laid_out_tensor() if isinstance(x, LazyLaidOutTensor) else x
