"""The program of one core, traced from shapes: what it takes and what it makes.

A function of a program is traced twice. The first time shows which variables it
has, and which of its inputs are imported just as they come: of those, a core is
handed its own slice, and of all others the whole. The second time traces what a
core does with the slices. No variable is made, and no array.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.graph import Graph, Mesh, Operation, Tensor
from ..core.layout import LayoutLike
from ..core.names import absolute_names
from ..core.shape import Shape, ShapeLike
from ..ops.source import ImportOperation
from ..ops.variables import Variable
from ..spmd import random_bits
from ..spmd.cost import trace_without_values
from ..spmd.counting import CountingMeshImpl
from ..spmd.lowering import Lowering, needed, with_inner
from ..spmd.mesh import MeshImpl
from .core_mesh import ArgumentState, CoreMeshImpl, tensor_before_check


@dataclasses.dataclass(frozen=True)
class CoreTensor:
  """What stands for a tensor on a core: an argument or a result.

  Attributes:
    name: of the variable, or where it stands among inputs or results.
    shape: the dimensions of the whole tensor; None if it has none, and every
      core has the whole.
    sizes: of a core's slice.
    dtype: of its elements.
  """

  name: str
  shape: Shape | None
  sizes: tuple[int, ...]
  dtype: tf.DType

  @property
  def spec(self) -> tf.TensorSpec:
    """Size and type of a core's slice."""
    return tf.TensorSpec(self.sizes, self.dtype)

  @property
  def bytes(self) -> int:
    """The size of a core's slice."""
    return math.prod(self.sizes) * self.dtype.size


@dataclasses.dataclass(frozen=True)
class CoreProgram:
  """The program that every core of a mesh runs.

  Its arguments are, in this order: step (int64) and key (uint64) of the random
  numbers, `inputs`, `variables`, and the values `captured`. It returns
  `results` and the new values of the variables named in `assigned`.

  Attributes:
    mesh: sizes and layout.
    inputs: what the function is called with.
    variables: those that it reads or assigns.
    results: the tensors that the function returns, in the order of `tf.nest`.
    assigned: names of the variables that get new values.
    traced: the function that was traced.
  """

  mesh: MeshImpl
  inputs: tuple[CoreTensor, ...]
  variables: tuple[CoreTensor, ...]
  results: tuple[CoreTensor, ...]
  assigned: tuple[str, ...]
  traced: Any

  @property
  def specs(self) -> list[tf.TensorSpec]:
    """Of the arguments, but for those that are captured."""
    return _specs(self.inputs, self.variables)

  @property
  def captured(self) -> list[tf.Tensor]:
    """Values from outside of the function, in the order of the arguments."""
    concrete = self.traced.get_concrete_function()
    held = {id(v.handle): v for v in concrete.graph.variables}
    return [
      held[id(x)].read_value() if id(x) in held else x
      for x in concrete.captured_inputs
    ]

  @property
  def operation_count(self) -> int:
    """How many TensorFlow operations were traced."""
    return len(self.traced.get_concrete_function().graph.get_operations())

  def hlo(self) -> bytes:
    """The program for a TPU as XLA's serialized `HloModuleProto`.

    Raises:
      ValueError: this TensorFlow has no kernels for TPUs.
    """
    make = self.traced.experimental_get_compiler_ir(*self.specs)
    serialized: bytes = make(stage="hlo_serialized", platform_name="TPU")
    return serialized


def core_program(
  mesh_shape: ShapeLike,
  layout: LayoutLike,
  fn: Callable[..., Any],
  args: Sequence[Any] = (),
  kwargs: Mapping[str, Any] | None = None,
) -> CoreProgram:
  """Traces what every core of a mesh does for `fn(mesh, *args, **kwargs)`.

  Args:
    mesh_shape: the mesh dimensions.
    layout: the layout rules.
    fn: builds a graph, as for `Program.function`.
    args: arrays, tensors or `tf.TensorSpec`s, and whatever else `fn` takes.
    kwargs: likewise.

  Raises:
    LayoutError: a tensor cannot be laid out.
  """
  nest = list(args), dict(kwargs or {})
  impl = CountingMeshImpl(mesh_shape, layout)
  inputs, variables = _survey(impl, fn, *nest)
  tracer = _Tracer(impl, fn, nest, inputs, variables)
  traced = tf.function(
    tracer.trace,
    autograph=False,
    jit_compile=True,
    input_signature=_specs(inputs, variables),
  )
  traced.get_concrete_function()
  return CoreProgram(
    impl, inputs, variables, tracer.results, tracer.assigned, traced
  )


def _specs(
  inputs: Sequence[CoreTensor], variables: Sequence[CoreTensor]
) -> list[tf.TensorSpec]:
  step, key = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.uint64)
  return [step, key, *(t.spec for t in (*inputs, *variables))]


