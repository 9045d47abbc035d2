"""Lowering: from a graph of named tensors to slices on a mesh.

It is functional. It reads the values of variables, and yields the slices of
every tensor and the new values of the variables that are assigned; it changes
nothing itself, but for a count of its runs where no key for random numbers is
given.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import (
  Iterable,
  Iterator,
  Mapping,
  MutableMapping,
  Sequence,
)
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from ..core.errors import LayoutError
from ..core.graph import Apply, Graph, Mesh, Operation, Tensor
from ..core.shape import Shape
from . import random_bits
from . import slices as on_slice
from .laid_out import Collective, LaidOutVariable, PendingSum, Slices
from .log import log_variable_sizes, pretty_print_counters, write_log
from .mesh import MeshImpl
from .state import VariableState


class Lowering:
  """The slices of every tensor of a graph.

  Args:
    graph: the program.
    mesh_to_impl: how each of its meshes is carried out.
    autostack: without effect: variables are kept one by one.
    log_file: a file to which the sizes of the variables and the counters are
      added.
    operations: which operations to lower; by default all.
    state: where variables are read from; by default, those that earlier
      lowerings on the same mesh implementation left there.
    random_key: a uint64 scalar: seed and step of the random numbers. Without
      it, every run draws others: the same ones in every process.

  Raises:
    LayoutError: a tensor cannot be laid out. Nothing has been made then.
  """

  def __init__(
    self,
    graph: Graph,
    mesh_to_impl: Mapping[Mesh, MeshImpl],
    autostack: bool = True,
    log_file: str | None = None,
    *,
    operations: Sequence[Operation] | None = None,
    state: VariableState | None = None,
    random_key: tf.Tensor | None = None,
  ) -> None:
    del autostack
    self.graph = graph
    self.mesh_to_impl = dict(mesh_to_impl)
    self.counters: list[tuple[str, int]] = []
    self.collectives: list[tuple[Operation, Collective]] = []
    self.tensors: dict[Tensor, Slices] = {}
    self.new_values: dict[Any, Slices] = {}
    self.histories: dict[Operation, Any] = {}  # what loops keep of their rounds
    self._state = state
    # By TensorFlow graph: the body of a loop is one of its own.
    self._constants: on_slice.Constants = WeakKeyDictionary()
    self._read: MutableMapping[Any, dict[Any, Slices]] = WeakKeyDictionary()
    self._assigned: set[Any] = set()
    self._current: Operation | None = None
    todo = list(graph.operations if operations is None else operations)
    check_layout(todo, self.mesh_to_impl)
    if random_key is None:
      random_key = _key_of_this_run(todo, self.mesh_to_impl)
    self.random_key = random_key
    self.run(todo)
    if log_file is not None:
      self._write_log(log_file)

  def mesh_impl(self, x: Tensor | Operation | Mesh) -> MeshImpl:
    """The implementation of the mesh that `x` lives on."""
    return self.mesh_to_impl[x if isinstance(x, Mesh) else x.mesh]

  def run(self, operations: Iterable[Operation]) -> None:
    """Lowers operations one after another."""
    for op in operations:
      before, self._current = self._current, op
      impl = self.mesh_impl(op)
      share = impl.is_one_device
      with impl.observed(self._observe), self._sharing(share):
        op.lower(self)
      self._current = before
      self._count_work(op)

  def _sharing(self, share: bool) -> contextlib.AbstractContextManager[None]:
    if not share:
      return contextlib.nullcontext()
    return on_slice.sharing_constants(self._constants)

  def _count_work(self, op: Operation) -> None:
    kind = type(op).__name__
    if isinstance(op, Apply):
      kind = op.primitive.counted_as
      if key := op.primitive.work_counter:
        head, slash, rest = key.partition("/")
        points = op.primitive.iteration(op)
        self.add_counter(key, self.mesh_impl(op).laid_out_size(points))
        self.add_counter(f"{head}_unique{slash}{rest}", points.size)
    for y in op.outputs:
      self.add_counter(f"output/{kind}", self.laid_out_size(y))
      self.add_counter(f"output_unique/{kind}", y.size)

  # Slices of tensors.

  def slices(self, x: Tensor) -> Slices:
    """The slices of `x`; a pending sum is taken now."""
    value = self.maybe_pending(x)
    if isinstance(value, PendingSum):
      value = value.total()
      self.verify_slice_shapes(x, value)
      self.tensors[x] = value
    return value

  def maybe_pending(self, x: Tensor) -> Slices | PendingSum:
    """The slices of `x`, or a sum of them that is still to be taken."""
    if x not in self.tensors:
      raise ValueError(
        f"{x} is not available here: it is made inside another function or "
        "loop; return it from there"
      )
    return self.tensors[x]

  def set_tensor_lowering(self, x: Tensor, value: Slices | PendingSum) -> None:
    """Records the slices of `x`, after a look at their shape."""
    if not isinstance(value, PendingSum):
      self.verify_slice_shapes(x, value)
    elif value.counted is None:
      # Whoever asks for the sum, it is counted with whom it comes from.
      impl, observe = self.mesh_impl(x), self._observer_for(x.operation)
      value.counted = lambda: impl.observed(observe)
    self.tensors[x] = value

  def verify_slice_shapes(self, x: Tensor, value: Slices) -> None:
    """Raises AssertionError on slices that are not what the layout wants."""
    impl = self.mesh_impl(x)
    got, want = impl.slice_sizes(value), impl.slice_shape(x.shape)
    if got != want or impl.dtype(value) != x.dtype:
      raise AssertionError(
        f"{x.operation.name} lowered {x} to slices "
        f"{impl.dtype(value).name}{got}; its layout wants "
        f"{x.dtype.name}{want}"
      )

  def export_to_tf_tensor(self, x: Tensor) -> tf.Tensor:
    """The whole value of `x`."""
    return self.mesh_impl(x).export_tensor(self.slices(x), x.shape)

  # Variables.

  def state(self, variable: Any) -> VariableState:
    """Where the values of a variable are kept between lowerings."""
    if self._state is not None:
      return self._state
    return VariableState(self.mesh_impl(variable).variable_store)

  @property
  def variables(self) -> dict[Any, LaidOutVariable]:
    """The variables of the graph, and where each is kept."""
    return {
      v: self.state(v).variable(v, self.mesh_impl(v))
      for v in self.graph.name_to_variable.values()
    }

  def variable_value(self, variable: Any) -> Slices:
    """The slices of a variable after the assignments lowered so far."""
    if variable in self.new_values:
      return self.new_values[variable]
    impl = self.mesh_impl(variable)
    if tf.executing_eagerly():
      return self.state(variable).read(variable, impl)
    known = self._read.setdefault(tf.compat.v1.get_default_graph(), {})
    if variable not in known:
      known[variable] = self.state(variable).read(variable, impl)
    return known[variable]

  def lowered_operation(self, op: Operation) -> Any:
    """Carries out the assignments of `op`; any other operation has run.

    Returns:
      What `op` makes, as whole tensors.
    """
    for variable in op.variables:
      if variable in self.new_values and variable not in self._assigned:
        self._assigned.add(variable)
        self.state(variable).assign(
          variable, self.mesh_impl(variable), self.new_values[variable]
        )
    return [self.export_to_tf_tensor(y) for y in op.outputs]

  def copy_masters_to_slices(self) -> None:
    """Nothing: a variable is kept as slices only."""

  def copy_slices_to_masters(self) -> None:
    """Nothing: a variable is kept as slices only."""

  # What was done.

  def add_counter(self, key: str, value: int) -> None:
    """Adds to the list of counters, in the order of lowering."""
    self.counters.append((key, value))

  def _write_log(self, log_file: str) -> None:
    for kind in (True, False):
      log_variable_sizes(
        [v for v in self.graph.all_variables if v.trainable is kind],
        "Trainable Variables" if kind else "Other Variables",
        mesh_to_impl=self.mesh_to_impl,
        log_file=log_file,
      )
    write_log(["Counters:", pretty_print_counters(self.counters)], log_file)

  def laid_out_size(self, x: Tensor) -> int:
    """Elements of all processors' slices of `x`, replicas counted."""
    return self.mesh_impl(x).laid_out_size(x.shape)

  def _observe(self, event: Collective) -> None:
    self._observer_for(self._current)(event)

  def _observer_for(self, op: Operation | None) -> Any:
    def observe(event: Collective) -> None:
      if op is None:
        return
      if not event.stays:
        self.collectives.append((op, event))
      size = event.elements * self.mesh_impl(op).size
      self.add_counter(_counter_key(op, event), size)

    return observe


