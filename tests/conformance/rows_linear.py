"""Rows of the linear functions: sums, products, and moves."""

import numpy as np

import mesh_tf2 as mtf

from tests.conformance.row import row

AB, BC, ABC = "a:4 b:8", "b:8 c:4", "a:4 b:8 c:4"
B, C = mtf.Dimension("b", 8), mtf.Dimension("c", 4)
NARROW = ("bfloat16", "float64")


def _shift(offset, wrap):
  def reference(x):
    moved = np.roll(x, offset, 1)
    if wrap:
      return moved
    out = np.zeros_like(x)
    for i in range(8):
      if 0 <= i + offset < 8:
        out[:, i + offset] = x[:, i]
    return out

  return row(
    f"shift: by {offset}, {'wrapped' if wrap else 'zeros come in'}",
    lambda mesh, x: mtf.shift(x, offset, B, wrap),
    [ABC],
    reference,
    ABC,
  )


ROWS = [
  row(
    "einsum",
    lambda mesh, x, y: mtf.einsum([x, y], "a:4 c:4"),
    [AB, BC],
    lambda x, y: x @ y,
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "einsum: of two dimensions at once",
    lambda mesh, x, y: mtf.einsum([x, y], "d:4 a:4"),
    [ABC, "c:4 d:4 b:8"],
    lambda x, y: np.einsum("abc,cdb->da", x, y),
    "d:4 a:4",
  ),
  row(
    "einsum: batched",
    lambda mesh, x, y: mtf.einsum([x, y], "b:8 a:4 d:4"),
    [ABC, "b:8 c:4 d:4"],
    lambda x, y: np.einsum("abc,bcd->bad", x, y),
    "b:8 a:4 d:4",
  ),
  row(
    "einsum: one operand has all dimensions",
    lambda mesh, x, y: mtf.einsum([x, y], "a:4 b:8"),
    [ABC, "c:4"],
    lambda x, y: x @ y,
    AB,
    dtypes=NARROW,
  ),
  row(
    "einsum: of three",
    lambda mesh, x, y, z: mtf.einsum([x, y, z], "a:4 d:4"),
    [AB, BC, "c:4 d:4"],
    lambda x, y, z: x @ y @ z,
    "a:4 d:4",
  ),
  row(
    "einsum: an outer product",
    lambda mesh, x, y: mtf.einsum([x, y], ABC),
    [AB, "c:4"],
    lambda x, y: x[..., None] * y,
    ABC,
  ),
  row(
    "einsum: a dimension that no operand has",
    lambda mesh, x, y: mtf.einsum([x, y], "a:4 d:4 c:4"),
    [AB, BC],
    lambda x, y: np.repeat((x @ y)[:, None], 4, 1),
    "a:4 d:4 c:4",
  ),
  row(
    "einsum: all that is shared is summed",
    lambda mesh, x, y: mtf.einsum([x, y]),
    [AB, BC],
    lambda x, y: x @ y,
    "a:4 c:4",
  ),
  row(
    "einsum: of integers",
    lambda mesh, x, y: mtf.einsum([x, y], reduced_dims=[B]),
    [(AB, "integers"), (BC, "integers")],
    lambda x, y: x @ y,
    "a:4 c:4",
  ),
  row(
    "einsum: a sum over one operand's dimension",
    lambda mesh, x, y: mtf.einsum([x, y], "b:8"),
    [AB, BC],
    lambda x, y: x.sum(0) * y.sum(1),
    "b:8",
  ),
  row(
    "matmul",
    lambda mesh, x, y: mtf.matmul(x, y, "c:4 a:4"),
    [AB, BC],
    lambda x, y: (x @ y).T,
    "c:4 a:4",
  ),
  row(
    "transpose",
    lambda mesh, x: mtf.transpose(x, "c:4 a:4 b:8"),
    [ABC],
    lambda x: x.transpose(2, 0, 1),
    "c:4 a:4 b:8",
  ),
  row(
    "reduce_sum",
    lambda mesh, x: mtf.reduce_sum(x, reduced_dim=B),
    [ABC],
    lambda x: x.sum(1),
    "a:4 c:4",
    dtypes=NARROW,
  ),
  row(
    "reduce_sum: in another order",
    lambda mesh, x: mtf.reduce_sum(x, output_shape="c:4 a:4"),
    [ABC],
    lambda x: x.sum(1).T,
    "c:4 a:4",
  ),
  row(
    "reduce_sum: to a number",
    lambda mesh, x: mtf.reduce_sum(x),
    [ABC],
    np.sum,
    "",
  ),
  row(
    "reduce_sum: of integers",
    lambda mesh, x: mtf.reduce_sum(x, reduced_dim=B),
    [(ABC, "integers")],
    lambda x: x.sum(1),
    "a:4 c:4",
  ),
  row(
    "broadcast",
    lambda mesh, x: mtf.broadcast(x, "c:4 b:8 a:4"),
    [AB],
    lambda x: np.repeat(x.T[None], 4, 0),
    "c:4 b:8 a:4",
    dtypes=NARROW,
  ),
  row(
    "broadcast: a number",
    lambda mesh, x: mtf.broadcast(x, AB),
    [""],
    lambda x: np.full((4, 8), x),
    AB,
  ),
  row(
    "reshape",
    lambda mesh, x: mtf.reshape(x, "c:4 a:4 d:2"),
    [AB],
    lambda x: x.reshape(4, 4, 2),
    "c:4 a:4 d:2",
    dtypes=NARROW,
  ),
  row(
    "rename_dimension",
    lambda mesh, x: mtf.rename_dimension(x, "b", "c"),
    [AB],
    lambda x: x,
    "a:4 c:8",
  ),
  row(
    "anonymize",
    lambda mesh, x: mtf.anonymize(x),
    [AB],
    lambda x: x,
    "_anonymous_0:4 _anonymous_1:8",
  ),
  row(
    "replace_dimensions",
    lambda mesh, x: mtf.replace_dimensions(x, [B, C], mtf.Dimension("d", 32)),
    [ABC],
    lambda x: x.reshape(4, 32),
    "a:4 d:32",
  ),
  row(
    "concat",
    lambda mesh, x, y: mtf.concat([x, y], "b"),
    [ABC, "a:4 b:3 c:4"],
    lambda x, y: np.concatenate([x, y], 1),
    "a:4 b:11 c:4",
    dtypes=NARROW,
  ),
  row(
    "split",
    lambda mesh, x: mtf.split(x, B, [5, 3]),
    [ABC],
    lambda x: [x[:, :5], x[:, 5:]],
    ["a:4 b:5 c:4", "a:4 b:3 c:4"],
    dtypes=NARROW,
  ),
  row(
    "split: into equal parts",
    lambda mesh, x: mtf.split(x, B, 4)[2],
    [ABC],
    lambda x: x[:, 4:6],
    "a:4 b:2 c:4",
  ),
  row(
    "stack",
    lambda mesh, x, y: mtf.stack([x, y, x, y], "n", -2),
    [AB, AB],
    lambda x, y: np.stack([x, y, x, y], 1),
    "a:4 n:4 b:8",
    dtypes=NARROW,
  ),
  row(
    "unstack",
    lambda mesh, x: mtf.unstack(x, C),
    [ABC],
    lambda x: list(np.moveaxis(x, 2, 0)),
    [AB] * 4,
    dtypes=NARROW,
  ),
  row(
    "unstack: some results are not used",
    lambda mesh, x: mtf.unstack(x, C)[1],
    [ABC],
    lambda x: x[..., 1],
    AB,
  ),
  row(
    "mtf_slice",
    lambda mesh, x: mtf.slice(x, 2, 3, "b"),
    [ABC],
    lambda x: x[:, 2:5],
    "a:4 b:3 c:4",
    covers="slice",
    dtypes=NARROW,
  ),
  row(
    "pad",
    lambda mesh, x: mtf.pad(x, [1, 2], "b"),
    [ABC],
    lambda x: np.pad(x, [[0, 0], [1, 2], [0, 0]]),
    "a:4 b:11 c:4",
    dtypes=NARROW,
  ),
  row(
    "pad: of bools",
    lambda mesh, x: mtf.pad(x, [1, 0], "b"),
    [(AB, "bool")],
    lambda x: np.pad(x, [[0, 0], [1, 0]]),
    "a:4 b:9",
  ),
  row(
    "concat: along a dimension that may be split",
    lambda mesh, x, y, z: mtf.concat([x, y, z], "b"),
    [ABC, "a:4 b:4 c:4", "a:4 b:12 c:4"],
    lambda x, y, z: np.concatenate([x, y, z], 1),
    "a:4 b:24 c:4",
    dtypes=NARROW,
  ),
  row(
    "split: along a dimension that may be split",
    lambda mesh, x: mtf.split(x, mtf.Dimension("b", 16), [4, 8, 4]),
    ["a:4 b:16"],
    lambda x: [x[:, :4], x[:, 4:12], x[:, 12:]],
    ["a:4 b:4", AB, "a:4 b:4"],
  ),
  row(
    "split: some parts are not used",
    lambda mesh, x: mtf.split(x, mtf.Dimension("b", 16), 4)[1],
    ["a:4 b:16"],
    lambda x: x[:, 4:8],
    "a:4 b:4",
  ),
  row(
    "mtf_slice: of a dimension that may be split",
    lambda mesh, x: mtf.slice(x, 3, 8, "b"),
    ["a:4 b:16 c:4"],
    lambda x: x[:, 3:11],
    ABC,
  ),
  row(
    "pad: of a dimension that may be split",
    lambda mesh, x: mtf.pad(x, [3, 5], "b"),
    [ABC],
    lambda x: np.pad(x, [[0, 0], [3, 5], [0, 0]]),
    "a:4 b:16 c:4",
  ),
  *(_shift(n, w) for n in (0, 3, -3, 4, 5, -9, 8) for w in (True, False)),
]
