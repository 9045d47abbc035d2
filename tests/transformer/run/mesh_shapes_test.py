"""Meshes of TPU topologies, against the original's values."""

import pytest

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import mesh_shapes


@pytest.mark.parametrize(
  ("arguments", "mesh"),
  [
    (("4x4", 8), "batch:4;model:8"),
    (("v3-8", 1), "batch:8"),
    (("2x2", 8), "model:8"),
    (("4x4", 4, 2), "ensemble:2;batch:4;model:4"),
    (("4x4", [("batch", None), ("model", [1, 1, 2])]), "batch:16;model:2"),
    (("4x4_twisted", 8), "batch:4;model:8"),
    (("v4-16", 4), "batch:4;model:4"),
  ],
)
def test_the_mesh_of_a_topology_is_that_of_the_original(arguments, mesh):
  assert mesh_shapes.tpu_mesh_shape(*arguments) == mtf.convert_to_shape(mesh)


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    (("four", 8), "'four' is neither of the form '4x4'"),
    (("2x2", 3), r"8 cores of '2x2' do not divide .* 3 \* 1"),
    (("2x2", 16), "8 cores of '2x2' do not divide"),
    (("2x2", [("model", [1, 1, 2])]), "does not use up the 8 cores"),
  ],
)
def test_a_topology_that_cannot_be_shared_so_is_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    mesh_shapes.tpu_mesh_shape(*arguments)
