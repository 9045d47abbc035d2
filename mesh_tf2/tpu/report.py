"""What the TPU's compiler says of a program, as a value that prints as a table.

All numbers are those of one core, as XLA counts devices.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..core.shape import Shape
from ..spmd.cost_report import table
from .chips import Chip
from .hlo_collectives import CompiledCollective


@dataclasses.dataclass(frozen=True)
class CompiledProgram:
  """A function of a program, compiled for the cores of a TPU.

  Attributes:
    topology: the TPU.
    chip: what one of its cores can do.
    mesh_shape: the mesh dimensions.
    argument_bytes: of variables and inputs.
    output_bytes: of results and new values of variables, in memory of their
      own.
    temporary_bytes: of what lives in between, at the most.
    code_bytes: of the program itself.
    flops: operations on numbers that the compiler counts.
    model_flops: those that the program asks for, divided by the cores: what is
      replicated, or done to save memory, counts less.
    accessed_bytes: read from and written to memory.
    optimal_seconds: what XLA's analysis of costs says that it takes to compute,
      in numbers that are those of v2 for every chip.
    compute_seconds: what the cycles take that this chip's compiler estimates
      for the instructions, without communication; what stands in a loop counts
      once.
    collectives: what is sent.
    compile_seconds: how long the compiler took.
    hlo: the compiled program, as XLA prints it.
  """

  topology: str
  chip: Chip
  mesh_shape: Shape
  argument_bytes: int
  output_bytes: int
  temporary_bytes: int
  code_bytes: int
  flops: float
  model_flops: float
  accessed_bytes: float
  optimal_seconds: float
  compute_seconds: float
  collectives: tuple[CompiledCollective, ...]
  compile_seconds: float
  hlo: str = dataclasses.field(repr=False)

  @property
  def memory_bytes(self) -> int:
    """All that the program needs of a core's memory."""
    return (
      self.argument_bytes
      + self.output_bytes
      + self.temporary_bytes
      + self.code_bytes
    )

  @property
  def fits(self) -> bool:
    """Whether a core has that much."""
    return self.memory_bytes <= self.chip.memory_bytes

  def link_seconds(self, collective: CompiledCollective) -> float:
    """How long it takes in a ring whose links nobody else uses."""
    return collective.sent_bytes / self.chip.ring_bytes_per_second

  @property
  def communication_seconds(self) -> float:
    """All communication, one after another; see `Chip`."""
    return sum(map(self.link_seconds, self.collectives))

  @property
  def utilization(self) -> float:
    """Model FLOPs against the peak, as if sending took no time."""
    return self._utilization(self.compute_seconds)

  @property
  def utilization_with_links(self) -> float:
    """Model FLOPs against the peak, if nothing is computed while sending."""
    return self._utilization(self.compute_seconds + self.communication_seconds)

  def _utilization(self, seconds: float) -> float:
    return self.model_flops / (seconds * self.chip.flops_per_second)

  def __str__(self) -> str:
    rows = [
      (f"{self.topology}, mesh [{self.mesh_shape}]", "per core", ""),
      ("arguments", _megabytes(self.argument_bytes), "MB"),
      ("results", _megabytes(self.output_bytes), "MB"),
      ("temporaries", _megabytes(self.temporary_bytes), "MB"),
      ("program", _megabytes(self.code_bytes), "MB"),
      (
        f"memory, of {_megabytes(self.chip.memory_bytes)} MB",
        _megabytes(self.memory_bytes),
        "MB" if self.fits else "MB: TOO MUCH",
      ),
      ("model FLOPs", f"{self.model_flops:.4g}", ""),
      ("FLOPs, as the compiler counts", f"{self.flops:.4g}", ""),
      ("memory accessed", _megabytes(self.accessed_bytes), "MB"),
      ("time to compute, XLA's analysis (v2)", *_ms(self.optimal_seconds)),
      ("time to compute, the chip's cycles", *_ms(self.compute_seconds)),
      ("time to send, on links alone", *_ms(self.communication_seconds)),
      ("utilization, sending free", f"{self.utilization:.1%}", ""),
      (
        "utilization, sending on top",
        f"{self.utilization_with_links:.1%}",
        "",
      ),
    ]
    text = table(rows)
    if not self.collectives:
      return f"{text}\nno communication"
    sent: list[tuple[Any, ...]] = [
      ("communication", "cores", "times", "MB", "ms on links")
    ]
    for c in self.collectives:
      sent.append(
        (
          f"{c.kind} over {' '.join(c.mesh_dims)}",
          c.group_size,
          c.count,
          f"{c.bytes / 1e6:,.2f}",
          f"{self.link_seconds(c) * 1e3:,.2f}",
        )
      )
    return f"{text}\n\n{table(sent)}"


def _megabytes(size: float) -> str:
  return f"{size / 1e6:,.1f}"


def _ms(seconds: float) -> tuple[str, str]:
  return f"{seconds * 1e3:,.2f}", "ms"
