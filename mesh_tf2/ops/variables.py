"""Variables: kept as slices, read into the graph, assigned at its end."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..core.errors import ShapeError, VariableError, did_you_mean
from ..core.graph import Apply, Mesh, Operation, Tensor
from ..core.names import scoped_name, stream_id
from ..core.shape import Shape, ShapeLike, to_shape
from ..spmd import random_bits
from ..spmd.laid_out import Slices
from ..spmd.lowering import Lowering
from ..spmd.mesh import MeshImpl
from .cast import cast
from .initializers import convert_to_initializer


class VariableDType:
  """In which dtype a variable is saved, kept and read.

  Args:
    master_dtype: in a checkpoint.
    slice_dtype: in memory, between steps; by default `master_dtype`.
    activation_dtype: of the tensor that `get_variable` returns; by default
      `master_dtype`.
  """

  def __init__(
    self,
    master_dtype: Any = tf.float32,
    slice_dtype: Any = None,
    activation_dtype: Any = None,
  ) -> None:
    self.master_dtype = tf.as_dtype(master_dtype)
    self.slice_dtype = tf.as_dtype(slice_dtype or master_dtype)
    self.activation_dtype = tf.as_dtype(activation_dtype or master_dtype)

  def __eq__(self, other: object) -> bool:
    return isinstance(other, VariableDType) and repr(self) == repr(other)

  def __hash__(self) -> int:
    return hash(repr(self))

  def __repr__(self) -> str:
    return (
      f"VariableDType(master={self.master_dtype.name}, "
      f"slice={self.slice_dtype.name}, "
      f"activation={self.activation_dtype.name})"
    )


@dataclasses.dataclass(frozen=True)
class VariableSpec:
  """All that must agree when a variable is asked for again."""

  name: str
  shape: Shape
  master_dtype: tf.DType
  slice_dtype: tf.DType
  trainable: bool

  def __repr__(self) -> str:
    kind = "trainable" if self.trainable else "untrainable"
    return (
      f"{self.name} [{self.shape}] {self.slice_dtype.name} "
      f"(saved as {self.master_dtype.name}), {kind}"
    )

  def check(self, other: VariableSpec) -> None:
    """Raises VariableError if `other` asks for something else."""
    if other != self:
      raise VariableError(
        f"variable {self.name} exists as\n  {self}\nand is asked for as\n"
        f"  {other}\nuse another name, or ask for the same"
      )


class Typed(Operation):
  """What has a value to read, in the dtypes of a variable."""

  variable_dtype: VariableDType

  @property
  def value(self) -> Tensor:
    """The variable as it was when the program began."""
    return self._outputs[0]

  @property
  def size(self) -> int:
    """How many elements it has."""
    return self.value.size

  @property
  def dtype(self) -> tf.DType:
    """The dtype of `value`."""
    return self.variable_dtype.activation_dtype

  @property
  def master_dtype(self) -> tf.DType:
    """The dtype in a checkpoint."""
    return self.variable_dtype.master_dtype

  @property
  def slice_dtype(self) -> tf.DType:
    """The dtype in memory."""
    return self.variable_dtype.slice_dtype

  @property
  def activation_dtype(self) -> tf.DType:
    """The dtype of `value`."""
    return self.variable_dtype.activation_dtype


class Variable(Typed):
  """A named tensor that outlives the graph."""

  def __init__(
    self,
    mesh: Mesh,
    name: str,
    shape: Shape,
    dtype: VariableDType,
    initializer: Any,
    trainable: bool,
  ) -> None:
    super().__init__([], mesh, name)
    self.full_name = scoped_name(name)
    self.variable_dtype = dtype
    self.trainable = trainable
    self._initializer = convert_to_initializer(initializer)
    self.spec = VariableSpec(
      self.full_name, shape, dtype.master_dtype, dtype.slice_dtype, trainable
    )
    self._outputs = [Tensor(self, shape, dtype.activation_dtype)]
    mesh.graph.name_to_variable[self.full_name] = self

  @property
  def shape(self) -> Shape:
    """Its dimensions."""
    return self.spec.shape

  def initial_slices(self, mesh_impl: MeshImpl, seed: int) -> Slices:
    """The initial value: a function of seed, full name and position."""
    key = random_bits.fold(
      random_bits.fold(tf.constant(0, tf.uint64), seed),
      stream_id(self.full_name),
    )
    return self._initializer.slices(
      mesh_impl, self.shape, self.slice_dtype, key
    )

  def lower(self, lowering: Lowering) -> None:
    """Reads the slices, in the activation dtype."""
    kind = "trainable" if self.trainable else "untrainable"
    lowering.add_counter(f"variables/{kind}", self.size)
    lowering.set_tensor_lowering(self.value, _read(self, lowering))


def _read(variable: Variable, lowering: Lowering) -> Slices:
  dtype = variable.activation_dtype
  value = lowering.variable_value(variable)
  if dtype == variable.slice_dtype:
    return value
  impl = lowering.mesh_impl(variable)
  return impl.map_trailing(lambda x: tf.cast(x, dtype), value)


class ReadVariable(Operation):
  """A variable as it is after the assignments before this point."""

  def __init__(self, var: Variable, name: str | None = None) -> None:
    super().__init__([var.value], name=name or "read")
    self._variable = var
    self._outputs = [Tensor(self, var.shape, var.activation_dtype)]

  def gradient(self, grad_ys: Sequence[Tensor]) -> list[Tensor | None]:
    """The variable has changed: no gradient."""
    return [None]

  def lower(self, lowering: Lowering) -> None:
    """Reads the slices."""
    slices = _read(self._variable, lowering)
    lowering.set_tensor_lowering(self._outputs[0], slices)


_WITHOUT_EFFECT = {
  "aggregation",
  "caching_device",
  "collections",
  "partitioner",
  "synchronization",
  "use_resource",
  "validate_shape",
}


def get_variable(  # noqa: PLR0913  names fixed by the original
  mesh: Mesh,
  name: str,
  shape: ShapeLike,
  dtype: Any = tf.float32,
  master_dtype: Any = None,
  slice_dtype: Any = None,
  activation_dtype: Any = None,
  initializer: Any = None,
  trainable: bool = True,
  **kwargs: Any,
) -> Tensor:
  """Creates a variable, or finds it by its full scoped name.

  Args:
    mesh: the mesh.
    name: below the current `tf.compat.v1.variable_scope`.
    shape: its dimensions.
    dtype: a `VariableDType`, or the dtype for all three of its parts.
    master_dtype: overrides that part of `dtype`.
    slice_dtype: overrides that part of `dtype`.
    activation_dtype: overrides that part of `dtype`.
    initializer: one of TensorFlow's or of `mtf.initializers`, or a number; by
      default Glorot's uniform distribution.
    trainable: whether optimizers update it.
    **kwargs: those of `tf.compat.v1.get_variable` that say how TensorFlow keeps
      a variable, such as `use_resource`: without effect here.

  Returns:
    Its value, in the activation dtype.

  Raises:
    VariableError: it exists with another shape, dtype or trainability.
    TypeError: an argument is unknown.

  Example:
    >>> import mesh_tf2 as mtf
    >>> import tensorflow as tf
    >>> mesh = mtf.Mesh(mtf.Graph(), "mesh")
    >>> with tf.compat.v1.variable_scope("encoder"):
    ...   w = mtf.get_variable(mesh, "w", "d_model:16 d_ff:64")
    >>> w.operation.full_name
    'encoder/w'
  """
  if unknown := sorted(set(kwargs) - _WITHOUT_EFFECT):
    near = did_you_mean(unknown[0], get_variable.__annotations__)
    raise TypeError(f"get_variable has no argument '{unknown[0]}'{near}")
  if not isinstance(dtype, VariableDType):
    dtype = VariableDType(
      master_dtype or dtype, slice_dtype or dtype, activation_dtype or dtype
    )
  shape = to_shape(shape)
  known = mesh.graph.name_to_variable.get(scoped_name(name))
  if known is None:
    known = Variable(mesh, name, shape, dtype, initializer, trainable)
  known.spec.check(
    VariableSpec(
      known.full_name, shape, dtype.master_dtype, dtype.slice_dtype, trainable
    )
  )
  stand_in = mesh.graph.stand_in
  value = known.value if stand_in is None else stand_in(known)
  return cast(value, dtype.activation_dtype)


def read_variable(var: Variable | Tensor) -> Tensor:
  """The variable as it is after the assignments made before this call."""
  return ReadVariable(variable_of(var)).outputs[0]


# From a variable, its slice and the slice of a value to its new slice.
AssignFn = Callable[[Variable, tf.Tensor, tf.Tensor], tf.Tensor]


def assign_slice(
  variable: Variable, slice_var: tf.Tensor, val: tf.Tensor
) -> tf.Tensor:
  """The new slice is `val`."""
  return val


def assign_add_slice(
  variable: Variable, slice_var: tf.Tensor, val: tf.Tensor
) -> tf.Tensor:
  """The new slice is the old one plus `val`."""
  return slice_var + val


def assign_sub_slice(
  variable: Variable, slice_var: tf.Tensor, val: tf.Tensor
) -> tf.Tensor:
  """The new slice is the old one minus `val`."""
  return slice_var - val


class Assign(Operation):
  """Gives variables new values, at the end of the program.

  Args:
    variables: what to assign to.
    new_values: a tensor of the same shape for each; it is cast to the slice
      dtype first.
    assign_fn: `f(variable, slice_var, val)` makes the new slice from the old
      one and the value.
    name: a name for the operation.
  """

  has_effect = True

  def __init__(
    self,
    variables: Sequence[Variable],
    new_values: Sequence[Tensor],
    assign_fn: AssignFn = assign_slice,
    name: str | None = None,
  ) -> None:
    for v, x in zip(variables, new_values, strict=True):
      if v.shape != x.shape:
        raise ShapeError(
          f"assign: variable {v.full_name} has shape [{v.shape}], the value "
          f"[{x.shape}]; transpose or reshape it"
        )
    super().__init__(new_values, variables[0].mesh, name or "assign")
    self.variables = list(variables)
    self.assign_fn = assign_fn

  def lower(self, lowering: Lowering) -> None:
    """Records the new values; `Program` or `lowered_operation` stores them."""
    for v, x in zip(self.variables, self._inputs, strict=True):
      impl = lowering.mesh_impl(v)
      value = lowering.slices(x)
      if x.dtype != v.slice_dtype:
        value = impl.map_trailing(
          lambda x, t=v.slice_dtype: tf.cast(x, t), value
        )
      if self.assign_fn is not assign_slice:
        old = lowering.variable_value(v)
        change = functools.partial(self.assign_fn, v)
        value = impl.map_trailing(change, old, value)
      lowering.new_values[v] = value


def assign(
  var: Variable | Tensor,
  new_val: Tensor,
  assign_fn: AssignFn = assign_slice,
  name: str | None = None,
) -> Assign:
  """Assigns to a variable, given as itself or as the tensor of its value.

  Raises:
    ValueError: `var` is a tensor that is no variable's.
    ShapeError: the shapes differ.
  """
  return Assign([variable_of(var)], [new_val], assign_fn, name)


def assign_add(var: Variable | Tensor, new_val: Tensor) -> Assign:
  """`var` += new_val, in the slice dtype."""
  return assign(var, new_val, assign_add_slice)


def assign_sub(var: Variable | Tensor, new_val: Tensor) -> Assign:
  """`var` -= new_val, in the slice dtype."""
  return assign(var, new_val, assign_sub_slice)


def variable_of(x: Variable | Tensor) -> Variable:
  """The variable that a tensor was read from.

  Operations of one input that keep its shape, such as casts, may lie between.

  Raises:
    ValueError: there is none.
  """
  op: Any = x.operation if isinstance(x, Tensor) else x
  while isinstance(op, Apply) and len(op.inputs) == 1:
    if op.inputs[0].shape != op.outputs[0].shape:
      break
    op = op.inputs[0].operation
  if not isinstance(op, Variable):
    raise ValueError(f"{x} is not the value of a variable")
  return op