def _key_of_this_run(
  operations: Iterable[Operation], mesh_to_impl: Mapping[Mesh, MeshImpl]
) -> tf.Tensor:
  key = tf.constant(0, tf.uint64)
  for op in with_inner(operations):
    if getattr(getattr(op, "primitive", None), "is_random", False):
      return random_bits.fold(key, mesh_to_impl[op.mesh].count_run())
  return random_bits.fold(key, 0)


def _counter_key(op: Operation, event: Collective) -> str:
  """The name under which the original counts a communication."""
  if event.kind == "shift":
    return f"shift[{event.offset}]"
  axes: Any = list(event.mesh_axes)
  if event.kind != "allreduce":
    axes = event.mesh_axes[0]
  kind = getattr(getattr(op, "primitive", op), "counter", op.name)
  return f"{event.kind}/{axes}/{kind}"


def needed(outputs: Iterable[Operation], graph: Graph) -> list[Operation]:
  """Those operations of a graph that `outputs` depend on, in order."""
  return needed_among(outputs, graph.operations)


def needed_among(
  outputs: Iterable[Operation], operations: Sequence[Operation]
) -> list[Operation]:
  """Those of `operations` that `outputs` depend on, in order."""
  wanted: set[Operation] = set()
  todo = list(outputs)
  while todo:
    op = todo.pop()
    if op not in wanted:
      wanted.add(op)
      todo += [x.operation for x in op.inputs]
  return [op for op in operations if op in wanted]


