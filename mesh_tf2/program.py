"""Program: the variables of a model, and the functions that use them.

A function is traced once for each input signature, like a `tf.function`: its
body builds a graph of named tensors, which is lowered onto the mesh at once.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from . import checkpoint
from .checkpoint.state import SEED_NAME, STEP_NAME, RestoringState
from .core.errors import LayoutWarning
from .core.graph import Graph, Mesh, Operation, Tensor
from .core.layout import LayoutLike
from .core.names import absolute_names
from .core.shape import Shape, ShapeLike
from .ops.variables import Variable
from .spmd import random_bits
from .spmd.communicators.collective_ops import communicator_of
from .spmd.communicators.tpu import TpuOps
from .spmd.cost import program_cost, trace_without_values
from .spmd.cost_report import Cost
from .spmd.laid_out import LaidOutVariable
from .spmd.lowering import Lowering, check_layout, needed
from .spmd.mesh import MeshImpl
from .spmd.placement import PlacementMeshImpl
from .spmd.processes import Processes
from .spmd.simd import SimdMeshImpl
from .spmd.unused import unused
from .spmd.virtual import VirtualMeshImpl


class Program:
  """A mesh, a layout, variables, and functions over them.

  Args:
    mesh_shape: the mesh dimensions, `"rows:2;cols:4"`; none are one processor.
    layout: `"batch:rows;hidden:cols"`.
    seed: of initial values and random numbers, an int of 64 bits.
    devices: a device for each processor, in row-major order.
    strategy: a `MirroredStrategy`, `MultiWorkerMirroredStrategy` or
      `TPUStrategy`, whose replicas are the processors, in row-major order.
      Without it and `devices`, the mesh is a virtual one on one device.
    strict: whether a layout rule or mesh dimension that splits nothing is an
      error instead of a warning.

  Raises:
    LayoutError: the number of devices or replicas is not that of the
      processors.
    ValueError: the seed has more than 64 bits; or both devices and a strategy
      are given.

  Example:
    >>> import mesh_tf2 as mtf
    >>> import numpy as np
    >>> program = mtf.Program(mesh_shape="rows:2", layout="batch:rows")
    >>> @program.function
    ... def scale(mesh, x):
    ...   x = mtf.import_tf_tensor(mesh, x, "batch:4 d_model:3")
    ...   w = mtf.get_variable(mesh, "w", "d_model:3", initializer=2)
    ...   return mtf.einsum([x, w], "batch:4")
    >>> print(scale(np.ones([4, 3], np.float32)).numpy())
    [6. 6. 6. 6.]
    >>> print(program.variables["w"].numpy())
    [2. 2. 2.]
  """

  def __init__(
    self,
    mesh_shape: ShapeLike = "",
    layout: LayoutLike = "",
    seed: int = 0,
    devices: Sequence[str] | None = None,
    strategy: tf.distribute.Strategy | None = None,
    strict: bool = False,
  ) -> None:
    self.mesh_impl = _mesh_impl(mesh_shape, layout, devices, strategy)
    _check_seed(seed)
    self.seed = tf.Variable(seed, dtype=tf.int64, trainable=False, name="seed")
    self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name=STEP_NAME)
    self.store: dict[str, LaidOutVariable] = {}
    self._strict = strict
    self._checked_layout = False
    self._state = RestoringState(self.store, seed)

  def function(
    self, fn: Callable[..., Any] | None = None, **kwargs: Any
  ) -> Any:
    """Makes `fn(mesh, *args)` a function of TensorFlow tensors.

    Its mesh tensors come back whole, as TensorFlow tensors. All assignments
    that it makes are carried out; a call that makes any is a step.

    Args:
      fn: builds a graph on `mesh`; returns a nest of mesh tensors.
      **kwargs: for `tf.function`, such as `jit_compile` or `input_signature`.
    """
    if kwargs.get("jit_compile") and self.mesh_impl.needs_variables_first:
      raise ValueError(
        "jit_compile=True: what the replicas of a strategy send each other is "
        "not compiled by XLA on CPUs and GPUs; leave jit_compile out"
      )
    if fn is None:
      return functools.partial(self.function, **kwargs)
    return ProgramFunction(self, fn, kwargs)

  @property
  def variables(self) -> Mapping[str, ProgramVariable]:
    """The variables made so far, by full name."""
    return {n: ProgramVariable(self, n) for n in self.store}

  @property
  def processes(self) -> Processes:
    """The processes that run it, and which of them this is."""
    return self.mesh_impl.processes

  # Checkpoints.

  def save(self, path: str) -> None:
    """Writes all variables, the step and the seed, slice by slice.

    Of several processes, each writes what its own processors hold, to a folder
    that all of them see; all must call it.

    Args:
      path: the prefix of the checkpoint's files, `"dir/model.ckpt-100"`.
    """
    processes = self.mesh_impl.processes
    if processes.count == 1:
      checkpoint.write(path, self._saved_slices())
    else:
      checkpoint.write_together(path, self._saved_slices(), processes)

  def _saved_slices(self) -> Any:
    if self.mesh_impl.processes.is_first:
      yield checkpoint.Slice(STEP_NAME, (), (), self.step.read_value())
      yield checkpoint.Slice(SEED_NAME, (), (), self.seed.read_value())
    for name, variable in self.store.items():
      spec = variable.spec
      full = tuple(spec.shape.to_integer_list)
      for begin, value in self.mesh_impl.distinct_slices(
        variable.read(), spec.shape
      ):
        value = tf.cast(value, spec.master_dtype)
        yield checkpoint.Slice(name, full, tuple(begin), value)

  def restore(self, path: str) -> None:
    """Takes the values of a checkpoint, whatever the layout it was made in.

    Variables that exist are overwritten now; those that are made later begin
    with the values in the checkpoint.

    Args:
      path: the prefix of the checkpoint's files.

    Raises:
      CheckpointMismatchError: a variable is missing or has another shape; the
        error lists all of them. If no variable exists yet, it is raised when
        the function that needs them is traced.
    """
    reader = checkpoint.Reader(path)
    found = reader.inventory()
    self._state.restore_from(
      reader, found, {n: v.spec for n, v in self.store.items()}
    )
    for name, target in ((STEP_NAME, self.step), (SEED_NAME, self.seed)):
      if name in found:
        value = reader.read(name, (), (), (), found[name][1])
        target.assign(tf.cast(value, tf.int64))
    for variable in self.store.values():
      variable.assign(self._state.read_slices(variable.spec, self.mesh_impl))

  def unused_checkpoint_names(self) -> list[str]:
    """Names in the restored checkpoint that no variable has taken."""
    return sorted(self._state.names() - set(self.store))

  def cost(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Cost:
    """FLOPs, memory and communication of a call, from shapes and layout.

    Args:
      fn: a function of this program, or what would be made one.
      *args: arrays, tensors or `tf.TensorSpec`s: only shapes count.
      **kwargs: likewise.

    Returns:
      The counts, which print as a table. Nothing is allocated or run.
    """
    build = fn.fn if isinstance(fn, ProgramFunction) else fn
    return program_cost(build, self.mesh_impl, args, kwargs)

  # Carrying out a graph.

  def random_key(self) -> tf.Tensor:
    """Seed and step as the key of this step's random numbers."""
    zero = tf.constant(0, tf.uint64)
    return random_bits.fold(random_bits.fold(zero, self.seed), self.step)

  def prepare(
    self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
  ) -> None:
    """Makes the variables that a function needs, before any processor runs it.

    Args:
      fn: builds a graph; it is called once more than it runs.
      args: what it will be called with.
      kwargs: likewise.
    """

    def make(mesh: Mesh, result: Any) -> None:
      operations = self._needed(mesh.graph, result)
      check_layout(operations, {mesh: self.mesh_impl})
      for op in operations:
        for variable in (op, *op.variables):
          if isinstance(variable, Variable):
            self._state.variable(variable, self.mesh_impl)

    trace_without_values(make, fn, args, kwargs)

  def lower(
    self, graph: Graph, mesh: Mesh, result: Any, key: tf.Tensor
  ) -> tuple[Any, bool]:
    """Lowers what `result` needs, and carries out all assignments.

    Args:
      graph: what was built.
      mesh: the mesh of its tensors.
      result: a nest of its tensors, and of other things.
      key: of the random numbers.

    Returns:
      The result with whole TensorFlow tensors in the place of mesh tensors, and
      whether a variable was assigned.
    """
    operations = self._needed(graph, result)
    if graph.random_salt is not None:
      key = random_bits.fold(key, graph.random_salt)
    lowering = Lowering(
      graph,
      {mesh: self.mesh_impl},
      operations=operations,
      state=self._state,
      random_key=key,
    )
    whole = tf.nest.map_structure(
      lambda x: lowering.export_to_tf_tensor(x) if isinstance(x, Tensor) else x,
      result,
    )
    for variable, value in lowering.new_values.items():
      self._state.assign(variable, self.mesh_impl, value)
    return whole, bool(lowering.new_values)

  def _needed(self, graph: Graph, result: Any) -> list[Operation]:
    """The operations that `result` and all effects need, after a check."""
    leaves = tf.nest.flatten(result)
    roots = [x.operation for x in leaves if isinstance(x, Tensor)]
    roots += [op for op in graph.operations if op.has_effect]
    operations = needed(roots, graph)
    self._check_layout(operations)
    used = {*operations, *(v for op in operations for v in op.variables)}
    self._state.check(
      {n: v.spec for n, v in graph.name_to_variable.items() if v in used}
    )
    return operations

  def _check_layout(self, operations: Sequence[Operation]) -> None:
    if self._checked_layout:
      return
    self._checked_layout = True
    if problems := unused(operations, self.mesh_impl):
      message = "; ".join(problems)
      if self._strict:
        raise ValueError(message)
      warnings.warn(message, LayoutWarning, stacklevel=2)


