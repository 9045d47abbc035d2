"""What an evaluation needs to know about a data set."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gin
import tensorflow as tf

from .dataset_fn import Request
from .pipeline import Recipe, from_text
from .text_source import TextSource, plain_text
from .vocabulary import Vocabularies

MetricFn = Callable[[Sequence[Any], Sequence[Any]], Mapping[str, float]]


def keep_text(
  text: str, *, example: Any = None, is_target: bool = False
) -> str:
  """The text itself: what most data sets do with a decoded output."""
  del example, is_target
  return text


class EvalDataset(NamedTuple):
  """One data set to evaluate on.

  Attributes:
    name: for file names and summaries.
    dataset_fn: called with `sequence_length=`: one pass, in order, unpacked,
      as dictionaries of fixed-length int32 vectors.
    postprocess_fn: `(text, example=..., is_target=...)` to what metrics take.
    metric_fns: `(targets, predictions)` to a dictionary of numbers.
    text_fn: the (inputs, targets) texts, in the same order; None if the data
      set has no text.
  """

  name: str
  dataset_fn: Callable[..., tf.data.Dataset]
  postprocess_fn: Callable[..., Any] = keep_text
  metric_fns: Sequence[MetricFn] = ()
  text_fn: Callable[[], list[tuple[str, str]]] | None = None


@gin.configurable(module="mesh_tf2.transformer.dataset")
def text_eval_datasets(
  sequence_length: Mapping[str, int],
  vocabulary: Vocabularies,
  dataset_split: str,
  *,
  source: TextSource = gin.REQUIRED,
  name: str = "text",
  metric_fns: Sequence[MetricFn] = (),
) -> list[EvalDataset]:
  """The text of `source`, for `run.eval_dataset_fn` in a gin file.

  Args:
    sequence_length: tokens per row of `inputs` and `targets`, unless
      `dataset_fn` is called with others.
    vocabulary: a vocabulary, or a pair for inputs and targets.
    dataset_split: which split to go through.
    source: where the text is.
    name: for file names and summaries.
    metric_fns: `(targets, predictions)` to a dictionary of numbers.

  Returns:
    A list of one.
  """

  def rows(
    sequence_length: Mapping[str, int] = sequence_length,
  ) -> tf.data.Dataset:
    request = Request(dataset_split, sequence_length, vocabulary, one_pass=True)
    return from_text(source.examples(dataset_split), request, Recipe())

  def texts() -> list[tuple[str, str]]:
    return plain_text(source, dataset_split)

  return [EvalDataset(name, rows, keep_text, metric_fns, texts)]
