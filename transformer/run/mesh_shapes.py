"""The mesh that belongs to a TPU topology, from the way it is to be shared.

run.mesh_shape = @tpu_mesh_shape()
tpu_mesh_shape.tpu_topology = "8x8"
tpu_mesh_shape.model_parallelism = 4
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import gin

import mesh_tf2 as mtf

MODULE = "mesh_tf2.transformer.utils"
CORES_PER_CHIP = 2

# A mesh dimension and its tiles, one for each level of the hardware; None
# takes all processors that the others leave.
TilingSpec = Sequence[tuple[str, Sequence[int] | None]]


@gin.configurable(module=MODULE)
def tpu_mesh_shape(
  tpu_topology: str = gin.REQUIRED,
  model_parallelism: int | TilingSpec = gin.REQUIRED,
  ensemble_parallelism: int | None = None,
) -> mtf.Shape:
  """The mesh of a TPU topology; dimensions of size 1 are left out.

  Args:
    tpu_topology: chips as `"4x4"`, or cores as `"v3-8"`.
    model_parallelism: how many cores share a model, as mesh dimension `model`;
      or pairs of a mesh dimension and its tiles, such as
      `[("batch", None), ("model", [1, 1, 2])]`.
    ensemble_parallelism: how many members of an ensemble train side by side.

  Returns:
    The dimensions `ensemble`, `batch` and `model`, or those of the pairs.

  Raises:
    ValueError: the topology cannot be read, or its cores cannot be shared so.
  """
  cores = num_cores(tpu_topology)
  if not isinstance(model_parallelism, int):
    sizes = _tiled(model_parallelism, cores, tpu_topology)
  else:
    ensemble = ensemble_parallelism or 1
    batch, rest = divmod(cores, model_parallelism * ensemble)
    if rest or not batch:
      raise ValueError(
        f"tpu_mesh_shape: the {cores} cores of {tpu_topology!r} do not divide "
        f"into groups of model_parallelism * ensemble_parallelism = "
        f"{model_parallelism} * {ensemble}"
      )
    sizes = [
      ("ensemble", ensemble),
      ("batch", batch),
      ("model", model_parallelism),
    ]
  return mtf.Shape(
    mtf.Dimension(name, size) for name, size in sizes if size > 1
  )


def num_cores(tpu_topology: str) -> int:
  """How many cores a topology has.

  Raises:
    ValueError: it is neither of the form `4x4` nor of the form `v3-8`.
  """
  plain = re.sub("_(un)?twisted$", "", tpu_topology)
  if re.fullmatch(r"\d+(x\d+)+", plain):
    return math.prod(map(int, plain.split("x"))) * CORES_PER_CHIP
  if match := re.fullmatch(r"v\d+[a-z]*-(\d+)", plain):
    return int(match.group(1))
  raise ValueError(
    f"tpu_mesh_shape.tpu_topology: {tpu_topology!r} is neither of the form "
    "'4x4' (chips) nor of the form 'v3-8' (cores)"
  )


def _tiled(
  spec: TilingSpec, cores: int, tpu_topology: str
) -> list[tuple[str, int]]:
  """The sizes of mesh dimensions that are given by their tiles."""
  known = {name: math.prod(tiles) for name, tiles in spec if tiles is not None}
  free = [name for name, tiles in spec if tiles is None]
  used = math.prod(known.values())
  rest, left = divmod(cores, used)
  if left or len(free) > 1 or (not free and rest != 1):
    raise ValueError(
      f"tpu_mesh_shape.model_parallelism: {spec!r} does not use up the {cores} "
      f"cores of {tpu_topology!r}; give one dimension the tiles None"
    )
  return [(name, known.get(name, rest)) for name, _ in spec]
