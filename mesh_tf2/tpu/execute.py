"""Runs the program of TPU cores on as many devices of the CPU.

What the TPU's compiler is handed is handed to XLA's compiler for CPUs, and run
by all cores at once: the communication is real, and the numbers can be looked
at.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..spmd.mesh import MeshImpl
from . import xla
from .core_program import CoreProgram, CoreTensor


class CpuCores:
  """A program of TPU cores, compiled for CPU devices.

  Args:
    program: of one core.

  Raises:
    MissingCompilerError: jaxlib is not installed.
    ValueError: there are fewer CPU devices than cores.
  """

  def __init__(self, program: CoreProgram) -> None:
    self._program = program
    self._devices = xla.cpus(program.mesh.size)
    self._executable = xla.compile_and_load(self._devices, program.hlo())

  def run(
    self,
    inputs: Sequence[Any],
    variables: Mapping[str, Any],
    step: int,
    key: int,
  ) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Runs it once.

    Args:
      inputs: whole arrays, in the order of the program's inputs.
      variables: whole arrays, by full name.
      step: of the program.
      key: of the random numbers.

    Returns:
      The results, and the new values of variables by name: whole arrays.

    Raises:
      AssertionError: cores that ought to hold the same hold something else.
    """
    program, mesh = self._program, self._program.mesh
    wholes = [*inputs, *(variables[v.name] for v in program.variables)]
    arguments: list[list[np.ndarray]] = [
      [np.asarray(step, np.int64)] * mesh.size,
      [np.asarray(key, np.uint64)] * mesh.size,
    ]
    for known, whole in zip(
      (*program.inputs, *program.variables), wholes, strict=True
    ):
      arguments.append(_cut(np.asarray(whole), known, mesh))
    arguments += [[x.numpy()] * mesh.size for x in program.captured]
    outputs = self._execute(arguments)
    by_name = {v.name: v for v in program.variables}
    made = [*program.results, *(by_name[n] for n in program.assigned)]
    joined = [_join(x, t, mesh) for x, t in zip(outputs, made, strict=True)]
    count = len(program.results)
    return joined[:count], dict(
      zip(program.assigned, joined[count:], strict=True)
    )

  def _execute(
    self, arguments: Sequence[Sequence[np.ndarray]]
  ) -> list[list[np.ndarray]]:
    """For each result, what each core has; arguments likewise."""
    jax = importlib.import_module("jax")
    with jax.experimental.enable_x64():
      handed = [self._on_devices(jax, parts) for parts in arguments]
      results = self._executable.execute_sharded(handed)
      outputs = results.disassemble_into_single_device_arrays()
      return [[np.asarray(x) for x in column] for column in outputs]

  def _on_devices(self, jax: Any, parts: Sequence[np.ndarray]) -> Any:
    """Each core's value on its device, as the one array that jax has for it.

    It calls them copies of one value, which nobody checks.
    """
    everybody = jax.sharding.Mesh(np.array(self._devices), ("core",))
    copies = jax.sharding.NamedSharding(everybody, jax.sharding.PartitionSpec())
    placed = [
      jax.device_put(x, d) for x, d in zip(parts, self._devices, strict=True)
    ]
    return jax.make_array_from_single_device_arrays(
      parts[0].shape, copies, placed
    )


def _cut(
  whole: np.ndarray, known: CoreTensor, mesh: MeshImpl
) -> list[np.ndarray]:
  """Each core's slice."""
  return [
    whole[_place(known, mesh, number)].astype(known.dtype.as_numpy_dtype)
    for number in range(mesh.size)
  ]


def _join(
  parts: Sequence[np.ndarray], known: CoreTensor, mesh: MeshImpl
) -> np.ndarray:
  """The whole, after a look whether copies agree."""
  if known.shape is None:
    for part in parts:
      np.testing.assert_array_equal(part, parts[0])
    return parts[0]
  whole = np.zeros(known.shape.to_integer_list, parts[0].dtype)
  is_known = np.zeros(whole.shape, bool)
  for number, part in enumerate(parts):
    place = _place(known, mesh, number)
    if is_known[place].all():
      np.testing.assert_array_equal(part, whole[place])
    whole[place], is_known[place] = part, True
  return whole


def _place(known: CoreTensor, mesh: MeshImpl, number: int) -> Any:
  """Where in the whole a core's slice lies."""
  if known.shape is None:
    return ...
  begin = mesh.slice_begin(known.shape, number)
  return tuple(slice(b, b + n) for b, n in zip(begin, known.sizes, strict=True))