class ProgramFunction:
  """A function of a program. Call it with TensorFlow tensors or arrays."""

  def __init__(
    self, program: Program, fn: Callable[..., Any], kwargs: Mapping[str, Any]
  ) -> None:
    functools.update_wrapper(self, fn)
    self.program = program
    self.fn = fn
    self.tf_function = tf.function(self._trace, autograph=False, **kwargs)

  def _trace(self, *args: Any, **kwargs: Any) -> Any:
    program = self.program
    mesh_impl = program.mesh_impl
    if mesh_impl.needs_variables_first:
      program.prepare(self.fn, args, kwargs)
    assigned = False

    def on_processor(
      step: tf.Tensor,
      key: tf.Tensor,
      args: Sequence[Any],
      kwargs: Mapping[str, Any],
    ) -> Any:
      nonlocal assigned
      graph = Graph()
      graph.step = step
      mesh = Mesh(graph, "mesh")
      with absolute_names():
        result = self.fn(mesh, *args, **kwargs)
      whole, assigned = program.lower(graph, mesh, result, key)
      return whole

    step, key = program.step.read_value(), program.random_key()
    result = mesh_impl.run(on_processor, step, key, args, kwargs)
    if assigned:
      program.step.assign_add(1)
    return result

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    """What the function returns, as whole TensorFlow tensors."""
    return self.tf_function(*args, **kwargs)

  def build(self, *args: Any, **kwargs: Any) -> None:
    """Traces it for arguments or `tf.TensorSpec`s, and makes its variables."""
    self.tf_function.get_concrete_function(*args, **kwargs)


