"""Values that come in from outside."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import new_mesh, run, tensor


@pytest.mark.parametrize("kind", KINDS)
def test_import_laid_out_tensor_adopts_slices(kind):
  first = run(lambda mesh: tensor(mesh, "a:4 b:2"), "x:2", "a:x", kind)
  slices = first.lowering.slices(first.tensors[0])
  second = run(
    lambda mesh: mtf.import_laid_out_tensor(mesh, slices, "a:4 b:2"),
    "x:2",
    "a:x",
    kind,
  )
  np.testing.assert_array_equal(second.value(), first.value())


def test_an_import_of_another_shape_names_both():
  with pytest.raises(ValueError, match=r"shape \(3, 2\).*\[a:4 b:2\] want"):
    mtf.import_tf_tensor(new_mesh(), np.zeros([3, 2]), "a:4 b:2")


def test_an_import_of_unknown_shape_takes_the_dimensions_sizes():
  graph_shapes = []

  @tf.function(input_signature=[tf.TensorSpec([None, 2])])
  def import_it(x):
    y = mtf.import_tf_tensor(new_mesh(), x, "a:4 b:2")
    graph_shapes.append(y.operation.tf_tensor.shape.as_list())
    return x

  import_it(tf.zeros([4, 2]))
  assert graph_shapes == [[4, 2]]


def test_one_hot_takes_integers_only():
  x = tensor(new_mesh(), "a:4")
  with pytest.raises(ValueError, match="one_hot takes integer indices, got fl"):
    mtf.one_hot(x, mtf.Dimension("b", 3))
