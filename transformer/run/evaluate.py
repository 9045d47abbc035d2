"""Translates a split and holds the translations against the references."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import gin
import numpy as np
import sacrebleu

from mesh_tf2.data.text_source import TextSource, plain_text
from mesh_tf2.data.vocabulary import inputs_vocabulary, targets_vocabulary

from .checkpoint_steps import restored_checkpoints
from .context import Context, prepare
from .decoding import Decoder
from .evaluation_data import evaluation_dataset
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
  evaluator = Evaluator(context)
  for step in restored_checkpoints(context, evaluator.build):
    print(f"step {step}\n{evaluator.evaluate(step)}")


class Evaluator:
  """Translates a split with the variables that the program has at the time."""

  def __init__(self, context: Context) -> None:
    self._context = context
    self._decoder = Decoder(context)
    self._pairs = eval_model(context)
    self._results = Results(context.settings)

  def build(self) -> None:
    """Makes the variables that translating needs."""
    self._decoder.build()

  def evaluate(self, step: int) -> Translations:
    """Translates, scores, and writes files and curves."""
    pairs = self._pairs
    ids = pairs.ids or self._decoder.encode(pairs.inputs)
    predictions = self._decoder.decode(ids)
    bleu = sacrebleu.BLEU()
    found = bleu.corpus_score(predictions, [pairs.references])
    exact = sum(map(str.__eq__, predictions, pairs.references))
    translations = Translations(
      pairs, predictions, found.score, str(bleu.get_signature()), exact
    )
    if self._context.settings.evaluation.write_examples:
      self._results.write_lines("inputs", pairs.inputs)
      self._results.write_lines("targets", pairs.references)
      self._results.write_lines(f"{step}_predictions", predictions)
    self._results.write_metrics(step, translations.metrics())
    return translations


@gin.configurable(module=MODULE)
def eval_model(context: Context, source: TextSource | None = None) -> Pairs:
  """The examples of an evaluation.

  Args:
    context: program, model and settings.
    source: where the text is: the inputs and references are taken from it as
      they are. Without it they are decoded from what `run.eval_dataset_fn`
      yields, and then a reference is no longer than a row, and holds nothing
      that the vocabulary cannot express.

  Raises:
    ValueError: the split is missing or empty.
  """
  settings = context.settings
  split = settings.evaluation.split
  if source is not None:
    texts = plain_text(source, split)
    return Pairs([x for x, _ in texts], [y for _, y in texts])
  dataset = evaluation_dataset(settings)
  check_features(dataset.element_spec, settings.model_type)
  read, write = (
    pick(settings.vocabulary)
    for pick in (inputs_vocabulary, targets_vocabulary)
  )
  examples = list(dataset.as_numpy_iterator())
  ids = [x["inputs"][: np.count_nonzero(x["inputs"])] for x in examples]
  return Pairs(
    [read.decode(row) for row in ids],
    [write.decode(x["targets"]) for x in examples],
    ids,
  )
