"""The graph: operations, in order, and the meshes that they run on.

A program is a list of operations over named tensors. It knows no mesh shape,
no layout and no device: those come in when it is lowered.
"""

from __future__ import annotations

from collections.abc import (
  Callable,
  Iterable,
  Mapping,
  MutableMapping,
  Sequence,
)
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from .names import scoped_name, unique_name
from .pretty import to_text
from .primitive import Aval as Aval
from .primitive import Primitive as Primitive
from .tensor import Tensor as Tensor

if TYPE_CHECKING:
  from ..spmd.lowering import Lowering


class Graph:
  """Operations in the order in which they were made, and their variables.

  `clone_operations`, `combine_assignments` and `rewrite_stack_variables` are
  bound in `passes/rewrites.py`.
  """

  def __init__(self) -> None:
    self._operations: list[Operation] = []
    self._names: dict[str, int] = {}
    # Names of layers by the entry of a variable scope that they are in.
    self.layer_names: MutableMapping[Any, set[str]] = WeakKeyDictionary()
    self.name_to_variable: dict[str, Any] = {}
    # What parts of a program remember of it, each under itself as the key.
    self.notes: dict[Any, Any] = {}
    # What `get_variable` returns for a variable, if not its value.
    self.stand_in: Callable[[Any], Tensor] | None = None
    self.captured_variable_scope = tf.compat.v1.get_variable_scope()
    self._stacks: dict[Any, Operation] = {}  # from variables to those of stacks
    self.random_salt: tf.Tensor | None = None
    self.step: tf.Tensor | None = None  # int64 scalar, counted from 0

  @property
  def operations(self) -> list[Operation]:
    """All operations; each stands after those that it depends on."""
    return self._operations

  @property
  def all_variables(self) -> list[Any]:
    """The variables, in order of creation; those in a stack as one."""
    every = self.name_to_variable.values()
    return list(dict.fromkeys(self._stacks.get(v, v) for v in every))

  @property
  def trainable_variables(self) -> list[Any]:
    """The variables that optimizers update, in order of creation."""
    return [v for v in self.all_variables if v.trainable]

  def make_variables_untrainable(self, variables: Iterable[Any]) -> None:
    """Takes these variables out of `trainable_variables`."""
    for v in variables:
      v.trainable = False

  def unique_name(self, name: str, mark_as_used: bool = True) -> str:
    """`name` in the current variable scope, with a number if it is taken."""
    return unique_name(scoped_name(name), self._names, mark_as_used)

  def capture_operations(
    self, fn: Callable[[], Any]
  ) -> tuple[Any, list[Operation]]:
    """Calls `fn`; returns its result and the operations that it made."""
    start = len(self._operations)
    return fn(), self._operations[start:]

  def detach(self, operations: Iterable[Operation]) -> None:
    """Takes operations out of the program, to be run inside another one."""
    gone = set(operations)
    self._operations[:] = [o for o in self._operations if o not in gone]

  def stack_variables(self, stack: Operation) -> None:
    """Puts an operation in the place of its variables, whose values it makes.

    Args:
      stack: the last operation that was made.
    """
    first = self._operations.index(stack.variables[0])
    self._operations.insert(first, self._operations.pop())
    self.detach(stack.variables)
    for v in stack.variables:
      self._stacks[v] = stack
      v.value.operation = stack

  @property
  def to_string(self) -> str:
    """The variables, then the other operations: one line each."""
    return to_text(self)

  def __repr__(self) -> str:
    return self.to_string


class Mesh:
  """A named array of processors, still without shape or devices."""

  def __init__(
    self, graph: Graph, name: str, variable_placer: Any = None
  ) -> None:
    self._graph = graph
    self._name = name
    self.variable_placer = variable_placer

  @property
  def graph(self) -> Graph:
    """The graph that this mesh belongs to."""
    return self._graph

  @property
  def name(self) -> str:
    """The name given at construction."""
    return self._name

  @property
  def variable_placer_fn(self) -> Any:
    """From a variable to its device by `variable_placer`, or `"cpu:0"`."""
    if self.variable_placer is None:
      return "cpu:0"
    return self.variable_placer.device_function

  def __repr__(self) -> str:
    return f"Mesh({self._name})"


