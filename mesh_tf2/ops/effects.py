"""Operations that do more, or less, than compute a value."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..core.graph import Apply, Aval, Operation, Primitive, Tensor, apply
from ..spmd.laid_out import Slices
from ..spmd.lowering import Lowering
from ..spmd.mesh import MeshImpl

# Has the plug-in that draws curves take a tensor for a point.
SCALAR_METADATA = tf.compat.v1.SummaryMetadata(
  plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"),
  data_class=1,  # DATA_CLASS_SCALAR in TensorFlow's summary.proto
)


@dataclasses.dataclass(frozen=True)
class StopGradient(Primitive):
  """A copy through which no gradient flows."""

  def infer(self, x: Aval) -> Aval:
    return x

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    return [None]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices) -> Slices:
    return x


def stop_gradient(x: Tensor) -> Tensor:
  """`x`, as a constant to `gradients`."""
  return apply(StopGradient(), x)


@dataclasses.dataclass(frozen=True)
class Barrier(Primitive):
  """Copies of the first `count` inputs, made after the others are there."""

  count: int

  def infer(self, *xs: Aval) -> tuple[Aval, ...]:
    return xs[: self.count]

  def gradient(self, op: Apply, *dys: Tensor) -> list[Tensor | None]:
    return [*dys, *[None] * (len(op.inputs) - self.count)]

  def lower(self, mesh: MeshImpl, op: Apply, *xs: Slices) -> Any:
    after = [t for x in xs[self.count :] for t in mesh.flatten(x)]
    copies = []
    with tf.control_dependencies(after):
      for x in xs[: self.count]:
        tensors = [tf.identity(t) for t in mesh.flatten(x)]
        copies.append(mesh.unflatten(x, tensors))
    return tuple(copies)


def barrier(xs: Sequence[Tensor], after: Sequence[Tensor]) -> list[Tensor]:
  """Copies of `xs` that are made once all of `after` have been computed."""
  ys: list[Tensor] = apply(Barrier(len(xs)), *xs, *after)
  return ys


def depend(x: Tensor, dependencies: Sequence[Tensor | Operation]) -> Tensor:
  """`x`, made available once `dependencies` have been computed."""
  after = [
    t
    for d in dependencies
    for t in (d.outputs if isinstance(d, Operation) else [d])
  ]
  return barrier([x], after)[0]


class Effect(Operation):
  """A copy of a tensor; making it does something."""

  has_effect = True

  def __init__(self, x: Tensor, others: Sequence[Tensor], name: str) -> None:
    super().__init__([x, *others], name=name)
    self._outputs = [Tensor(self, x.shape, x.dtype)]

  def gradient(self, grad_ys: Sequence[Tensor]) -> list[Tensor | None]:
    """Passes through to the first input."""
    return [grad_ys[0], *[None] * (len(self._inputs) - 1)]

  def lower(self, lowering: Lowering) -> None:
    """Does it, and copies the slices."""
    self.act([lowering.export_to_tf_tensor(x) for x in self._inputs])
    slices = lowering.slices(self._inputs[0])
    lowering.set_tensor_lowering(self._outputs[0], slices)

  def clone(self, inputs: Sequence[Tensor]) -> Operation:
    """A plain copy: what is computed twice acts once."""
    return Apply(Barrier(1), inputs[:1])

  def act(self, values: Sequence[tf.Tensor]) -> None:
    """What it does, given the whole values of the inputs."""
    raise NotImplementedError


class ScalarSummary(Effect):
  """Writes a scalar to the default `tf.summary` writer."""

  def __init__(self, label: str, x: Tensor) -> None:
    super().__init__(x, [], "scalar_summary")
    self._label = label

  def act(self, values: Sequence[tf.Tensor]) -> None:
    """Writes it at `tf.summary.experimental.get_step()`."""
    if tf.summary.experimental.get_step() is not None:
      # `tf.summary.scalar` would need the package tensorboard.
      value = tf.cast(values[0], tf.float32)
      tf.summary.write(self._label, value, metadata=SCALAR_METADATA)


def scalar_summary(name: str, x: Tensor) -> Tensor:
  """A copy of a scalar that also goes to TensorBoard as `name`."""
  if len(x.shape):
    raise ValueError(f"scalar_summary({name!r}): [{x.shape}] is no scalar")
  return ScalarSummary(name, x).outputs[0]


class Print(Effect):
  """Prints tensors whenever it runs."""

  def __init__(
    self, x: Tensor, data: Sequence[Tensor], message: str, summarize: int
  ) -> None:
    super().__init__(x, data, "print")
    self._message = message
    self._summarize = summarize

  def act(self, values: Sequence[tf.Tensor]) -> None:
    """Prints to standard error."""
    tf.print(self._message, *values[1:], summarize=self._summarize)


def print_tensors(
  x: Tensor, data: Sequence[Tensor], message: str, summarize: int = 3
) -> Tensor:
  """A copy of `x`; whenever it is made, `data` are printed after `message`."""
  return Print(x, data, message, summarize).outputs[0]
