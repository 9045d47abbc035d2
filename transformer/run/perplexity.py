"""The perplexity of a split, with the targets given."""

from __future__ import annotations

from .checkpoint_steps import restored_checkpoints
from .context import Context, prepare
from .evaluation_data import evaluation_dataset
from .results import Results
from .scoring import Score, Scorer
from .settings import Settings


def perplexity_of_checkpoints(settings: Settings) -> None:
  """Scores the split with each of the checkpoints that are asked for."""
  context = prepare(settings)
  perplexity = Perplexity(context)
  for step in restored_checkpoints(context, perplexity.build):
    print(f"step {step}\n{describe(perplexity.evaluate(step))}")


class Perplexity:
  """Scores the split with the variables that the program has at the time."""

  def __init__(self, context: Context) -> None:
    self._settings = context.settings
    self._scorer = Scorer(context, evaluation_dataset(context.settings))
    self._results = Results(context.settings)

  def build(self) -> None:
    """Makes the variables that scoring needs."""
    self._scorer.build()

  def evaluate(self, step: int) -> Score:
    """Scores, and writes curves."""
    evaluation = self._settings.evaluation
    score = self._scorer.score(evaluation.max_batches)
    self._results.write_metrics(step, score.metrics())
    return score


def describe(score: Score) -> str:
  """A line or two for people."""
  return (
    f"perplexity {score.perplexity(score.tokens):.3f} per token, "
    f"{score.perplexity(score.words):.3f} per word; "
    f"{score.correct / score.tokens:.1%} of the tokens right\n"
    f"({score.examples:,} examples, {score.tokens:,} tokens and "
    f"{score.words:,} words, ends of sequences counted)"
  )
