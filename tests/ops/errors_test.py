"""What operations say to operands that do not fit."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor

A, B = mtf.Dimension("a", 4), mtf.Dimension("b", 8)


def _mistakes(mesh):
  x = tensor(mesh, "a:4 b:8")
  i = tensor(mesh, "a:4 b:8", dtype=np.int32)
  flag = mtf.greater(x, 0)
  return {
    "add needs operands of one dtype, got float32 and int32": lambda: x + i,
    "neither 1 nor 2 is a mesh tensor": lambda: mtf.binary_op_with_broadcasting(
      tf.add, 1, 2
    ),
    "where needs values of one dtype, got float32 and int32": (
      lambda: mtf.where(flag, x, i)
    ),
    "0.5 is no int32; cast the tensor": lambda: i * 0.5,
    "2.5 is no int32; cast": lambda: mtf.greater(i, 2.5),
    "0.1 is no int64; cast": lambda: mtf.constant(mesh, 0.1, dtype=tf.int64),
    "einsum needs at least one tensor": lambda: mtf.einsum([], "a:4"),
    r"einsum cannot reduce \[c:2\]: no input has it": lambda: mtf.einsum(
      [x, x], reduced_dims=[mtf.Dimension("c", 2)]
    ),
    r"reducing \[a:4\] of \[a:4 b:8\] does not leave \[a:4\]": (
      lambda: mtf.einsum([x, x], "a:4", reduced_dims=[A])
    ),
    "einsum needs inputs of one dtype": lambda: mtf.einsum([x, i], "a:4"),
    r"transpose: \[a:4\] is no order of \[a:4 b:8\]": lambda: mtf.transpose(
      x, "a:4"
    ),
    r"reshape from \[a:4 b:8\] \(32 elements\) to \[c:31\] \(31": (
      lambda: mtf.reshape(x, "c:31")
    ),
    r"broadcast to \[a:4 c:2\] would drop \[b:8\]": lambda: mtf.broadcast(
      x, "a:4 c:2"
    ),
    r"output_shape=\[c:2\] of a reduction has \[c:2\], which": lambda: (
      mtf.reduce_sum(x, output_shape="c:2")
    ),
    "has no dimension b:4; b has size 8 here": lambda: mtf.reduce_max(
      x, reduced_dim=mtf.Dimension("b", 4)
    ),
    "by name only, got b:8 as second": lambda: mtf.reduce_mean(x, B),
    "reduce_max cannot take bool": lambda: mtf.reduce_max(flag),
    "reduce_all cannot take float32": lambda: mtf.reduce_all(x),
    r"concat along 'b' of \[a:4 b:8\] and \[b:8 a:4\]": lambda: mtf.concat(
      [x, mtf.transpose(x, "b:8 a:4")], "b"
    ),
    "concat needs tensors of one dtype": lambda: mtf.concat([x, i], "b"),
    "concat along 'b' needs at least one tensor": lambda: mtf.concat([], "b"),
    "has no dimension called 'c'": lambda: mtf.concat([x, x], "c"),
    r"split of b:8 into 3 equal parts": lambda: mtf.split(x, B, 3),
    r"parts of sizes \[3, 4\]: they must add up to 8": lambda: mtf.split(
      x, B, [3, 4]
    ),
    r"stack of \[a:4 b:8\] and \[a:4\]: the shapes": lambda: mtf.stack(
      [x, mtf.reduce_sum(x, reduced_dim=B)], "n"
    ),
    "stack: axis is 4, the result has 3": lambda: mtf.stack([x, x], "n", 4),
    "slice of b:8: positions 6 to 9": lambda: mtf.slice(x, 6, 3, "b"),
    r"paddings are \[-1, 0\], they cannot": lambda: mtf.pad(x, [-1, 0], "b"),
    "has no dimension c:2": lambda: mtf.shift(
      x, 1, mtf.Dimension("c", 2), True
    ),
    "b:8 does not divide into groups of 3": lambda: mtf.pool_tensor_1d(
      x, B, pool_size=3
    ),
    "cwise takes equal shapes": lambda: mtf.cwise(
      tf.add, [x, mtf.reduce_sum(x, reduced_dim=B)]
    ),
    "unknown activation": lambda: _activation("rellu"),
  }


def _activation(name):
  from mesh_tf2.ops.unary import activation

  return activation(name)


@pytest.mark.parametrize("message", list(_mistakes(new_mesh())))
def test_a_mistake_is_named(message):
  with pytest.raises(ValueError, match=message):
    _mistakes(new_mesh())[message]()


def test_a_scalar_slice_function_may_not_be_split_where_it_does_not_say_so():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    return mtf.slicewise(lambda x: tf.sort(x), [x], splittable_dims=[A])

  run(build, "x:2", "a:x")
  with pytest.raises(mtf.LayoutError, match="slicewise along 'b'"):
    run(build, "x:2", "b:x")


def test_the_means_of_nothing_and_of_everything():
  def build(mesh):
    x = tensor(mesh, "a:4 b:8", dtype=np.int32)
    return [mtf.reduce_mean(x), mtf.reduce_mean(x, output_shape="a:4 b:8")]

  mean, same = run(build).values
  assert mean == 15.5
  assert same.dtype == np.float32
