"""The data set function for raw text from any source."""

from collections.abc import Mapping

import gin
import tensorflow as tf

from .dataset_fn import OnPass, Request
from .packing import WINDOW
from .pipeline import Recipe, from_text
from .text_source import TextSource
from .trim import log_pass
from .vocabulary import Vocabularies


@gin.configurable(module="mesh_tf2.transformer.dataset")
def text_dataset(  # noqa: PLR0913  names that gin files bind
  dataset_split: str,
  sequence_length: Mapping[str, int],
  vocabulary: Vocabularies,
  seed: int = 0,
  shard: tuple[int, int] = (1, 0),
  *,
  source: TextSource = gin.REQUIRED,
  pack: bool = True,
  shuffle_buffer_size: int = 100_000,
  window: int = WINDOW,
  delimited_lm: bool = False,
  on_pass: OnPass = log_pass,
) -> tf.data.Dataset:
  """Encodes, trims, packs and shuffles the text of `source`; see `DatasetFn`.

  Args:
    dataset_split: "train", or a split to go through once.
    sequence_length: tokens per row of `inputs` and `targets`.
    vocabulary: a vocabulary, or a pair for inputs and targets.
    seed: of the order of training examples.
    shard: (number of shards, index).
    source: where the text is: `@TextPairFiles()`, `@TfdsText()`, ...
    pack: several training examples per row.
    shuffle_buffer_size: training examples that are shuffled together.
    window: training examples that packing chooses from.
    delimited_lm: joins inputs and targets for a language model.
    on_pass: gets the number of truncated examples of each pass.

  Returns:
    A dataset of dictionaries of int32 vectors.

  Raises:
    ValueError: if the split is unknown or empty.
    FileNotFoundError: if a file of the source is missing.
  """
  request = Request(dataset_split, sequence_length, vocabulary, seed, shard)
  file_seed = seed if request.training else None
  examples = source.examples(dataset_split, shard=shard, seed=file_seed)
  recipe = Recipe(pack, window, shuffle_buffer_size, delimited_lm, on_pass)
  return from_text(examples, request, recipe)
