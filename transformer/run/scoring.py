"""How likely a model finds the targets of a split, example by example."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping

import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.data.batch import evaluation_batches
from mesh_tf2.data.vocabulary import Vocabulary, targets_vocabulary

from ..model.loss import scored_tokens
from .context import Context
from .features import (
  check_features,
  import_features,
  known_features,
  model_arguments,
)


@dataclasses.dataclass(frozen=True)
class Score:
  """Sums over the examples of a split; padding counts nowhere.

  Attributes:
    examples: how many there are.
    tokens: targets that were predicted, ends of sequences among them.
    words: what white space separates, and the ends of sequences.
    correct: tokens that the model finds the likeliest.
    whole: examples of which all tokens are correct.
    neg_log_likelihood: of all tokens, in nats.
  """

  examples: int = 0
  tokens: int = 0
  words: int = 0
  correct: int = 0
  whole: int = 0
  neg_log_likelihood: float = 0.0

  def __add__(self, other: Score) -> Score:
    mine, its = dataclasses.astuple(self), dataclasses.astuple(other)
    return Score(*(a + b for a, b in zip(mine, its, strict=True)))

  def perplexity(self, count: int) -> float:
    """The perplexity per one of `count` tokens or words."""
    try:
      return math.exp(self.neg_log_likelihood / count)
    except OverflowError:
      return math.inf

  def metrics(self) -> dict[str, float]:
    """Numbers for people and curves, by name."""
    return {
      "perplexity_per_token": self.perplexity(self.tokens),
      "perplexity_per_word": self.perplexity(self.words),
      "neg_log_perplexity": -self.neg_log_likelihood / self.tokens,
      "token_accuracy": self.correct / self.tokens,
      "sequence_accuracy": self.whole / self.examples,
      "num_eval_tokens": self.tokens,
    }


class Scorer:
  """Scores a split with the variables that the program has at the time.

  Args:
    context: program, model and settings.
    dataset: examples of fixed length, unpacked.

  Raises:
    ValueError: the data set is not for this type of model.
  """

  def __init__(self, context: Context, dataset: tf.data.Dataset) -> None:
    check_features(dataset.element_spec, context.settings.model_type)
    self._context = context
    self._dataset = known_features(dataset)
    self._vocabulary = targets_vocabulary(context.settings.vocabulary)
    self._score = context.program.function(self._graph)

  def build(self) -> None:
    """Makes the variables that scoring needs."""
    rows = [self._context.settings.batch_size]
    self._score.build(
      {
        name: tf.TensorSpec([*rows, *spec.shape], spec.dtype)
        for name, spec in self._dataset.element_spec.items()
      }
    )

  def score(self, max_batches: int | None = None) -> Score:
    """The score of the split, or of its first batches.

    Raises:
      ValueError: there is no token to predict.
    """
    settings = self._context.settings
    batches = evaluation_batches(self._dataset, settings.batch_size)
    total = Score()
    for batch, count in batches.take(
      max_batches or tf.data.INFINITE_CARDINALITY
    ):
      total += self._score_batch(batch, int(count))
    if not total.tokens:
      raise ValueError(
        f"split {settings.evaluation.split!r} has no token to predict"
      )
    return total

  def _score_batch(self, batch: Mapping[str, tf.Tensor], count: int) -> Score:
    found = {k: x.numpy() for k, x in self._score(batch).items()}
    targets = batch["targets"].numpy()[:count]
    scored, right = (
      found[name].reshape([-1, targets.shape[1]])[:count]
      for name in ("scored", "right")
    )
    losses = found["neg_log_likelihood"].reshape([-1])[:count]
    return Score(
      examples=count,
      tokens=int(scored.sum()),
      words=sum(
        num_words(row[mask], self._vocabulary)
        for row, mask in zip(targets, scored, strict=True)
      ),
      correct=int(right.sum()),
      whole=int((right.sum(axis=1) == scored.sum(axis=1)).sum()),
      # One after the other in double precision: the sum is then the same for
      # every batch size.
      neg_log_likelihood=math.fsum(losses.tolist()),
    )

  def _graph(
    self, mesh: mtf.Mesh, features: Mapping[str, tf.Tensor]
  ) -> dict[str, mtf.Tensor]:
    """Loss (batch), what is scored and what is right (batch, length)."""
    context = self._context
    outer = context.settings.machine.outer_batch
    tensors = import_features(mesh, features, outer)
    logits, _ = context.model.call_simple(
      compute_loss=False,
      mode="eval",
      variable_dtype=context.variable_dtype,
      **model_arguments(tensors, context.settings.model_type),
    )
    targets = tensors["targets"]
    *batch, _ = targets.shape.dims
    (vocab,) = (logits.shape - targets.shape).dims
    scored = scored_tokens(
      getattr(context.model, "decoder", context.model), targets, tf.float32
    )
    loss = mtf.layers.softmax_cross_entropy_with_logits(logits, targets, vocab)
    likeliest = mtf.argmax(logits, vocab)
    return {
      "neg_log_likelihood": mtf.einsum([loss, scored], batch),
      "scored": mtf.greater(scored, 0.0),
      "right": mtf.logical_and(
        mtf.greater(scored, 0.0), mtf.equal(likeliest, targets)
      ),
    }


def num_words(ids: Iterable[int], vocabulary: Vocabulary) -> int:
  """How many words a row of ids spells, its ends of sequences counted too."""
  sequence: list[int] = []
  count = 0
  for each in map(int, ids):
    if each == vocabulary.eos_id:
      count += 1 + len(vocabulary.decode(sequence).split())
      sequence = []
    elif each > 0:
      sequence.append(each)
  return count + len(vocabulary.decode(sequence).split())