def _mesh_impl(
  mesh_shape: ShapeLike,
  layout: LayoutLike,
  devices: Sequence[str] | None,
  strategy: tf.distribute.Strategy | None,
) -> MeshImpl:
  if devices is not None and strategy is not None:
    raise ValueError("give a program devices or a strategy, not both")
  if strategy is not None:
    is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    communicator = TpuOps() if is_tpu else communicator_of(strategy)
    return SimdMeshImpl(mesh_shape, layout, strategy, communicator)
  if devices is not None:
    return PlacementMeshImpl(mesh_shape, layout, devices)
  return VirtualMeshImpl(mesh_shape, layout)


def _check_seed(seed: int) -> None:
  if not isinstance(seed, int) or not -(2**63) <= seed < 2**63:
    raise ValueError(
      f"seed is {seed!r}; it is a whole number from -2**63 to 2**63 - 1"
    )


class ProgramVariable:
  """A variable of a program, whole."""

  def __init__(self, program: Program, name: str) -> None:
    self._impl = program.mesh_impl
    self._variable = program.store[name]
    self.name = name

  @property
  def shape(self) -> Shape:
    """Its dimensions."""
    return self._variable.spec.shape

  @property
  def trainable(self) -> bool:
    """Whether optimizers update it."""
    return bool(self._variable.spec.trainable)

  @property
  def value(self) -> tf.Tensor:
    """The whole value, whatever the layout."""
    return self._impl.export_tensor(self._variable.read(), self.shape)

  def numpy(self) -> np.ndarray:
    """The whole value as an array."""
    return self.value.numpy()

  def assign(self, value: Any) -> None:
    """Overwrites it with a whole value.

    Raises:
      ValueError: the value has another shape.
    """
    whole = tf.cast(value, self._variable.spec.slice_dtype)
    if whole.shape.as_list() != self.shape.to_integer_list:
      raise ValueError(
        f"{self.name} is [{self.shape}], got a value of shape "
        f"{whole.shape.as_list()}; reshape or transpose it"
      )
    self._variable.assign(self._impl.import_tensor(whole, self.shape))
