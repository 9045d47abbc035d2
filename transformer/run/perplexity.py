"""The perplexity of a split, with the targets given."""

from __future__ import annotations

from mesh_tf2.data.eval_dataset import EvalDataset

from .checkpoint_steps import restored_checkpoints
from .context import Context, prepare
from .evaluation_data import evaluation_tasks
from .results import Results
from .scoring import Score, Scorer
from .settings import Settings


def perplexity_of_checkpoints(settings: Settings) -> None:
  """Scores the split with each of the checkpoints that are asked for."""
  context = prepare(settings)
  perplexities = perplexities_of(context)

  def build() -> None:
    for perplexity in perplexities:
      perplexity.build()

  for step in restored_checkpoints(context, build):
    for perplexity in perplexities:
      perplexity.evaluate(step)


def perplexities_of(context: Context) -> list[Perplexity]:
  """One for each data set to evaluate on."""
  tasks = evaluation_tasks(context.settings)
  return [Perplexity(context, task) for task in tasks]


class Perplexity:
  """Scores a data set with the variables that the program has at the time.

  Args:
    context: program, model and settings.
    task: the data set.
  """

  def __init__(self, context: Context, task: EvalDataset) -> None:
    settings = context.settings
    self._max_batches = settings.evaluation.max_batches
    self._title = f"{task.name}, split {settings.evaluation.split!r}"
    self._scorer = Scorer(
      context, task.dataset_fn(sequence_length=settings.sequence_length)
    )
    self._speaks = context.program.processes.is_first
    self._results = Results(settings, task.name, self._speaks)

  def build(self) -> None:
    """Makes the variables that scoring needs."""
    self._scorer.build()

  def evaluate(self, step: int) -> Score:
    """Scores, prints the score, and adds it to the curves."""
    score = self._scorer.score(self._max_batches)
    self._results.write_metrics(step, score.metrics())
    if self._speaks:
      print(f"{self._title}, step {step}: {describe(score)}")
    return score


def describe(score: Score) -> str:
  """Two lines for people."""
  return (
    f"perplexity {score.perplexity(score.tokens):.3f} per token, "
    f"{score.perplexity(score.words):.3f} per word; "
    f"{score.correct / score.tokens:.1%} of the tokens right\n"
    f"({score.examples:,} examples, {score.tokens:,} tokens and "
    f"{score.words:,} words, ends of sequences counted)"
  )
