"""From text or ids to the fixed-length examples that a trainer asked for."""

import dataclasses

import tensorflow as tf

from .dataset_fn import OnPass, Request, require_examples
from .encode import encode_windows
from .language_model import delimited_length, join_with_eos
from .packing import WINDOW, pack_windows
from .pad import pad_windows
from .trim import log_pass, trim_windows
from .window import ids_windows


@dataclasses.dataclass(frozen=True)
class Recipe:
  """How examples become rows.

  Attributes:
    pack: several training examples per row. Other splits are never packed.
    window: training examples that packing chooses from.
    shuffle_buffer_size: training examples that shuffling chooses from; as many
      as there are makes every order equally likely.
    delimited_lm: joins inputs and targets to `inputs EOS targets EOS`, as
      `targets` that are as long as both may be.
    on_pass: is told at the end of each pass how many examples were truncated.
  """

  pack: bool = True
  window: int = WINDOW
  shuffle_buffer_size: int = 100_000
  delimited_lm: bool = False
  on_pass: OnPass = log_pass


def from_text(
  examples: tf.data.Dataset, request: Request, recipe: Recipe
) -> tf.data.Dataset:
  """Rows from one pass over text examples.

  Args:
    examples: dictionaries of scalar strings, this shard's only.
    request: what the trainer wants.
    recipe: how to make it.

  Returns:
    A dataset as `DatasetFn` promises.

  Raises:
    ValueError: if there is no example, or no vocabulary.
  """
  if request.vocabulary is None:
    raise ValueError("text needs a vocabulary, got None; bind run.vocabulary")
  examples = _shuffled(examples, request, recipe)
  windows = encode_windows(examples, request.vocabulary, recipe.window)
  return from_windows(windows, request, recipe)


def from_ids(
  examples: tf.data.Dataset, request: Request, recipe: Recipe
) -> tf.data.Dataset:
  """Rows from one pass over dictionaries of id vectors; see `from_text`."""
  examples = _shuffled(examples, request, recipe)
  return from_windows(ids_windows(examples, recipe.window), request, recipe)


def from_windows(
  windows: tf.data.Dataset, request: Request, recipe: Recipe
) -> tf.data.Dataset:
  """Rows from one pass over windows of ids, shuffled already."""
  lengths = request.lengths(windows.element_spec)
  trimmed = trim_windows(
    windows, lengths, name=request.name, on_pass=recipe.on_pass
  )
  if recipe.delimited_lm:
    trimmed = trimmed.map(join_with_eos)
    lengths = {"targets": delimited_length(lengths)}
  if recipe.pack and request.training:
    rows = pack_windows(trimmed, lengths)
  else:
    rows = pad_windows(trimmed, lengths)
  return rows.repeat() if request.training else rows


def _shuffled(
  examples: tf.data.Dataset, request: Request, recipe: Recipe
) -> tf.data.Dataset:
  require_examples(examples, request.name)
  if not request.training:
    return examples
  return examples.shuffle(recipe.shuffle_buffer_size, seed=request.seed)
