"""One training step over several micro-batches, one after another.

Only one micro-batch's activations exist at a time. Gradients are summed up on
each processor, and over the mesh once, after the last micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tensorflow as tf

from ..autodiff.gradients import gradients
from ..autodiff.while_loop import while_loop
from ..core.errors import ShapeError
from ..core.graph import Graph, Tensor
from ..core.shape import Dimension
from ..ops.binary import equal, less
from ..ops.elementwise import cast, multiply
from ..ops.gather import gather
from ..ops.linear.reshape import replace_dimensions
from ..ops.source import constant, mtf_range

Features = Mapping[str, Tensor]
ModelFn = Callable[[dict[str, Tensor]], Mapping[str, Tensor]]


def serialize_training_step(
  features: Features, model_fn: ModelFn, batch_dim: Dimension, num_splits: int
) -> tuple[list[Tensor], dict[str, Tensor]]:
  """Gradients and outputs of a model, one micro-batch at a time.

  Micro-batch m holds the examples m, m + num_splits, m + 2 * num_splits, ...:
  every processor keeps its own part of the batch.

  Args:
    features: tensors that have `batch_dim`.
    model_fn: from the features of a micro-batch, whose batch dimension has the
      same name and is smaller, to outputs; `"loss"` among them.
    batch_dim: the batch dimension of the features.
    num_splits: the number of micro-batches; divides the batch size.

  Returns:
    The gradient of the summed loss for each trainable variable; and the
    outputs: those with the batch dimension in the order of the examples,
    others summed over the micro-batches.

  Raises:
    ShapeError: the batch does not divide evenly.
    ValueError: the loss does not depend on a trainable variable.
  """
  graph = next(iter(features.values())).graph
  if num_splits < 2:
    outputs = dict(model_fn(dict(features)))
    return _gradients(graph, outputs["loss"]), outputs
  if batch_dim.size % num_splits:
    raise ShapeError(
      f"batch {batch_dim} does not divide into {num_splits} micro-batches"
    )
  return _loop(graph, features, model_fn, batch_dim, num_splits)


def _loop(
  graph: Graph,
  features: Features,
  model_fn: ModelFn,
  batch_dim: Dimension,
  num_splits: int,
) -> tuple[list[Tensor], dict[str, Tensor]]:
  small = Dimension(batch_dim.name, batch_dim.size // num_splits)
  micro = Dimension("microbatch", num_splits)
  cut = {
    name: replace_dimensions(x, batch_dim, [small, micro])
    for name, x in features.items()
  }
  mesh = next(iter(features.values())).mesh
  names: list[str] = []

  def body(m: Tensor) -> list[Tensor]:
    outputs = model_fn({n: gather(x, m, micro) for n, x in cut.items()})
    names[:] = outputs
    grads = _gradients(graph, outputs["loss"])
    placed = [_place(y, m, small, micro) for y in outputs.values()]
    return [m + 1, *placed, *grads]

  def more(m: Tensor) -> Tensor:
    return less(m, num_splits)

  start = constant(mesh, 0, dtype=tf.int32)
  _, *sums = while_loop(
    more,
    body,
    [start],
    has_accumulators=True,
    maximum_iterations=num_splits,
    parallel_iterations=1,
  )
  outputs = {
    name: _joined(y, small, micro, batch_dim)
    for name, y in zip(names, sums, strict=False)
  }
  return sums[len(names) :], outputs


def _place(y: Tensor, m: Tensor, small: Dimension, micro: Dimension) -> Tensor:
  """An output with the batch dimension, at its place among micro-batches."""
  if small not in y.shape:
    return y
  here = equal(mtf_range(y.mesh, micro, tf.int32), m)
  at = y.shape.index(small) + 1
  dims = y.shape.dims
  return multiply(y, cast(here, y.dtype), [*dims[:at], micro, *dims[at:]])


def _joined(
  y: Tensor, small: Dimension, micro: Dimension, batch_dim: Dimension
) -> Tensor:
  if micro not in y.shape:
    return y
  return replace_dimensions(y, [small, micro], batch_dim)


def _gradients(graph: Graph, loss: Tensor) -> list[Tensor]:
  variables = graph.trainable_variables
  grads = gradients([loss], [v.value for v in variables])
  lonely = [
    v.full_name for v, g in zip(variables, grads, strict=True) if g is None
  ]
  if lonely:
    raise ValueError(
      f"the loss does not depend on trainable variables {', '.join(lonely)}; "
      "create them with trainable=False"
    )
  return [g for g in grads if g is not None]