def with_inner(operations: Iterable[Operation]) -> Iterator[Operation]:
  """Operations, each followed by those that run inside it."""
  for op in operations:
    yield op
    yield from with_inner(op.inner_operations)


def check_layout(
  operations: Iterable[Operation], mesh_to_impl: Mapping[Mesh, MeshImpl]
) -> None:
  """Raises LayoutError on the first tensor that cannot be laid out."""
  for op in with_inner(operations):
    impl = mesh_to_impl[op.mesh]
    for x in op.outputs:
      _check_shape(op, x.shape, impl)
    if isinstance(op, Apply):
      # Two dimensions that meet only inside, as in a sum of products, cannot
      # share a mesh dimension either.
      _check_shape(op, op.primitive.iteration(op), impl)
    for x in [*op.inputs, *op.outputs]:
      for d in x.shape:
        axis = impl.tensor_dimension_to_mesh_axis(d)
        if axis is not None and d.name in op.unsplittable_dims:
          raise LayoutError(
            f"{op.name} along '{d.name}': it is split over mesh dimension "
            f"'{impl.shape[axis].name}'; rename the dimension first, or drop "
            f"the rule '{d.name}:{impl.shape[axis].name}'"
          )


def _check_shape(op: Operation, shape: Shape, impl: MeshImpl) -> None:
  try:
    math.prod(impl.slice_shape(shape))
  except LayoutError as e:
    kind = "variable" if hasattr(op, "full_name") else "operation"
    raise LayoutError(f"{e} ({kind} {op.name})") from None
