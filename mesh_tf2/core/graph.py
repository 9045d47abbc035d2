"""The graph: tensors, and the operations that make them.

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
from .shape import Shape, ShapeLike, to_shape

if TYPE_CHECKING:
  from ..spmd.lowering import Lowering


class Graph:
  """Operations in the order in which they were made, and their variables."""

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
    self.random_salt: tf.Tensor | None = None
    self.step: tf.Tensor | None = None  # int64 scalar, counted from 0

  @property
  def operations(self) -> list[Operation]:
    """All operations; each stands after those that it depends on."""
    return self._operations

  @property
  def all_variables(self) -> list[Any]:
    """The variables, in order of creation."""
    return list(self.name_to_variable.values())

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


class Tensor:
  """A value in the graph: shape, dtype, and the operation that makes it."""

  def __init__(
    self,
    operation: Operation,
    shape: ShapeLike,
    dtype: Any,
    name: str | None = None,
    index: int = 0,
  ) -> None:
    self._operation = operation
    self.aval = Aval(to_shape(shape), tf.as_dtype(dtype))
    self._name = name or f"{operation.name}:{index}"

  @property
  def operation(self) -> Operation:
    """The operation that makes it."""
    return self._operation

  @property
  def shape(self) -> Shape:
    """The named dimensions, in order."""
    return self.aval.shape

  @property
  def dtype(self) -> tf.DType:
    """The TensorFlow dtype of an element."""
    return self.aval.dtype

  @property
  def size(self) -> int:
    """How many elements it has."""
    return self.shape.size

  @property
  def mesh(self) -> Mesh:
    """The mesh on which it lives."""
    return self._operation.mesh

  @property
  def graph(self) -> Graph:
    """The graph that it belongs to."""
    return self._operation.graph

  @property
  def name(self) -> str:
    """The operation's name and the output's number."""
    return self._name

  @property
  def to_string(self) -> str:
    """`Tensor[name, shape, dtype]`."""
    return f"Tensor[{self.name}, {self.shape.to_string}, {self.dtype}]"

  if TYPE_CHECKING:  # bound in ops/operators.py, so that this file knows no op

    def __add__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __floordiv__(self, other: Any) -> Tensor: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor: ...
    def __rpow__(self, other: Any) -> Tensor: ...
    def __matmul__(self, other: Tensor) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __ge__(self, other: Any) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __getitem__(self, index: Mapping[Any, Any]) -> Tensor: ...

  def __repr__(self) -> str:
    return f"{self.name}: {self.aval!r}"


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
