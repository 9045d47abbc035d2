"""What a program costs on a mesh, counted from shapes and layout.

The program is built and lowered as ever, onto a mesh that computes nothing
(`counting.py`): no array is made, and a model of any size is counted in the
time that it takes to trace it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from ..core.graph import Graph, Mesh, Operation, Tensor
from ..core.names import absolute_names
from ..core.shape import Shape
from .cost_report import CollectiveCost, Cost, VariableCost
from .counting import CountingMeshImpl, UnknownState, unknown
from .laid_out import Collective
from .lowering import Lowering, needed
from .mesh import MeshImpl

T = TypeVar("T")


def program_cost(
  fn: Callable[..., Any],
  mesh_impl: MeshImpl,
  args: Sequence[Any] = (),
  kwargs: Mapping[str, Any] | None = None,
) -> Cost:
  """What one call of `fn(mesh, *args, **kwargs)` costs. Nothing is allocated.

  Args:
    fn: builds a graph, as for `Program.function`.
    mesh_impl: its shape and its layout rules are used, nothing else.
    args: arrays, tensors or `tf.TensorSpec`s, and whatever else `fn` takes.
    kwargs: likewise.

  Raises:
    LayoutError: a tensor cannot be laid out.
  """
  impl = CountingMeshImpl(mesh_impl.shape, mesh_impl.layout_rules)

  def count(mesh: Mesh, result: Any) -> Cost:
    return _cost_of(mesh, result, impl)

  return trace_without_values(count, fn, args, kwargs or {})


def build_graph(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
  """The graph that `fn(mesh, *args, **kwargs)` builds. Nothing is allocated.

  Args:
    fn: builds a graph, as for `Program.function`.
    *args: arrays, tensors or `tf.TensorSpec`s, and whatever else `fn` takes.
    **kwargs: likewise.
  """
  return trace_without_values(lambda mesh, result: mesh.graph, fn, args, kwargs)


def variable_cost(
  graph: Graph, mesh_impl: MeshImpl | None = None
) -> VariableCost:
  """The variables of a graph. It need not be lowered.

  Args:
    graph: a graph, perhaps one from `build_graph`.
    mesh_impl: how variables are split; by default one processor holds all.

  Raises:
    LayoutError: a variable cannot be laid out.
  """
  impl = mesh_impl or CountingMeshImpl("", "")
  parameters = graph.trainable_variables
  every = graph.all_variables
  return VariableCost(
    parameters=sum(v.size for v in parameters),
    parameters_per_processor=sum(impl.slice_size(v.shape) for v in parameters),
    bytes=sum(v.size * v.slice_dtype.size for v in every),
    bytes_per_processor=sum(
      impl.slice_size(v.shape) * v.slice_dtype.size for v in every
    ),
  )


def trace_without_values(
  use: Callable[[Mesh, Any], T],
  fn: Callable[..., Any],
  args: Sequence[Any],
  kwargs: Mapping[str, Any],
) -> T:
  """Builds a graph where tensors have no values, and hands it to `use`.

  Args:
    use: `f(mesh, result)` with the mesh of the graph, and what `fn` returned.
    fn: builds a graph, as for `Program.function`.
    args: arrays, tensors or `tf.TensorSpec`s, and whatever else `fn` takes.
    kwargs: likewise.

  Returns:
    What `use` returns.
  """
  made: list[T] = []

  def trace(*args: Any, **kwargs: Any) -> None:
    graph = Graph()
    graph.step = unknown(tf.int64, [])
    mesh = Mesh(graph, "mesh")
    with absolute_names():
      result = fn(mesh, *args, **kwargs)
    made.append(use(mesh, result))

  args, kwargs = tf.nest.map_structure(_as_spec, (list(args), dict(kwargs)))
  tf.function(trace, autograph=False).get_concrete_function(*args, **kwargs)
  return made[0]


def _as_spec(x: Any) -> Any:
  if isinstance(x, tf.distribute.DistributedValues):
    x = tf.distribute.get_strategy().experimental_local_results(x)[0]
  if isinstance(x, (np.ndarray, np.generic)):
    return tf.TensorSpec(x.shape, x.dtype)
  return tf.TensorSpec(x.shape, x.dtype) if tf.is_tensor(x) else x


def _cost_of(mesh: Mesh, result: Any, impl: MeshImpl) -> Cost:
  graph = mesh.graph
  results = [x for x in tf.nest.flatten(result) if isinstance(x, Tensor)]
  roots = [x.operation for x in results]
  roots += [op for op in graph.operations if op.has_effect]
  lowering = _CountingLowering(
    graph,
    {mesh: impl},
    operations=needed(roots, graph),
    state=UnknownState(),
    random_key=unknown(tf.uint64, []),
  )
  for x in results:
    lowering.export_to_tf_tensor(x)
  rounds = lowering.rounds
  whole, own = 0, 0
  for op, times in rounds.items():
    points, flops = _points(op)
    whole += points.size * flops * times
    own += impl.slice_size(points) * flops * times
  return Cost(
    impl.shape,
    variable_cost(graph, impl),
    sum(_bytes(op, impl) for op in rounds),
    whole,
    own,
    _by_kind(lowering.collectives, rounds, impl.shape),
  )


class _CountingLowering(Lowering):
  """Remembers what it lowered, and how often that would run."""

  def __init__(self, *args: Any, **kwargs: Any) -> None:
    self.rounds: dict[Operation, int] = {}
    super().__init__(*args, **kwargs)

  def run(self, operations: Iterable[Operation]) -> None:
    """Lowers operations, perhaps those inside another one."""
    around = self._current
    times = 1 if around is None else self.rounds[around] * _rounds(around)
    todo = list(operations)
    self.rounds.update(dict.fromkeys(todo, times))
    super().run(todo)


def _rounds(loop: Operation) -> int:
  """How often what is inside an operation runs; 1 where nobody knows."""
  return getattr(loop, "max_rounds", None) or 1


def _points(op: Operation) -> tuple[Shape, int]:
  """The points that are computed, and the operations on each of them."""
  primitive = getattr(op, "primitive", None)
  if primitive is None or not op.outputs:
    return Shape([]), 0
  return primitive.iteration(op), primitive.flops_per_point


def _bytes(op: Operation, impl: MeshImpl) -> int:
  """Of the slices that an operation makes. A variable's are its own."""
  if hasattr(op, "full_name"):
    return 0
  return sum(impl.slice_size(y.shape) * y.dtype.size for y in op.outputs)


def _by_kind(
  events: Iterable[tuple[Operation, Collective]],
  rounds: Mapping[Operation, int],
  mesh_shape: Shape,
) -> tuple[CollectiveCost, ...]:
  rows: dict[tuple[str, tuple[str, ...], tf.DType], list[int]] = {}
  for op, event in events:
    dims = [mesh_shape[a] for a in event.mesh_axes]
    if math.prod(d.size for d in dims) > 1:
      key = event.kind, tuple(d.name for d in dims), event.dtype
      total = rows.setdefault(key, [0, 0])
      total[0] += rounds[op]
      total[1] += event.elements * rounds[op]
  return tuple(
    CollectiveCost(kind, names, dtype, count, elements)
    for (kind, names, dtype), (count, elements) in sorted(
      rows.items(), key=lambda row: (*row[0][:2], row[0][2].name)
    )
  )
