"""The order of dimensions that an operation of several tensors gives."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor

SHAPES = {"a": "a:2 b:3", "b": "b:3", "c": "c:4 a:2", "d": "b:3 a:2"}


def _operands():
  mesh = new_mesh()
  return {name: tensor(mesh, shape) for name, shape in SHAPES.items()}


@pytest.mark.parametrize(
  ("pair", "want"),
  [
    ("ab", "a:2 b:3"),
    ("ba", "a:2 b:3"),
    ("ac", "a:2 b:3 c:4"),
    ("ca", "c:4 a:2 b:3"),
    ("ad", "a:2 b:3"),
    ("da", "b:3 a:2"),
  ],
)
@pytest.mark.parametrize("fn", [mtf.add, mtf.multiply, mtf.less, mtf.pow])
def test_a_shape_that_holds_the_other_one_is_kept_and_else_new_dims_follow(
  fn, pair, want
):
  operands = _operands()
  y = fn(operands[pair[0]], operands[pair[1]])
  assert y.shape == mtf.convert_to_shape(want)


def test_an_einsum_without_a_shape_sums_what_occurs_twice():
  o = _operands()
  assert mtf.einsum([o["a"], o["c"]]).shape == mtf.convert_to_shape("b:3 c:4")
  assert mtf.einsum([o["a"], o["b"]]).shape == mtf.convert_to_shape("a:2")
  assert mtf.matmul(o["a"], o["d"]).shape == mtf.Shape([])


def test_a_condition_may_have_dimensions_that_the_values_lack():
  o = _operands()
  y = mtf.where(o["c"] > 2, o["b"], 0.0)
  assert set(y.shape) == set(mtf.convert_to_shape("a:2 b:3 c:4"))
  z = mtf.where(o["c"] > 2, o["b"], 0.0, output_shape="b:3 c:4 a:2")
  assert z.shape == mtf.convert_to_shape("b:3 c:4 a:2")


def test_a_sum_of_many_tensors_of_16_bits_does_not_stop_growing():
  def build(mesh):
    one = tensor(mesh, "a:2", np.ones(2), tf.bfloat16)
    return mtf.add_n([one] * 300)

  got = run(build).value()
  assert got.dtype == tf.bfloat16.as_numpy_dtype
  assert got[0] == 300
  assert mtf.add_n([]) == 0
