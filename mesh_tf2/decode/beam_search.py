"""Beam search with a length penalty (Wu et al., 2016, equation 14).

Two sets of sequences are kept for each example: the most likely unfinished
ones, and the finished ones with the best scores. The vocabulary may be split:
every processor proposes its own best tokens, and only those are exchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..autodiff.while_loop import while_loop
from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension, Shape
from ..ops.binary import (
  add,
  divide,
  equal,
  floordiv,
  greater,
  less,
  logical_and,
  minimum,
  where,
)
from ..ops.extremes import reduce_any, reduce_max, reduce_min
from ..ops.gather import gather
from ..ops.linear.concat_split import concat
from ..ops.linear.reshape import rename_dimension, reshape
from ..ops.linear.sum_broadcast import broadcast
from ..ops.power import mtf_pow
from ..ops.softmax import log_softmax
from ..ops.source import constant, mtf_range, one_hot, zeros_like
from ..ops.top_k import top_k
from ..ops.unary import logical_not, to_float

EOS_ID = 1
INF = 1e7  # a score that nothing real reaches

LogitsFn = Callable[..., tuple[Tensor, list[Tensor]]]


@dataclasses.dataclass(frozen=True)
class Beams:
  """Sequences of each example, and what is known of them.

  Attributes:
    ids: batch, beam, length: int32.
    scores: batch, beam: log-probabilities, or length-normalised scores.
    extra: more tensors with the dimensions batch and beam.
  """

  ids: Tensor
  scores: Tensor
  extra: list[Tensor]

  def best(self, beam: Dimension) -> Beams:
    """The `beam.size` ones with the highest scores, best first."""
    old = self.scores.shape.dims[-1]
    scores, index = top_k(self.scores, old, beam)
    return Beams(
      take(self.ids, index, old),
      scores,
      [take(x, index, old) for x in self.extra],
    )


def take(x: Tensor, index: Tensor, beam: Dimension) -> Tensor:
  """Reads `x` along `beam` at `index` (batch, new beam), for each example.

  Returns:
    `x` with the new beam dimension of `index` in the place of `beam`.
  """
  new = index.shape.dims[-1]
  renamed = rename_dimension(x, beam.name, "_source_beam")
  source = Dimension("_source_beam", beam.size)
  at = x.shape.index(beam)
  dims = x.shape.dims
  wanted = Shape([*dims[:at], new, *dims[at + 1 :]])
  return gather(renamed, index, source, output_shape=wanted)


@dataclasses.dataclass(frozen=True)
class Search:
  """The sizes and parameters of a search, and one step of it."""

  logits_fn: LogitsFn
  batch: Dimension
  beam: Dimension
  length: Dimension
  alpha: float
  eos_id: int

  def penalty(self, length: Tensor) -> Tensor:
    """((5 + length) / 6) ^ alpha, float32."""
    base = divide(add(to_float(length), 5.0), 6.0)
    return mtf_pow(base, self.alpha)

  def step(
    self, i: Tensor, alive: Beams, finished: Beams
  ) -> tuple[Beams, Beams]:
    """Extends the unfinished sequences by a token each."""
    logits, states = self.logits_fn(i, alive.ids, alive.extra)
    alive = dataclasses.replace(alive, extra=list(states))
    grown, source = self._grow(i, logits, alive)
    ended = equal(self._token(i, grown.ids), self.eos_id)
    nothing = constant(i.mesh, -INF, grown.scores.shape)
    score = divide(grown.scores, self.penalty(i + 1))
    newly = Beams(grown.ids, where(ended, nothing, grown.scores), [source])
    kept = newly.best(self.beam)
    (source,) = kept.extra
    states = [
      take(x, source, self.beam) if self.beam in x.shape else x
      for x in alive.extra
    ]
    done = Beams(grown.ids, where(ended, score, nothing), [])
    return (
      Beams(kept.ids, kept.scores, states),
      _join(finished, done).best(self.beam),
    )

  def _grow(
    self, i: Tensor, logits: Tensor, alive: Beams
  ) -> tuple[Beams, Tensor]:
    """The likeliest continuations, twice as many as there are beams."""
    (vocab,) = logits.shape.drop([self.batch, self.beam])
    k = min(2 * self.beam.size, vocab.size)
    choices = Dimension("_choices", k)
    double = Dimension(
      "_double_beam", min(2 * self.beam.size, k * self.beam.size)
    )
    log_probs = log_softmax(to_float(logits), vocab) + alive.scores
    values, tokens = top_k(log_probs, vocab, choices)
    pairs = Dimension("_pairs", self.beam.size * k)
    flat = Shape([self.batch, pairs])
    order = Shape([self.batch, self.beam, choices])
    values = reshape(broadcast(values, order), flat)
    tokens = reshape(broadcast(tokens, order), flat)
    scores, index = top_k(values, pairs, double)
    source = floordiv(index, k)
    token = gather(tokens, index, pairs, output_shape=index.shape)
    ids = take(alive.ids, source, self.beam)
    here = equal(mtf_range(i.mesh, self.length, tf.int32), i)
    return Beams(where(here, token, ids, ids.shape), scores, []), source

  def _token(self, i: Tensor, ids: Tensor) -> Tensor:
    return gather(ids, i, self.length)

  def settled(self, alive: Beams, finished: Beams) -> Tensor:
    """Whether no unfinished sequence can still beat a finished one: batch."""
    longest = constant(alive.ids.mesh, float(self.length.size))
    hope = divide(
      reduce_max(alive.scores, reduced_dim=self.beam), self.penalty(longest)
    )
    worst = reduce_min(finished.scores, reduced_dim=self.beam)
    return greater(worst, hope)


def _where(rows: Tensor, new: Beams, old: Beams) -> Beams:
  """The new sequences of some examples, the old ones of the others."""
  return Beams(
    where(rows, new.ids, old.ids, old.ids.shape),
    where(rows, new.scores, old.scores, old.scores.shape),
    new.extra,
  )


def _join(a: Beams, b: Beams) -> Beams:
  """Both sets of sequences, side by side."""
  name = "_joined_beam"

  def join(x: Tensor, y: Tensor, at: str, bt: str) -> Tensor:
    return concat(
      [rename_dimension(x, at, name), rename_dimension(y, bt, name)], name
    )

  names = a.scores.shape.dims[-1].name, b.scores.shape.dims[-1].name
  return Beams(join(a.ids, b.ids, *names), join(a.scores, b.scores, *names), [])


def beam_search(  # noqa: PLR0913  names fixed by the original
  logits_fn: LogitsFn,
  initial_ids: Tensor,
  alpha: float,
  states: Sequence[Tensor] | None = None,
  eos_id: int = EOS_ID,
  stop_early: bool = True,
  decode_length: Any = None,
  use_tpu: bool = True,
  dtype: Any = tf.float32,
  layout: Any = None,
  mesh_shape: Any = None,
  num_prefilter: int = 2,
) -> tuple[Tensor, Tensor]:
  """Finds likely sequences.

  Args:
    logits_fn: `f(step, ids, states)` returns the logits (batch, beam, vocab)
      of the token at position `step`, given the ids (batch, beam, length)
      before it, and the new states.
    initial_ids: batch, beam, length: int32; overwritten from position 0 on.
    alpha: strength of the length penalty; 0 for none.
    states: tensors that `logits_fn` hands on from step to step. Those with the
      beam dimension follow their sequences.
    eos_id: the token that ends a sequence.
    stop_early: whether to stop once no sequence can get better.
    decode_length: the most tokens to decode, by default the length dimension's
      size: a number, or an int32 tensor: a scalar, or batch.
    use_tpu: without effect.
    dtype: without effect: scores are float32.
    layout: without effect: the search is exact under every layout.
    mesh_shape: without effect.
    num_prefilter: without effect.

  Returns:
    ids: batch, beam, length, best first, 0 after the end;
    scores: batch, beam: log-probability over length penalty. An example of
    which no sequence has ended yields its unfinished ones.

  Raises:
    ShapeError: `initial_ids` has other than three dimensions.
  """
  del use_tpu, dtype, layout, mesh_shape, num_prefilter
  if len(initial_ids.shape) != 3:
    raise ShapeError(
      f"beam_search: initial_ids is [{initial_ids.shape}]; it needs a batch, "
      "a beam and a length dimension"
    )
  batch, beam, length = initial_ids.shape.dims
  search = Search(logits_fn, batch, beam, length, alpha, eos_id)
  mesh = initial_ids.mesh
  limit = _limit(mesh, decode_length, length)
  first = one_hot(constant(mesh, 0, dtype=tf.int32), beam, 0.0, -INF)
  scores = broadcast(first, Shape([batch, beam]))
  state_list = list(states or [])

  def pack(i: Tensor, alive: Beams, finished: Beams) -> list[Tensor]:
    return [
      i,
      alive.ids,
      alive.scores,
      finished.ids,
      finished.scores,
      *alive.extra,
    ]

  def unpack(
    i: Tensor,
    ids: Tensor,
    scores: Tensor,
    done: Tensor,
    best: Tensor,
    *extra: Tensor,
  ) -> tuple[Tensor, Beams, Beams]:
    return i, Beams(ids, scores, list(extra)), Beams(done, best, [])

  def more(*loop: Tensor) -> Tensor:
    i, alive, finished = unpack(*loop)
    go = less(i, limit)
    if stop_early:
      go = logical_and(go, logical_not(search.settled(alive, finished)))
    return reduce_any(go)

  def body(*loop: Tensor) -> list[Tensor]:
    i, alive, finished = unpack(*loop)
    new_alive, new_finished = search.step(i, alive, finished)
    if limit.shape:  # an example must not gain by the others' longer search
      go = less(i, limit)
      new_alive = _where(go, new_alive, alive)
      new_finished = _where(go, new_finished, finished)
    return pack(i + 1, new_alive, new_finished)

  start = pack(
    constant(mesh, 0, dtype=tf.int32),
    Beams(initial_ids, scores, state_list),
    Beams(
      zeros_like(initial_ids), constant(mesh, -INF, Shape([batch, beam])), []
    ),
  )
  i, alive, finished = unpack(*while_loop(more, body, start))
  return _result(search, minimum(i, limit), alive, finished)


def _limit(mesh: Any, decode_length: Any, length: Dimension) -> Tensor:
  if isinstance(decode_length, Tensor):
    return decode_length
  size = length.size if decode_length is None else decode_length
  return constant(mesh, min(size, length.size), dtype=tf.int32)


def _result(
  search: Search, steps: Tensor, alive: Beams, finished: Beams
) -> tuple[Tensor, Tensor]:
  some = reduce_any(greater(finished.scores, -INF / 2), reduced_dim=search.beam)
  scores = where(
    some,
    finished.scores,
    divide(alive.scores, search.penalty(steps)),
    alive.scores.shape,
  )
  return where(some, finished.ids, alive.ids, alive.ids.shape), scores
