"""What `mtf.simd_mesh_impl` shows: one program for all, and where each runs."""

from __future__ import annotations

from .hierarchical_tiling import HierarchicalTiling
from .simd import SimdMeshImpl
from .topology import (
  auto_logical_to_physical_tpu,
  device_assignment,
  physical_shape_3d_from_topology_proto_4d,
)

__all__ = [
  "HierarchicalTiling",
  "SimdMeshImpl",
  "auto_logical_to_physical_tpu",
  "device_assignment",
  "physical_shape_3d_from_topology_proto_4d",
]
