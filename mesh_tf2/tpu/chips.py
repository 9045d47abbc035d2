"""What one core of a generation of TPUs can do.

Peak rate and memory are those of Google's documentation of Cloud TPU. The links
of v2 and v3 are those of Jouppi et al., Ten lessons from three generations
(ISCA 2021), of v4 those of Jouppi et al., TPU v4 (ISCA 2023), of v5e a quarter
of what the documentation gives for a chip.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Chip:
  """One core, as XLA counts devices.

  Attributes:
    name: of the generation.
    flops_per_second: the peak of its matrix units, in bfloat16.
    cycles_per_second: its clock.
    memory_bytes: of its own.
    link_bytes_per_second: of one link between chips, in one direction.
    cores_per_chip: that share the links.
  """

  name: str
  flops_per_second: float
  cycles_per_second: float
  memory_bytes: int
  link_bytes_per_second: float
  cores_per_chip: int

  @property
  def ring_bytes_per_second(self) -> float:
    """What a core can send along a ring, both ways together.

    A mesh axis is taken for a ring along one axis of the torus, whose two links
    at each chip the chip's cores share evenly.
    """
    return 2 * self.link_bytes_per_second / self.cores_per_chip


_GIB = 2**30

# By the first part of a topology's name.
CHIPS = {
  "v2": Chip("TPU v2", 22.5e12, 700e6, 8 * _GIB, 496e9 / 8, 2),
  "v3": Chip("TPU v3", 61.5e12, 940e6, 16 * _GIB, 656e9 / 8, 2),
  "v4": Chip("TPU v4", 137.5e12, 1050e6, 16 * _GIB, 50e9, 2),
  "v5e": Chip("TPU v5e", 197e12, 1500e6, 16 * _GIB, 50e9, 1),
}


def chip_of(topology: str) -> Chip:
  """The cores of a topology, such as "v2:16x16x1".

  Raises:
    ValueError: nothing is known of this generation.
  """
  name = topology.partition(":")[0]
  if name not in CHIPS:
    raise ValueError(
      f"topology {topology!r}: nothing is known of chips {name!r}; take one of "
      f"{', '.join(CHIPS)}, as in 'v2:16x16x1'"
    )
  return CHIPS[name]
