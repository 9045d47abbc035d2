"""Beam search and greedy decoding: goldens, layouts, exhaustive search."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.decode import beam_search, greedy_decode
from mesh_tf2.spmd.placement import PlacementMeshImpl
from mesh_tf2.spmd.virtual import VirtualMeshImpl

IMPLEMENTATIONS = {
  "one": lambda: VirtualMeshImpl("", ""),
  "batch": lambda: VirtualMeshImpl("x:2", "batch:x"),
  "vocab": lambda: VirtualMeshImpl("x:2;y:2", "batch:x;vocab:y"),
  "placed": lambda: PlacementMeshImpl("y:2", "vocab:y", [""] * 2),
}


def search(impl, table, *, beam, length, **kwargs):
  """Searches with logits that depend on position and previous token.

  `table`: [batch, length, previous token, token].
  """
  batch = mtf.Dimension("batch", table.shape[0])
  steps = mtf.Dimension("steps", table.shape[1])
  previous = mtf.Dimension("previous", table.shape[2])
  vocab = mtf.Dimension("vocab", table.shape[3])
  beam = mtf.Dimension("beam", beam)
  length = mtf.Dimension("length", length)
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  logits = mtf.import_tf_tensor(
    mesh, table.astype(np.float32), [batch, steps, previous, vocab]
  )

  def logits_fn(step, ids, states):
    now = mtf.gather(logits, step, steps)
    last = mtf.gather(ids, step - 1, length)
    return mtf.gather(now, last, previous), states

  if callable(limit := kwargs.get("decode_length")):
    kwargs["decode_length"] = limit(mesh)
  ids, scores = beam_search(
    logits_fn,
    mtf.zeros(mesh, [batch, beam, length], tf.int32),
    kwargs.pop("alpha", 0.6),
    **kwargs,
  )
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  return [lowering.export_to_tf_tensor(t).numpy() for t in (ids, scores)]


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_constant_logits_give_the_known_sequences(name):
  row = np.array([0, 1, 5, 0, 2, 3])
  table = np.broadcast_to(row, [2, 4, 6, 6])
  ids, scores = search(IMPLEMENTATIONS[name](), table, beam=2, length=4)
  np.testing.assert_array_equal(ids[0], [[1, 0, 0, 0], [0, 0, 0, 0]])
  np.testing.assert_allclose(scores[0], [-4.196318, -1e7], rtol=1e-6)
  np.testing.assert_array_equal(ids[0], ids[1])


def exhaustive(table, length, alpha, eos=1):
  """The best finished sequence of one example, by trying all."""
  log_probs = table - np.log(np.exp(table).sum(-1, keepdims=True))
  vocab, best = table.shape[-1], (-np.inf, None)
  for n in range(1, length + 1):
    for head in itertools.product(range(vocab), repeat=n - 1):
      if eos in head:
        continue
      tokens, last, total = (*head, eos), 0, 0.0
      for i, token in enumerate(tokens):
        total += log_probs[i, last, token]
        last = token
      best = max(best, (total / ((5 + n) / 6) ** alpha, tokens))
  return best


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_wide_beam_finds_what_trying_all_finds(name, alpha):
  table = np.random.default_rng(3).normal(size=[2, 4, 4, 4]) * 2
  ids, scores = search(
    IMPLEMENTATIONS[name](), table, beam=27, length=4, alpha=alpha
  )
  for row, example in enumerate(table):
    score, tokens = exhaustive(example, 4, alpha)
    np.testing.assert_allclose(scores[row, 0], score, rtol=1e-5)
    want = [*tokens, *[0] * (4 - len(tokens))]
    np.testing.assert_array_equal(ids[row, 0], want)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_stopping_early_changes_no_sequence(alpha):
  """As many as there are beams must have ended, and all beat what is open."""
  table = np.random.default_rng(5).normal(size=[6, 8, 5, 5]) * 3
  impl = VirtualMeshImpl("", "")
  early, late = (
    search(impl, table, beam=3, length=8, stop_early=s, alpha=alpha)
    for s in (True, False)
  )
  for got, want in zip(early, late, strict=True):
    np.testing.assert_array_equal(got, want)


def test_no_candidate_is_lost_where_one_processor_has_all_of_the_best():
  table = np.tile(-np.arange(16.0), [1, 3, 16, 1])
  table[..., 1] = -9
  table += np.random.default_rng(0).normal(size=table.shape) * 0.01
  want = search(VirtualMeshImpl("", ""), table, beam=4, length=3)
  assert len({tuple(ids) for ids in want[0][0]}) == 4
  for impl in (
    VirtualMeshImpl("y:2", "vocab:y"),
    PlacementMeshImpl("y:2", "vocab:y", [""] * 2),
  ):
    got = search(
      impl, table, beam=4, length=3,
      layout="vocab:y", mesh_shape="y:2", num_prefilter=1,
    )  # fmt: skip
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)


def test_examples_that_end_and_examples_that_do_not_are_scored_alike():
  table = np.zeros([2, 3, 4, 4])
  table[0, ..., 1], table[1, ..., 1] = -1e9, 0.5
  table[..., 2] = 1.0
  _, scores = search(VirtualMeshImpl("", ""), table, beam=1, length=3)
  open_one = 3 * (1 - np.log(np.e + 2)) / (8 / 6) ** 0.6
  ended_one, _ = exhaustive(table[1], 3, 0.6)
  np.testing.assert_allclose(scores[:, 0], [open_one, ended_one], rtol=1e-5)


def test_no_name_of_a_dimension_is_taken():
  table = np.random.default_rng(3).normal(size=[2, 4, 5, 5])
  want = search(VirtualMeshImpl("", ""), table, beam=2, length=4)
  for names in (
    ("double_beam", "triple_beam", "vocab", "length"),
    ("beam", "batch", "length", "vocab"),
  ):
    batch, beam, length, vocab = map(mtf.Dimension, names, (2, 2, 4, 5))
    mesh = mtf.Mesh(mtf.Graph(), "mesh")
    steps, previous = mtf.Dimension("steps", 4), mtf.Dimension("previous", 5)
    logits = mtf.import_tf_tensor(
      mesh, table.astype(np.float32), [batch, steps, previous, vocab]
    )

    def logits_fn(
      step, ids, states, logits=logits, at=(steps, previous, length)
    ):
      steps, previous, length = at
      last = mtf.gather(ids, step - 1, length)
      return mtf.gather(mtf.gather(logits, step, steps), last, previous), states

    found = beam_search(
      logits_fn, mtf.zeros(mesh, [batch, beam, length], tf.int32), 0.6
    )
    impl = VirtualMeshImpl("x:2", f"{batch.name}:x")
    lowering = mtf.Lowering(mesh.graph, {mesh: impl})
    for got, wanted in zip(found, want, strict=True):
      np.testing.assert_allclose(
        lowering.export_to_tf_tensor(got).numpy(), wanted, rtol=1e-6
      )


def test_an_example_without_an_end_gives_normalised_unfinished_sequences():
  table = np.zeros([1, 3, 4, 4])
  table[..., 1] = -1e9
  table[..., 2] = 1.0
  ids, scores = search(VirtualMeshImpl("", ""), table, beam=2, length=3)
  np.testing.assert_array_equal(ids[0, 0], [2, 2, 2])
  one = 1 - np.log(np.e + 2)
  np.testing.assert_allclose(scores[0, 0], 3 * one / (8 / 6) ** 0.6, rtol=1e-5)


def test_decode_length_bounds_the_search():
  table = np.zeros([1, 4, 4, 4])
  table[..., 2] = 5.0
  ids, _ = search(
    VirtualMeshImpl("", ""), table, beam=1, length=4, decode_length=2
  )
  assert ids[0, 0, 2:].tolist() == [0, 0]


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_an_example_with_a_limit_of_its_own_is_as_if_it_were_alone(name):
  limits = np.array([2, 4], np.int32)
  table = np.random.default_rng(5).normal(size=[2, 4, 6, 6])
  table[:, :2, :, 1] = -9  # nothing ends before the first limit

  def decode(impl, rows):
    batch = mtf.Dimension("batch", len(rows))
    return search(
      impl,
      table[rows],
      beam=2,
      length=4,
      decode_length=lambda mesh: mtf.import_tf_tensor(
        mesh, limits[rows], [batch]
      ),
    )

  together = decode(IMPLEMENTATIONS[name](), [0, 1])
  alone = [decode(VirtualMeshImpl("", ""), [row]) for row in (0, 1)]
  for got, *want in zip(together, *alone, strict=True):
    np.testing.assert_allclose(got, np.concatenate(want), rtol=1e-6)


def test_initial_ids_need_three_dimensions():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  ids = mtf.zeros(mesh, "batch:2;length:3", tf.int32)
  with pytest.raises(ValueError, match="batch, a beam and a length"):
    beam_search(lambda *a: a, ids, 0.6)


def test_greedy_decoding_takes_the_likeliest_token():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  batch, length = mtf.Dimension("batch", 2), mtf.Dimension("length", 4)
  vocab = mtf.Dimension("vocab", 4)
  row = mtf.import_tf_tensor(mesh, [0.0, 1.0, 5.0, 0.0], [vocab])
  ids = greedy_decode(
    lambda step, ids, states: (mtf.broadcast(row, [batch, vocab]), states),
    mtf.zeros(mesh, [batch, length], tf.int32),
  )
  impl = VirtualMeshImpl("x:2", "vocab:x")
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  got = lowering.export_to_tf_tensor(ids).numpy()
  np.testing.assert_array_equal(got, np.full([2, 4], 2))


def test_forced_ids_are_taken_instead():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  batch, length = mtf.Dimension("batch", 1), mtf.Dimension("length", 4)
  vocab = mtf.Dimension("vocab", 4)
  row = mtf.import_tf_tensor(mesh, [0.0, 1.0, 5.0, 0.0], [vocab])
  ids = greedy_decode(
    lambda step, ids, states: (mtf.broadcast(row, [batch, vocab]), states),
    mtf.zeros(mesh, [batch, length], tf.int32),
    forced_ids=mtf.import_tf_tensor(mesh, [[3, 0, 3, 0]], [batch, length]),
  )
  lowering = mtf.Lowering(mesh.graph, {mesh: VirtualMeshImpl("", "")})
  got = lowering.export_to_tf_tensor(ids).numpy()
  np.testing.assert_array_equal(got, [[3, 2, 3, 2]])
