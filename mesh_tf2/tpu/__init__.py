"""Cloud TPU without a TPU: the real compiler, on a host that has only a CPU."""

from .ahead_of_time import compile as compile
from .chips import Chip as Chip
from .core_program import (
  CoreProgram as CoreProgram,
)
from .core_program import (
  CoreTensor as CoreTensor,
)
from .core_program import (
  core_program as core_program,
)
from .execute import CpuCores as CpuCores
from .hlo_collectives import CompiledCollective as CompiledCollective
from .report import CompiledProgram as CompiledProgram
from .xla import MissingCompilerError as MissingCompilerError