def _survey(
  impl: MeshImpl,
  fn: Callable[..., Any],
  args: Sequence[Any],
  kwargs: Mapping[str, Any],
) -> tuple[tuple[CoreTensor, ...], tuple[CoreTensor, ...]]:
  """Inputs and variables of a function."""
  seen: list[Any] = []

  def remember(mesh: Mesh, *args: Any, **kwargs: Any) -> Any:
    seen.extend(x for x in tf.nest.flatten((args, kwargs)) if tf.is_tensor(x))
    return fn(mesh, *args, **kwargs)

  def look(mesh: Mesh, result: Any) -> Any:
    operations = list(with_inner(_needed(mesh.graph, result)))
    imports = [op for op in operations if isinstance(op, ImportOperation)]
    as_they_are = {x.ref() for x in tf.nest.flatten(result) if tf.is_tensor(x)}
    inputs = []
    for i, x in enumerate(seen):
      shape = None
      if x.ref() not in as_they_are:
        shape = _imported_as(x, imports, impl)
      sizes = x.shape.as_list() if shape is None else impl.slice_shape(shape)
      inputs.append(CoreTensor(f"input_{i}", shape, tuple(sizes), x.dtype))
    return tuple(inputs), tuple(_variables(operations, impl))

  return trace_without_values(look, remember, args, kwargs)


def _imported_as(
  x: tf.Tensor, imports: Sequence[ImportOperation], impl: MeshImpl
) -> Shape | None:
  """The dimensions of an input that is imported as it is, and not used else."""
  mine = [op for op in imports if tensor_before_check(op.tf_tensor) is x]
  checks = {op.tf_tensor.op for op in mine}
  shapes = [op.outputs[0].shape for op in mine]
  if not mine or any(c not in checks for c in x.consumers()):
    return None
  layouts = {impl.tensor_layout(s) for s in shapes}
  return shapes[0] if len(layouts) == 1 else None


def _variables(
  operations: Iterable[Operation], impl: MeshImpl
) -> list[CoreTensor]:
  found = {}
  for op in operations:
    for v in (op, *op.variables):
      if isinstance(v, Variable):
        sizes = tuple(impl.slice_shape(v.shape))
        found[v.full_name] = CoreTensor(
          v.full_name, v.shape, sizes, v.slice_dtype
        )
  return list(found.values())


def _needed(graph: Graph, result: Any) -> list[Operation]:
  leaves = tf.nest.flatten(result)
  roots = [x.operation for x in leaves if isinstance(x, Tensor)]
  return needed(
    [*roots, *(op for op in graph.operations if op.has_effect)], graph
  )


class _Tracer:
  """Traces one core's program, and remembers what it returns."""

  def __init__(
    self,
    impl: MeshImpl,
    fn: Callable[..., Any],
    nest: Any,
    inputs: Sequence[CoreTensor],
    variables: Sequence[CoreTensor],
  ) -> None:
    self._impl, self._fn, self._nest = impl, fn, nest
    self._inputs, self._variables = inputs, variables
    self.results: tuple[CoreTensor, ...] = ()
    self.assigned: tuple[str, ...] = ()

  def trace(
    self, step: tf.Tensor, key: tf.Tensor, *slices: tf.Tensor
  ) -> list[tf.Tensor]:
    """The results, then the new values of variables."""
    handed = slices[: len(self._inputs)]
    state = ArgumentState(
      {
        v.name: x
        for v, x in zip(
          self._variables, slices[len(self._inputs) :], strict=True
        )
      }
    )
    slices_of: dict[Any, tf.Tensor] = {}
    args, kwargs = self._whole(handed, slices_of)
    graph = Graph()
    graph.step = step
    mesh = Mesh(graph, "mesh")
    with absolute_names():
      result = self._fn(mesh, *args, **kwargs)
    if graph.random_salt is not None:
      key = random_bits.fold(key, graph.random_salt)
    impl = CoreMeshImpl(self._impl.shape, self._impl.layout_rules, slices_of)
    lowering = Lowering(
      graph,
      {mesh: impl},
      operations=_needed(graph, result),
      state=state,
      random_key=key,
    )
    return self._flat(lowering, result)

  def _whole(
    self, handed: Sequence[tf.Tensor], slices_of: dict[Any, tf.Tensor]
  ) -> Any:
    """The arguments of the function: whole tensors, or what stands for them."""
    leaves = []
    todo = iter(zip(self._inputs, handed, strict=True))
    for leaf in tf.nest.flatten(self._nest):
      if not _is_input(leaf):
        leaves.append(leaf)
        continue
      known, x = next(todo)
      if known.shape is not None:
        # Nobody looks at the values, and XLA drops them.
        zero = tf.zeros([], x.dtype)
        whole = tf.fill(known.shape.to_integer_list, zero)
        slices_of[whole.ref()] = x
        x = whole
      leaves.append(x)
    return tf.nest.pack_sequence_as(self._nest, leaves)

  def _flat(self, lowering: Lowering, result: Any) -> list[tf.Tensor]:
    values, results = [], []
    for i, x in enumerate(tf.nest.flatten(result)):
      shape = x.shape if isinstance(x, Tensor) else None
      if not isinstance(x, Tensor) and not tf.is_tensor(x):
        continue
      value = x if shape is None else lowering.slices(x)
      values.append(tf.identity(value))
      sizes = tuple(value.shape.as_list())
      results.append(CoreTensor(f"result_{i}", shape, sizes, value.dtype))
    new = lowering.new_values
    self.results = tuple(results)
    self.assigned = tuple(v.full_name for v in new)
    return [*values, *new.values()]


def _is_input(leaf: Any) -> bool:
  return tf.is_tensor(leaf) or isinstance(
    leaf, (np.ndarray, np.generic, tf.TensorSpec)
  )
