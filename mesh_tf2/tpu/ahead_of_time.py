"""Compiles a function of a program for a TPU that is not here."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from ..core.shape import Shape
from ..program import Program, ProgramFunction
from ..spmd.topology import auto_logical_to_physical_tpu
from . import xla
from .chips import chip_of
from .core_program import core_program
from .hlo_collectives import collectives
from .report import CompiledProgram


def compile(
  program: Program, fn: Any, *args: Any, topology: str, **kwargs: Any
) -> CompiledProgram:
  """Has the real compiler make what every core of a TPU would run.

  Nothing is allocated and nothing is run: a model of any size compiles in
  minutes on a host with a CPU. It needs `mesh_tf2[tpu-aot]`, and
  `TPU_SKIP_MDS_QUERY=1` in the environment before Python starts.

  Args:
    program: its mesh and layout are used, and no variables.
    fn: a function of this program, or what would be made one.
    *args: arrays, tensors or `tf.TensorSpec`s: only shapes count.
    topology: generation, and chips along each axis: "v2:16x16x1" has 512
      cores, "v4:4x4x4" has 128, "v5e:8x8" has 64.
    **kwargs: further arguments of `fn`.

  Returns:
    What the compiler says, which prints as a table.

  Raises:
    MissingCompilerError: there is no compiler for TPUs here.
    ValueError: there is no such topology, or it has another number of cores
      than the mesh; or the program does not fit in a core's memory.
    LayoutError: a tensor cannot be laid out.
  """
  chip, devices = chip_of(topology), xla.topology(topology).devices
  impl = program.mesh_impl
  if len(devices) != impl.size:
    raise ValueError(
      f"mesh [{impl.shape}] has {impl.size} processors, topology {topology!r} "
      f"has {len(devices)} cores; change one of them"
    )
  build = fn.fn if isinstance(fn, ProgramFunction) else fn
  core = core_program(impl.shape, impl.layout_rules, build, args, kwargs)
  hlo = core.hlo()
  start = time.monotonic()
  placed = _spread(devices, impl.shape)
  compiled = xla.compile_ahead(placed, hlo)
  seconds = time.monotonic() - start
  memory = compiled.get_compiled_memory_stats()
  (counts,) = _listed(compiled.cost_analysis())
  text = compiled.hlo_modules()[0].to_string()
  return CompiledProgram(
    topology=topology,
    chip=chip,
    mesh_shape=impl.shape,
    argument_bytes=memory.argument_size_in_bytes,
    output_bytes=memory.output_size_in_bytes,
    temporary_bytes=memory.temp_size_in_bytes,
    code_bytes=memory.generated_code_size_in_bytes,
    flops=counts["flops"],
    model_flops=program.cost(build, *args, **kwargs).flops / impl.size,
    accessed_bytes=counts["bytes accessed"],
    optimal_seconds=counts["optimal_seconds"] + _unknown_seconds(text),
    compute_seconds=_cycles(text) / chip.cycles_per_second,
    collectives=collectives(text, impl.shape),
    compile_seconds=seconds,
    hlo=text,
  )


def _spread(devices: Sequence[Any], mesh_shape: Shape) -> list[Any]:
  """For each processor of a mesh its device, so that axes are rings."""
  by_place: dict[Any, Any] = {(*d.coords, d.core_on_chip): d for d in devices}
  sizes = [1 + max(column) for column in zip(*by_place, strict=True)]
  places = auto_logical_to_physical_tpu(
    mesh_shape, sizes, return_coordinates=True
  )
  return [by_place[place] for place in places]


def _listed(x: Any) -> list[Any]:
  return x if isinstance(x, list) else [x]


def _cycles(hlo: str) -> int:
  """The compiler's estimates for all instructions; communication has none."""
  return sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', hlo)))


def _unknown_seconds(hlo: str) -> int:
  """What the compiler's estimate is short of.

  It takes off a second for each custom call, of whose time it knows nothing,
  unless it is part of a fusion. Those in programs of ours put together and take
  apart 64-bit scalars.
  """
  count, is_fused = 0, False
  for line in hlo.splitlines():
    if line.startswith(("%", "ENTRY ")):
      is_fused = "fused" in line.split(" (")[0]
    elif " custom-call(" in line and not is_fused:
      count += 1
  return count
