"""Trains, and shows at once what the model has learned."""

from __future__ import annotations

from .context import prepare
from .decoding import Decoder
from .evaluate import evaluators_of
from .features import ENCODER_DECODER
from .perplexity import perplexities_of
from .settings import Settings
from .train import train_to_the_end

EXAMPLES = 10


def train_and_evaluate(settings: Settings) -> None:
  """Trains to the last step, then evaluates and prints.

  A translation model translates the split: BLEU, exact matches and some
  examples. Other models are scored: perplexity per token and per word. A run
  that was stopped before its last step is not evaluated.
  """
  context = prepare(settings)
  if not train_to_the_end(context):
    return
  step = int(context.program.step)
  if settings.model_type != ENCODER_DECODER:
    for perplexity in perplexities_of(context):
      perplexity.evaluate(step)
    return
  for evaluator in evaluators_of(context, Decoder(context)):
    found = evaluator.evaluate(step)
    if context.program.processes.is_first:
      print(found.examples(EXAMPLES))