class Operation:
  """A node of the graph. Users may subclass it.

  A subclass sets `_outputs` in its constructor and implements `lower`, and
  `gradient` if it has one.

  Args:
    inputs: tensors.
    mesh: the mesh; by default that of the first input.
    name: a name; made unique within the graph.
  """

  has_effect: bool = False  # whether it runs even if nobody reads its outputs
  variables: Sequence[Any] = ()  # what it assigns to
  inner_operations: Sequence[Operation] = ()  # what runs inside it, if anything
  fills_gradients: bool = True  # whether a missing output gradient is zeros

  def __init__(
    self,
    inputs: Sequence[Tensor],
    mesh: Mesh | None = None,
    name: str | None = None,
  ) -> None:
    if mesh is None:
      if not inputs:
        raise ValueError("an operation without inputs needs a mesh")
      mesh = inputs[0].mesh
    for x in inputs:
      if x.mesh is not mesh and x.graph is not mesh.graph:
        raise ValueError(f"{x} belongs to another graph than {mesh}")
    self._inputs = list(inputs)
    self._outputs: list[Tensor] = []
    self._mesh = mesh
    self._name = mesh.graph.unique_name(name or "operation")
    mesh.graph.operations.append(self)

  @property
  def inputs(self) -> list[Tensor]:
    """The tensors that it reads."""
    return list(self._inputs)

  @property
  def outputs(self) -> list[Tensor]:
    """The tensors that it makes."""
    return list(self._outputs)

  @property
  def mesh(self) -> Mesh:
    """The mesh on which it runs."""
    return self._mesh

  @property
  def graph(self) -> Graph:
    """The graph that it is part of."""
    return self._mesh.graph

  @property
  def name(self) -> str:
    """Unique within the graph."""
    return self._name

  @property
  def has_gradient(self) -> bool:
    """Whether some floating input reaches some floating output."""
    return any(t.dtype.is_floating for t in self._inputs) and any(
      t.dtype.is_floating for t in self._outputs
    )

  @property
  def unsplittable_dims(self) -> frozenset[str]:
    """Names of the dimensions that must not be split."""
    return frozenset()

  @property
  def splittable_dims(self) -> frozenset[str]:
    """Names of all other dimensions of its inputs and outputs."""
    names = {d.name for t in self._inputs + self._outputs for d in t.shape}
    return frozenset(names - self.unsplittable_dims)

  def gradient(self, grad_ys: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """The gradient for each input, given those of the outputs."""
    raise NotImplementedError(f"{self.name} has no gradient")

  def lower(self, lowering: Lowering) -> None:
    """Sets the slices of every output in `lowering`."""
    raise NotImplementedError(f"{self.name} cannot be lowered")

  def clone(self, inputs: Sequence[Tensor]) -> Operation:
    """The same operation on other inputs."""
    raise NotImplementedError(
      f"{self.name} cannot be run a second time, as recompute_grad does; call "
      "it outside of the function that is recomputed"
    )

  def adopt(self, clones: Mapping[Operation, Operation]) -> None:
    """Told of the copies made before it, when it is a copy itself."""

  @property
  def to_string(self) -> str:
    """`name(inputs) -> outputs`."""
    ins = ", ".join(x.name for x in self._inputs)
    outs = ", ".join(f"{y.name}: {y.aval!r}" for y in self._outputs)
    return f"{self.name}({ins}) -> {outs}"

  def __repr__(self) -> str:
    return self.to_string


class Apply(Operation):
  """A primitive applied to inputs."""

  def __init__(
    self,
    primitive: Primitive,
    inputs: Sequence[Tensor],
    mesh: Mesh | None = None,
    name: str | None = None,
  ) -> None:
    if strange := [x for x in inputs if not isinstance(x, Tensor)]:
      raise TypeError(
        f"{primitive.name} takes mesh tensors, got {strange[0]!r}; make one of "
        "it with mtf.import_tf_tensor"
      )
    avals = [x.aval for x in inputs]
    try:
      inferred = primitive.infer(*avals)
    except (ValueError, TypeError) as e:
      where = ", ".join(f"{x.name}: {x.aval!r}" for x in inputs)
      at = f"\n  in {primitive.name} applied to ({where})" if where else ""
      raise type(e)(f"{e}{at}") from None
    here = mesh or (inputs[0].mesh if inputs else None)
    for x in inputs:
      if x.mesh is not here and here is not None and x.graph is here.graph:
        raise ValueError(
          f"{primitive.name}: {x} is on {x.mesh}, but the operation runs on "
          f"{here}; bring it there with mtf.copy_to_mesh"
        )
    super().__init__(inputs, mesh, name or primitive.name)
    self.primitive = primitive
    avals_out = inferred if isinstance(inferred, tuple) else (inferred,)
    self.is_single = not isinstance(inferred, tuple)
    self._outputs = [
      Tensor(self, a.shape, a.dtype, index=i) for i, a in enumerate(avals_out)
    ]

  @property
  def unsplittable_dims(self) -> frozenset[str]:
    """Names of the dimensions that must not be split."""
    return self.primitive.unsplittable(self)

  def gradient(self, grad_ys: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """The primitive's gradient."""
    return self.primitive.gradient(self, *grad_ys)

  def lower(self, lowering: Lowering) -> None:
    """Lowers the primitive, and records the slices of the outputs."""
    keep = self.primitive.keeps_pending
    read = lowering.maybe_pending if keep else lowering.slices
    ys = self.primitive.lower_in(lowering, self, *map(read, self._inputs))
    for y, slices in zip(
      self._outputs, (ys,) if self.is_single else ys, strict=True
    ):
      lowering.set_tensor_lowering(y, slices)

  def clone(self, inputs: Sequence[Tensor]) -> Operation:
    """The same primitive on other inputs."""
    return Apply(self.primitive, inputs, self.mesh, self.primitive.name)


def apply(
  primitive: Primitive,
  *inputs: Tensor,
  mesh: Mesh | None = None,
  name: str | None = None,
) -> Any:
  """Adds an operation to the graph and returns its output or outputs."""
  op = Apply(primitive, inputs, mesh, name)
  return op.outputs[0] if op.is_single else op.outputs
