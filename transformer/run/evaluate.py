"""Translates a split and holds the translations against the references."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import gin
import numpy as np
import sacrebleu

from mesh_tf2.data.eval_dataset import EvalDataset
from mesh_tf2.data.text_source import TextSource, plain_text
from mesh_tf2.data.vocabulary import inputs_vocabulary, targets_vocabulary

from .checkpoint_steps import restored_checkpoints
from .context import Context, prepare
from .decoding import Decoder
from .evaluation_data import evaluation_tasks
from .features import check_features
from .mesh_shapes import MODULE
from .results import Results
from .settings import Settings


@dataclasses.dataclass(frozen=True)
class Pairs:
  """A split to translate, an element for each example.

  Attributes:
    inputs: texts.
    references: texts.
    ids: of the inputs, as the model is given them; None to encode `inputs`.
  """

  inputs: Sequence[str]
  references: Sequence[str]
  ids: Sequence[Sequence[int]] | None = None


@dataclasses.dataclass(frozen=True)
class Translations:
  """What became of a split.

  Attributes:
    pairs: what was translated, and how it should have been.
    predictions: the translations.
    bleu: from 0 to 100.
    signature: says how the number was computed, so that others can do so.
    exact: how many predictions are equal to their references.
  """

  pairs: Pairs
  predictions: Sequence[str]
  bleu: float
  signature: str
  exact: int

  def __str__(self) -> str:
    count = len(self.predictions)
    return (
      f"BLEU {self.bleu:.2f} ({self.signature})\n"
      f"exact matches {self.exact / count:.1%} ({self.exact} of {count})"
    )

  def metrics(self) -> dict[str, float]:
    """Numbers for curves, by name."""
    return {
      "bleu": self.bleu,
      "exact_match": self.exact / len(self.predictions),
    }

  def examples(self, count: int) -> str:
    """Some inputs with their translations, from all over the split."""
    size = len(self.predictions)
    chosen = np.linspace(0, size - 1, min(count, size)).astype(int)
    return "\n".join(
      f"{self.pairs.inputs[i]}\n  -> {self.predictions[i]}" for i in chosen
    )


def evaluate_checkpoints(settings: Settings) -> None:
  """Translates the split with each of the checkpoints that are asked for."""
  context = prepare(settings)
  decoder = Decoder(context)
  evaluators = evaluators_of(context, decoder)
  for step in restored_checkpoints(context, decoder.build):
    for evaluator in evaluators:
      evaluator.evaluate(step)


def evaluators_of(context: Context, decoder: Decoder) -> list[Evaluator]:
  """One for each data set to evaluate on."""
  tasks = evaluation_tasks(context.settings)
  return [Evaluator(context, decoder, task) for task in tasks]


class Evaluator:
  """Translates a data set with the variables that the program has at the time.

  Args:
    context: program, model and settings.
    decoder: of the model.
    task: the data set.
  """

  def __init__(
    self, context: Context, decoder: Decoder, task: EvalDataset
  ) -> None:
    self._settings = context.settings
    self._speaks = context.program.processes.is_first
    self._decoder = decoder
    self._task = task
    self._pairs = eval_model(context.settings, task)
    self._results = Results(
      context.settings, task.name, context.program.processes.is_first
    )

  def evaluate(self, step: int) -> Translations:
    """Translates, scores, prints the scores, writes files and curves."""
    pairs = self._pairs
    ids = pairs.ids or self._decoder.encode(pairs.inputs)
    predictions = self._decoder.decode(ids)
    bleu = sacrebleu.BLEU()
    score = bleu.corpus_score(predictions, [pairs.references]).score
    exact = sum(map(str.__eq__, predictions, pairs.references))
    found = Translations(
      pairs, predictions, score, str(bleu.get_signature()), exact
    )
    if self._settings.evaluation.write_examples:
      self._results.write_lines("inputs", pairs.inputs)
      self._results.write_lines("targets", pairs.references)
      self._results.write_lines(f"{step}_predictions", predictions)
    more = self._more_metrics(found)
    self._results.write_metrics(step, {**found.metrics(), **more})
    if self._speaks:
      split = self._settings.evaluation.split
      print(f"{self._task.name}, split {split!r}, step {step}: {found}")
      for name, value in more.items():
        print(f"{name} {value:.4g}")
    return found

  def _more_metrics(self, found: Translations) -> dict[str, float]:
    """What the data set's own functions find."""
    process = self._task.postprocess_fn
    targets = [process(x, is_target=True) for x in found.pairs.references]
    predictions = [process(x, is_target=False) for x in found.predictions]
    values: dict[str, float] = {}
    for metric in self._task.metric_fns:
      values |= metric(targets, predictions)
    return values


@gin.configurable(module=MODULE)
def eval_model(
  settings: Settings, task: EvalDataset, source: TextSource | None = None
) -> Pairs:
  """The examples of an evaluation.

  Args:
    settings: name the split and the vocabulary.
    task: the data set.
    source: where the text is, if the data set does not have it: inputs and
      references are taken from it as they are. Without any text they are made
      of ids, and then a reference is no longer than a row, and holds nothing
      that the vocabulary cannot express.

  Raises:
    ValueError: the split is missing or empty.
  """
  if task.text_fn is not None:
    texts = task.text_fn()
  elif source is not None:
    texts = plain_text(source, settings.evaluation.split)
  else:
    return _pairs_of_ids(settings, task)
  return Pairs([x for x, _ in texts], [y for _, y in texts])


def _pairs_of_ids(settings: Settings, task: EvalDataset) -> Pairs:
  dataset = task.dataset_fn(sequence_length=settings.sequence_length)
  check_features(dataset.element_spec, settings.model_type)
  read = inputs_vocabulary(settings.vocabulary)
  write = targets_vocabulary(settings.vocabulary)
  examples = list(dataset.as_numpy_iterator())
  ids = [x["inputs"][: np.count_nonzero(x["inputs"])] for x in examples]
  return Pairs(
    [read.decode(row) for row in ids],
    [write.decode(x["targets"]) for x in examples],
    ids,
  )
