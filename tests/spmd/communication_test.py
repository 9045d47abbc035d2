"""What is sent, in the words and numbers of the original."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd import slices as on_slice

from tests.support.meshes import KINDS, PLACEMENT, setting
from tests.support.running import run, tensor

# old, new, layout, mesh; what is sent, and how many elements by all processors
# together. Where the original sends nothing but cannot do it, or gets it wrong,
# the kinds are what this one is seen to need.
RESHAPES = [
  ("a:4 c:4", "b:4 c:4", "a:x", "x:2", [("allconcat/0/reshape_op", 32)]),
  ("b:4 c:4", "a:4 c:4", "a:x", "x:2", []),
  ("a:4 b:4", "a:4 d:4", "a:x;d:y", "x:2;y:2", []),
  ("a:4 b:4", "c:4 d:4", "a:x;d:x", "x:2", [("alltoall/0/reshape_op", 16)]),
  ("a:8", "b:2 c:4", "a:x;b:x", "x:2", []),
  ("a:8", "b:2 c:4", "a:x;c:x", "x:2", [("alltoall/0/reshape_op", 8)]),
  ("a:8", "b:4 c:2", "c:x", "x:2", []),
  ("b:2 c:4", "a:8", "c:x;a:x", "x:2", [("alltoall/0/reshape_op", 8)]),
  (
    "a:4 b:4", "c:16", "a:x;b:y", "x:2;y:2",
    [("allconcat/0/reshape_op", 32), ("allconcat/1/reshape_op", 64)],
  ),
  ("a:4 b:4", "c:16", "a:x;c:x", "x:2", []),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "layout", "mesh", "sent"), RESHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_reshape_sends_as_much_as_the_original(
  old, new, layout, mesh, sent, kind
):
  def build(m):
    return mtf.reshape(tensor(m, old), new)

  split = run(build, mesh, layout, kind)
  np.testing.assert_array_equal(split.value(), run(build).value())
  prefixes = ("allconcat", "alltoall", "allreduce")
  assert split.counters(*prefixes) == sent


# Wrong, or impossible, in the original: two mesh axes on one tensor axis. Each
# processor receives the slice of one other, and that is all.
@pytest.mark.parametrize(
  ("old", "new", "layout", "kinds"),
  [
    ("d:16", "b:16", "d:x;b:y", ["permute"]),
    ("a:4 b:4", "b:4 a:4", "a:x;b:y", ["permute"]),
    ("a:4 b:4", "c:16", "a:x;c:y", ["permute"]),
  ],
)
def test_two_mesh_axes_may_trade_places(old, new, layout, kinds):
  def build(m):
    return mtf.reshape(tensor(m, old), new)

  for kind in KINDS:
    split = run(build, "x:2;y:2", layout, kind)
    np.testing.assert_array_equal(split.value(), run(build).value())
    assert split.kinds == kinds


def _slices(impl, kind, value, shape):
  """Slices of an array, and how to look at those of every processor."""
  x = impl.import_tensor(tf.constant(value), mtf.convert_to_shape(shape))

  def look(x):
    if kind == PLACEMENT:
      return [y.numpy() for y in x.tensor_list]
    sizes = impl.shape.to_integer_list
    return [
      x.value.numpy()[tuple(np.unravel_index(p, sizes)[a] for a in x.axes)]
      for p in range(impl.size)
    ]

  return x, look


@pytest.mark.parametrize("kind", KINDS)
def test_a_permute_gives_each_processor_a_part_of_the_slice_of_another(kind):
  impl = setting("x:2;y:3", "a:x", kind).impl
  value = np.arange(24).reshape(2, 6, 2)
  x, look = _slices(impl, kind, value, "a:2 b:6 c:2")
  x = impl.map_trailing(lambda t: on_slice.reshape(t, 3, [3, 2, 2]), x)
  events, sources, parts = [], [5, 4, 3, 2, 1, 0], [0, 1, 2, 2, 1, 0]
  with impl.observed(events.append):
    y = impl.permute(x, sources, parts, (0, 1))
  mine = value.reshape(2, 3, 2, 2)
  for p, got in enumerate(look(y)):
    np.testing.assert_array_equal(got[0], mine[sources[p] // 3, parts[p]])
  (event,) = events
  assert (event.kind, event.mesh_axes, event.elements) == ("permute", (0, 1), 4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reduce_scatter_is_a_sum_of_which_each_keeps_a_part(kind):
  impl = setting("x:2;y:3", "a:y;b:x", kind).impl
  value = np.arange(36).reshape(3, 2, 6)
  x, look = _slices(impl, kind, value, "a:3 b:2 c:6")
  events = []
  with impl.observed(events.append):
    y = impl.reduce_scatter(x, 1, 2)
  for p, got in enumerate(look(y)):
    total = value.sum(0)[p // 3]
    np.testing.assert_array_equal(got[0, 0], total.reshape(3, 2)[p % 3])
  (event,) = events
  assert (event.kind, event.elements) == ("reduce_scatter", 2)


# What is split over x after a sum over x; what is sent, by all together. The
# original takes the whole sum, and then cuts it: 16 elements.
SCATTERED = [
  ("b:8", "c:8", "s:x;c:x", [("reduce_scatter/0/reduce_op", 8)]),
  ("b:8", "c:2 d:4", "s:x;d:x", [("reduce_scatter/0/reduce_op", 8)]),
  (
    "b:8", "c:8", "s:x;t:y;c:x",
    [("reduce_scatter/0/reduce_op", 16), ("allreduce/[1]/reduce_op", 16)],
  ),
  # It stays pending where another axis splits it: half as much is summed.
  ("b:8", "c:8", "s:x;c:y", [("allreduce/[0]/reduce_op", 16)]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "layout", "sent"), SCATTERED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_that_is_split_at_once_is_never_taken_whole(
  old, new, layout, sent, kind
):
  def build(mesh):
    x = tensor(mesh, "s:4 t:4 " + old)
    return mtf.reshape(mtf.reduce_sum(x, output_shape=old), new)

  split = run(build, "x:2;y:2" if "y" in layout else "x:2", layout, kind)
  np.testing.assert_array_equal(split.value(), run(build).value())
  assert split.counters("reduce_scatter", "all") == sent


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_that_was_taken_before_is_only_cut(kind):
  def build(mesh):
    total = mtf.reduce_sum(tensor(mesh, "s:4 b:8"), output_shape="b:8")
    return [total * 2.0, mtf.reshape(total, "c:8")]

  split = run(build, "x:2", "s:x;c:x", kind)
  np.testing.assert_array_equal(split.value(1), run(build).value(1))
  assert split.kinds == ["allreduce"]


# offset, wrap, result of 0..7 on two processors, counters, elements really sent
# by each. A part that stays, or goes all the way around, is counted only.
SHIFTS = [
  (3, True, [5, 6, 7, 0, 1, 2, 3, 4], {0: 2, 1: 6}, [3]),
  (3, False, [0, 0, 0, 0, 1, 2, 3, 4], {0: 2, 1: 6}, [3]),
  (-3, True, [3, 4, 5, 6, 7, 0, 1, 2], {-1: 6, 0: 2}, [3]),
  (4, True, [4, 5, 6, 7, 0, 1, 2, 3], {1: 8}, [4]),
  (5, True, [3, 4, 5, 6, 7, 0, 1, 2], {1: 6, 2: 2}, [3]),
  (-9, True, [1, 2, 3, 4, 5, 6, 7, 0], {-3: 2, -2: 6}, [1]),
  (-9, False, [0] * 8, {}, []),
  (8, False, [0] * 8, {}, []),
  (0, True, list(range(8)), {0: 8}, []),
]


@pytest.mark.parametrize(("offset", "wrap", "want", "counted", "sent"), SHIFTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_shift_sends_to_its_neighbours_only(
  offset, wrap, want, counted, sent, kind
):
  dim = mtf.Dimension("a", 8)
  split = run(
    lambda mesh: mtf.shift(tensor(mesh, "a:8"), offset, dim, wrap),
    "x:2", "a:x", kind,
  )  # fmt: skip
  assert split.value().tolist() == want
  keys = [(f"shift[{n}]", count) for n, count in counted.items()]
  assert split.counters("shift") == keys
  assert [c.elements for _, c in split.lowering.collectives] == sent


@pytest.mark.parametrize("kind", KINDS)
def test_a_shift_needs_at_most_two_neighbours(kind):
  dim = mtf.Dimension("a", 16)
  for offset in range(-20, 21):
    for wrap in (True, False):

      def build(mesh, offset=offset, wrap=wrap):
        return mtf.shift(tensor(mesh, "a:16"), offset, dim, wrap)

      split = run(build, "x:4", "a:x", kind)
      np.testing.assert_array_equal(split.value(), run(build).value())
      assert len(split.kinds) <= 2
      if not wrap and abs(offset) >= 16:
        assert split.kinds == []


@pytest.mark.parametrize("kind", KINDS)
def test_integers_are_reduced_as_integers(kind):
  def build(mesh):
    x = tensor(mesh, "a:4 b:4", dtype=np.int32)
    return [
      mtf.reduce_max(x),
      mtf.reduce_min(x, output_shape="b:4"),
      mtf.reduce_sum(x),
    ]

  split = run(build, "x:2;y:2", "a:x;b:y", kind)
  largest, smallest, total = split.values
  assert (largest, total) == (15, 120)
  assert smallest.tolist() == [0, 1, 2, 3]
  assert split.counters("allreduce")[:2] == [
    ("allreduce/[0, 1]/reduce_op", 4),
    ("allreduce/[0]/reduce_op", 8),
  ]


def _made(kind, laid_out, unique):
  return [(f"output/{kind}", laid_out), (f"output_unique/{kind}", unique)]


_EINSUM = [("einsum", 60), ("einsum_unique", 60)]
# Number by number those that the original was seen to give.
STEP_COUNTERS = [
  *_made("ImportOperation", 12, 12),
  ("variables/trainable", 15),
  *_made("Variable", 30, 15),
  *_EINSUM,
  *_made("EinsumOperation", 20, 20),
  *_made("ReduceOperation", 2, 1),
  ("allreduce/[0]/reduce_op", 2),
  *_made("ScalarMultiplyOperation", 2, 1),
  *_made("ConstantOperation", 2, 1),
  *_made("ScalarMultiplyOperation", 2, 1),
  *_made("BroadcastOperation", 20, 20),
  *_EINSUM,
  *_made("EinsumOperation", 12, 12),
  *_EINSUM,
  *_made("EinsumOperation", 30, 15),
  ("allreduce/[0]/einsum_op", 30),
  *_made("ScalarMultiplyOperation", 30, 15),
]


def test_the_counters_of_a_training_step():
  def build(mesh):
    x = tensor(mesh, "batch:4 i:3")
    w = mtf.get_variable(mesh, "w", "i:3 o:5", initializer=1.0)
    y = mtf.einsum([x, w], "batch:4 o:5")
    (dw,) = mtf.gradients([mtf.reduce_mean(y)], [w])
    mtf.assign_sub(w, dw * 0.1)
    return dw

  for kind in KINDS:
    split = run(build, "x:2", "batch:x", kind)
    split.value()
    assert split.lowering.counters == STEP_COUNTERS


LOOKUPS = [
  ("batch:x", [("ScatterAdd", "allreduce", (0,))]),
  ("vocab:y", [("Gather", "allreduce", (1,))]),
  (
    "batch:x;vocab:y",
    [("Gather", "allreduce", (1,)), ("ScatterAdd", "allreduce", (0,))],
  ),
  ("d:y", []),
]


@pytest.mark.parametrize(("layout", "sent"), LOOKUPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_lookup_never_sends_the_table(layout, sent, kind):
  vocab = mtf.Dimension("vocab", 8)

  def build(mesh):
    w = tensor(mesh, "vocab:8 d:4")
    ids = tensor(mesh, "batch:4 length:2", dtype=np.int32)
    y = mtf.gather(w, ids, vocab)
    return [y, *mtf.gradients([y], [w])]

  split = run(build, "x:2;y:2", layout, kind)
  for got, want in zip(split.values, run(build).values, strict=True):
    np.testing.assert_array_equal(got, want)
  assert split.collectives == sent


@pytest.mark.parametrize("kind", KINDS)
def test_top_k_sends_k_candidates_of_each_processor(kind):
  dim, k = mtf.Dimension("a", 16), mtf.Dimension("k", 3)
  split = run(
    lambda mesh: mtf.top_k(tensor(mesh, "b:2 a:16"), dim, k),
    "x:4", "a:x", kind,
  )  # fmt: skip
  assert split.value(0).tolist() == [[15, 14, 13], [31, 30, 29]]
  sizes = [(c.kind, c.elements) for _, c in split.lowering.collectives]
  assert sizes == [("allconcat", 2 * 4 * 3)] * 2


def test_both_implementations_send_the_same():
  k = mtf.Dimension("k", 2)

  def build(mesh):
    x = tensor(mesh, "a:4 b:8")
    y = mtf.softmax(x, mtf.Dimension("b", 8))
    z = mtf.cumsum(mtf.reshape(y, "c:4 d:8"), mtf.Dimension("d", 8))
    values, _ = mtf.top_k(z, mtf.Dimension("d", 8), k)
    return [values, *mtf.gradients([values], [x])]

  runs = [run(build, "x:2;y:2", "b:x;c:x;d:y;a:y", kind) for kind in KINDS]
  for r in runs:
    assert len(r.values) == 2
  virtual, placement = (
    [(c.kind, c.mesh_axes, c.elements) for _, c in r.lowering.collectives]
    for r in runs
  )
  assert virtual == placement
  assert {kind for kind, _, _ in virtual} >= {"allreduce", "allconcat"}
