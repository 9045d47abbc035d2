"""Each operation, used wrongly: who speaks, what came, what is the way out."""

import types

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor

A, B, C = (mtf.Dimension(n, s) for n, s in [("a", 4), ("b", 8), ("c", 2)])


def _operands():
  """x: floats; i: integers; flag: truth values; y: x without b; n: names."""
  mesh = new_mesh()
  x = tensor(mesh, "a:4 b:8")
  return types.SimpleNamespace(
    mesh=mesh,
    x=x,
    y=tensor(mesh, "a:4"),
    i=tensor(mesh, "a:4 b:8", dtype=np.int32),
    flag=mtf.greater(x, 3),
    other=tensor(mesh, "a:4 b:4"),
    stranger=tensor(new_mesh(), "a:4"),
  )


CAST = "cast it first, for example with mtf.to_"
AGREE = "rename it in one of them, or make the sizes equal"
KEEP = "add it, or sum over it first with mtf.reduce_sum"
IMPORT = "make one of it with mtf.import_tf_tensor"

# What is called; then what its message says: who and what, got, and way out.
DTYPES = [
  (lambda o: mtf.exp(o.i), "exp takes floating numbers", "got int32", CAST),
  (lambda o: mtf.sqrt(o.flag), "sqrt takes floating", "got bool", CAST),
  (lambda o: mtf.floor(o.i), "floor takes real floating", "got int32", CAST),
  (lambda o: mtf.isnan(o.i), "isnan takes real floating", "got int32", CAST),
  (lambda o: mtf.gelu(o.i), "gelu takes real floating", "got int32", CAST),
  (lambda o: mtf.leaky_relu(o.i), "leaky_relu takes real", "got int32", CAST),
  (lambda o: mtf.atan(o.i), "atan takes real floating", "got int32", CAST),
  (lambda o: mtf.atan2(o.i, o.i), "atan2 takes real", "got int32", CAST),
  (lambda o: mtf.relu(o.flag), "relu takes real numbers", "got bool", CAST),
  (lambda o: -o.flag, "negative takes signed numbers", "got bool", CAST),
  (lambda o: abs(o.flag), "abs takes signed numbers", "got bool", CAST),
  (
    lambda o: -mtf.cast(o.i, "uint8"),
    "negative takes signed numbers",
    "got uint8",
    CAST,
  ),
  (lambda o: o.flag + o.flag, "add takes numbers", "got bool", CAST),
  (lambda o: o.flag + 1, "add takes numbers", "got bool", CAST),
  (lambda o: o.flag * 2, "multiply takes numbers", "got bool", CAST),
  (lambda o: o.flag / o.flag, "divide takes floating", "got bool", CAST),
  (lambda o: o.flag // o.flag, "floordiv takes real", "got bool", CAST),
  (lambda o: o.flag % o.flag, "mod takes real numbers", "got bool", CAST),
  (lambda o: o.flag**2, "pow takes signed numbers", "got bool", CAST),
  (lambda o: o.flag < o.flag, "less takes real numbers", "got bool", CAST),
  (lambda o: mtf.maximum(o.flag, o.flag), "maximum takes", "got bool", CAST),
  (lambda o: mtf.clip(o.flag, 0, 1), "less takes real", "got bool", CAST),
  (lambda o: o.x & o.x, "bitwise_and takes integers", "got float32", CAST),
  (lambda o: o.x << 1, "left_shift takes integers", "got float32", CAST),
  (lambda o: ~o.x, "bitwise_not takes integers", "got float32", CAST),
  (
    lambda o: mtf.logical_and(o.x, o.x),
    "logical_and takes bool",
    "got float32",
    "compare it first, for example with mtf.not_equal(x, 0)",
  ),
  (
    lambda o: mtf.logical_not(o.i),
    "logical_not takes bool",
    "got int32",
    "compare it first",
  ),
  (lambda o: mtf.reduce_sum(o.flag), "reduce_sum takes", "got bool", CAST),
  (lambda o: mtf.reduce_prod(o.flag), "reduce_prod takes", "got bool", CAST),
  (
    lambda o: mtf.reduce_max(o.flag),
    "reduce_max cannot take bool",
    "bool",
    "reduce_all and reduce_any are for bool",
  ),
  (
    lambda o: mtf.reduce_any(o.x),
    "reduce_any cannot take",
    "float32",
    "reduce_max and reduce_min for numbers",
  ),
  (
    lambda o: mtf.einsum([o.flag], []),
    "einsum takes numbers",
    "got bool",
    CAST,
  ),
  (lambda o: o.flag @ o.flag, "einsum takes numbers", "got bool", CAST),
  (
    lambda o: mtf.log_softmax(o.flag, B),
    "log_softmax takes real floating numbers",
    "got bool",
    CAST,
  ),
  (
    lambda o: o.x + o.i,
    "add needs operands of one dtype",
    "got float32 and int32",
    "cast one of them",
  ),
  (
    lambda o: mtf.where(o.flag, o.x, o.i),
    "where needs values of one dtype",
    "got float32 and int32",
    "cast one of them",
  ),
  (
    lambda o: mtf.einsum([o.x, o.i]),
    "einsum needs inputs of one dtype",
    "got ['float32', 'int32']",
    "cast them first",
  ),
  (
    lambda o: mtf.concat([o.x, o.i], "b"),
    "concat needs tensors of one dtype",
    "got ['float32', 'int32']",
    "cast them first",
  ),
  (
    lambda o: mtf.stack([o.x, o.i], "n"),
    "stack needs tensors of one dtype",
    "got ['float32', 'int32']",
    "cast them first",
  ),
  (
    lambda o: mtf.cast(o.x, "flaot32"),
    "cast: 'flaot32' is no dtype",
    "'flaot32'",
    "write for example 'float32'",
  ),
]

SIZES = [
  (
    lambda o: o.x * o.other,
    "multiply: dimension 'b' has size 8 in import:0 [a:4 b:8]",
    "size 4 in import_4:0 [a:4 b:4]",
    AGREE,
  ),
  (lambda o: o.x < o.other, "less: dimension 'b'", "size 4 in", AGREE),
  (lambda o: o.x**o.other, "pow: dimension 'b'", "size 4 in", AGREE),
  (
    lambda o: mtf.where(o.flag, o.other, 0.0),
    "where: dimension 'b' has size 8",
    "size 4 in import_4:0",
    AGREE,
  ),
  (
    lambda o: mtf.einsum([o.x, o.other]),
    "einsum: dimension 'b' has size 8",
    "size 4 in import_4:0 [a:4 b:4]",
    AGREE,
  ),
  (
    lambda o: mtf.add(o.x, o.y, "a:4"),
    "add: output_shape=[a:4]",
    "lacks [b:8] of the operands",
    KEEP,
  ),
  (
    lambda o: mtf.where(o.flag, o.x, 0, "b:8"),
    "where: output_shape=[b:8]",
    "lacks [a:4] of the operands",
    KEEP,
  ),
  (
    lambda o: mtf.broadcast(o.x, "a:4 c:2"),
    "broadcast to [a:4 c:2]",
    "would drop [b:8] of the input [a:4 b:8]",
    KEEP,
  ),
  (
    lambda o: mtf.reduce_sum(o.x, output_shape="a:4 c:2"),
    "output_shape=[a:4 c:2] of a reduction",
    "has [c:2], which import:0 [a:4 b:8] lacks",
    "take some of its dimensions",
  ),
  (
    lambda o: mtf.reduce_mean(o.x, reduced_dim=mtf.Dimension("b", 4)),
    "a reduction: [a:4 b:8]",
    "no dimension b:4",
    "b has size 8 here",
  ),
  (
    lambda o: mtf.norm(o.x, reduced_dim="bb"),
    "a reduction: [a:4 b:8]",
    "no dimension called 'bb'",
    'did you mean "b"?',
  ),
  (
    lambda o: mtf.reduce_max(o.x, output_shape="a:4", reduced_dim=A),
    "reduced_dim=a:4 of [a:4 b:8]",
    "does not leave output_shape=[a:4]",
    "give one of the two",
  ),
  (
    lambda o: mtf.reduce_prod(o.x, B),
    "a reduction takes output_shape and reduced_dim by name only",
    "got b:8 as second argument",
    "write reduced_dim=b:8",
  ),
  (
    lambda o: mtf.transpose(o.x, "b:8"),
    "transpose: [b:8]",
    "is no order of [a:4 b:8]",
    "take all of its dimensions, each once",
  ),
  (
    lambda o: mtf.reshape(o.x, "a:4 b:9"),
    "reshape from [a:4 b:8] (32 elements)",
    "to [a:4 b:9] (36 elements)",
    "reshape",
  ),
  (
    lambda o: mtf.einsum([o.x], reduced_dims=[C]),
    "einsum cannot reduce [c:2]",
    "no input has it",
    "take some of [a:4 b:8]",
  ),
  (
    lambda o: mtf.einsum([o.x, o.y], "b:8", reduced_dims=[B]),
    "einsum: reducing [b:8] of [a:4 b:8]",
    "does not leave [b:8]",
    "give one of the two",
  ),
  (
    lambda o: mtf.concat([o.x, o.y], "b"),
    "[a:4]",
    "has no dimension called 'b'",
    "in concat applied to (import:0: float32[a:4 b:8]",
  ),
  (
    lambda o: mtf.concat([o.x, mtf.transpose(o.x, "b:8 a:4")], "b"),
    "concat along 'b' of [a:4 b:8] and [b:8 a:4]",
    "all other dimensions must agree, in the same order",
    "transpose or broadcast one of them",
  ),
  (
    lambda o: mtf.split(o.x, "b", 3),
    "split of b:8 into 3 equal parts",
    "8 is not divisible by 3",
    "give a list of sizes",
  ),
  (
    lambda o: mtf.split(o.x, B, [4, 5]),
    "split of b:8",
    "parts of sizes [4, 5]",
    "they must add up to 8",
  ),
  (
    lambda o: mtf.split(o.x, C, 2),
    "split: [a:4 b:8]",
    "has no dimension c:2",
    "[a:4 b:8]",
  ),
  (
    lambda o: mtf.unstack(o.x, mtf.Dimension("b", 4)),
    "unstack: [a:4 b:8]",
    "has no dimension b:4",
    "b has size 8 here",
  ),
  (
    lambda o: mtf.stack([o.x, o.y], "n"),
    "stack of [a:4 b:8] and [a:4]",
    "the shapes must be equal",
    "transpose or broadcast one of them",
  ),
  (
    lambda o: mtf.stack([o.x, o.x], "a"),
    "dimension name 'a' occurs twice",
    "[a:2 a:4 b:8]",
    "rename one of them",
  ),
  (
    lambda o: mtf.stack([o.x], "n", 3),
    "stack: axis is 3",
    "the result has 3 dimensions",
    "take one from -3 to 2",
  ),
  (
    lambda o: mtf.slice(o.x, 6, 3, "b"),
    "slice of b:8",
    "positions 6 to 9 are not within 0 to 8",
    "begin earlier, or take fewer",
  ),
  (
    lambda o: mtf.slice(o.x, 0, 1, "bb"),
    "slice: [a:4 b:8]",
    "no dimension called 'bb'",
    'did you mean "b"?',
  ),
  (
    lambda o: mtf.pad(o.x, [0, -2], "b"),
    "pad of b:8",
    "paddings are [0, -2], they cannot be negative",
    "remove positions with mtf.slice",
  ),
  (
    lambda o: mtf.pad(o.x, [1, 2, 3], "b"),
    "pad of 'b'",
    "got [1, 2, 3]",
    "paddings are two numbers",
  ),
  (
    lambda o: mtf.pool_tensor_1d(o.x, B, pool_size=3),
    "pool_tensor_1d: b:8",
    "does not divide into groups of 3",
    "take a pool_size that divides 8",
  ),
  (
    lambda o: mtf.diagonal(o.x, "a", "b"),
    "diagonal of a:4 and b:8",
    "two dimensions of one size are needed",
    "slice the longer one first",
  ),
  (
    lambda o: mtf.rename_dimension(o.x, "a", "b"),
    "dimension name 'b' occurs twice",
    "[b:4 b:8]",
    "rename one of them",
  ),
  (
    lambda o: mtf.import_tf_tensor(o.mesh, np.ones([2, 3]), "a:2 b:2"),
    "import_tf_tensor: the tensor has shape (2, 3)",
    "the dimensions [a:2 b:2]",
    "want [2, 2]",
  ),
]

OPERANDS = [
  (
    lambda o: mtf.slice(o.x, 1.5, 2, "b"),
    "slice: begin",
    "got 1.5",
    "is a whole number",
  ),
  (
    lambda o: mtf.split(o.x, B, 2.0),
    "split: num_or_size_splits",
    "got 2.0",
    "is a whole number",
  ),
  (
    lambda o: mtf.pad(o.x, [0, "1"], "b"),
    "pad: a padding",
    "got '1'",
    "is a whole number",
  ),
  (lambda o: mtf.exp(3.0), "exp takes mesh tensors", "got 3.0", IMPORT),
  (
    lambda o: mtf.reduce_sum(tf.ones([2])),
    "a reduction takes a mesh tensor",
    "got <tf.Tensor",
    IMPORT,
  ),
  (
    lambda o: mtf.concat([o.x, None], "b"),
    "concat takes mesh tensors",
    "got None",
    IMPORT,
  ),
  (lambda o: mtf.less(1, 2), "neither 1 nor 2", "is a mesh tensor", IMPORT),
  (
    lambda o: o.x + np.ones(8),
    "a tensor or one number is needed",
    "got shape (8,)",
    "give an array the names of its dimensions first",
  ),
  (
    lambda o: o.x * "2",
    "a tensor or one number is needed",
    "got '2'",
    "mtf.import_tf_tensor",
  ),
  (
    lambda o: o.i * 0.5,
    "0.5 is no int32",
    "cast the tensor to a floating dtype",
    "take a whole number",
  ),
  (
    lambda o: o.i + 2**40,
    "1099511627776 is too large",
    "for int32",
    "cast the tensor first",
  ),
  (
    lambda o: o.i**-2,
    "pow: import_2:0 holds int32",
    "no power of -2",
    CAST,
  ),
  (
    lambda o: o.y + o.stranger,
    "import:0: float32[a:4]",
    "belongs to another graph",
    "than Mesh(mesh)",
  ),
  (lambda o: mtf.norm(o.x, ord=3), "norm: ord is 3", "3", "it is 1, 2 or"),
  (
    lambda o: mtf.einsum([], "a:4"),
    "einsum needs at least one tensor",
    "got none",
    "einsum",
  ),
  (
    lambda o: mtf.concat([], "b"),
    "concat along 'b' needs at least one tensor",
    "got none",
    "concat",
  ),
  (
    lambda o: mtf.slicewise(tf.add, []),
    "slicewise needs at least one tensor",
    "got none",
    "slicewise",
  ),
  (
    lambda o: o.x[0],
    "import:0 is indexed by the names of its dimensions [a:4 b:8]",
    "got 0",
    "write for example x[{'a': 0}]",
  ),
]

# What takes a tensor, given an array instead.
ARRAYS = [
  ("cast", lambda v: mtf.cast(v, tf.int32)),
  ("cast", mtf.to_float),
  ("broadcast", lambda v: mtf.broadcast(v, "a:2")),
  ("reshape", lambda v: mtf.reshape(v, "a:2")),
  ("rename_dimension", lambda v: mtf.rename_dimension(v, "a", "b")),
  ("replace_dimensions", lambda v: mtf.replace_dimensions(v, [A], [B])),
  ("anonymize", mtf.anonymize),
  ("transpose", lambda v: mtf.transpose(v, "a:2")),
  ("where", lambda v: mtf.where(v, 1, 0)),
  ("split", lambda v: mtf.split(v, A, 2)),
  ("unstack", lambda v: mtf.unstack(v, A)),
  ("stack", lambda v: mtf.stack([v, v], "n")),
  ("slice", lambda v: mtf.slice(v, 0, 1, "a")),
  ("pad", lambda v: mtf.pad(v, [0, 1], "a")),
  ("diagonal", lambda v: mtf.diagonal(v, "a", "b")),
  ("reduce_first", lambda v: mtf.reduce_first(v, A)),
  ("a reduction", lambda v: mtf.reduce_mean(v, reduced_dim=A)),
  ("a reduction", mtf.norm),
  ("softmax", lambda v: mtf.softmax(v, A)),
  ("log_softmax", lambda v: mtf.log_softmax(v, A)),
  ("add_n", lambda v: mtf.add_n([v, v])),
  ("identity", mtf.identity),
  ("abs", mtf.abs),
]


@pytest.mark.parametrize(
  ("name", "fn"), ARRAYS, ids=[f"{i} {n}" for i, (n, _) in enumerate(ARRAYS)]
)
@pytest.mark.parametrize("value", [np.ones(2), tf.ones([2]), None, 3.0])
def test_what_is_no_mesh_tensor_is_told_with_how_to_make_one(name, fn, value):
  with pytest.raises(
    TypeError, match=rf"{name} takes .*mesh tensors?, got "
  ) as e:
    fn(value)
  assert IMPORT in str(e.value)


CASES = [*DTYPES, *SIZES, *OPERANDS]


@pytest.mark.parametrize(
  ("misuse", "parts"),
  [(misuse, parts) for misuse, *parts in CASES],
  ids=[f"{parts[0][:40]}, {parts[1][:30]}" for _, *parts in CASES],
)
def test_a_message_says_who_what_came_and_the_way_out(misuse, parts):
  operands = _operands()
  before = len(operands.mesh.graph.operations)
  with pytest.raises((ValueError, TypeError)) as caught:
    misuse(operands)
  for part in parts:
    assert part in str(caught.value)
  made = operands.mesh.graph.operations[before:]
  assert all(type(op).__name__ in ("Apply", "ImportOperation") for op in made)


def test_an_error_of_a_primitive_shows_the_tensors_it_was_given():
  o = _operands()
  with pytest.raises(
    ValueError, match=r"\n  in exp applied to \(import_2:0: i"
  ):
    mtf.exp(o.i)


# What a layout cannot do, and what is said of it.
LAYOUTS = [
  (
    lambda mesh: tensor(mesh, "a:4 b:6"),
    "x:4",
    "b:x",
    "split 'b' (6) over mesh dimension 'x' (4): 6 is not divisible by 4",
    "choose a multiple of 4 or drop the rule 'b:x'",
  ),
  (
    lambda mesh: tensor(mesh, "a:4 b:8")[{"b": slice(0, 3)}],
    "x:2",
    "b:x",
    "split 'b' (3) over mesh dimension 'x' (2): 3 is not divisible by 2",
    "drop the rule 'b:x'",
  ),
  (
    lambda mesh: tensor(mesh, "a:4 b:8"),
    "x:2",
    "a:x;b:x",
    "'a' and 'b' are both split over mesh dimension 'x'",
    "operation import",
  ),
  (
    lambda mesh: tensor(mesh, "a:4") @ tensor(mesh, "b:8"),
    "x:2",
    "a:x;b:x",
    "'a' and 'b' are both split over mesh dimension 'x'",
    "operation einsum",
  ),
  (
    lambda mesh: mtf.slicewise(tf.identity, [tensor(mesh, "a:4")]),
    "x:2",
    "a:x",
    "slicewise along 'a': it is split over mesh dimension 'x'",
    "rename the dimension first, or drop the rule 'a:x'",
  ),
]


@pytest.mark.parametrize(
  ("build", "mesh", "layout", "said", "way_out"),
  LAYOUTS,
  ids=[said[:50] for *_, said, _ in LAYOUTS],
)
def test_a_layout_that_cannot_be_is_told_before_anything_runs(
  build, mesh, layout, said, way_out
):
  with pytest.raises(mtf.LayoutError) as caught:
    run(build, mesh, layout)
  assert said in str(caught.value)
  assert way_out in str(caught.value)
