"""From text or ids to the fixed-length examples that a trainer asked for."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from .dataset_fn import OnPass, Request, require_examples
from .encode import encode_windows
from .language_model import delimited_length, join_with_eos
from .packing import WINDOW, pack_windows
from .pad import pad_windows
from .shuffle import repeat_shuffled
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
  vocabulary = request.vocabulary

  def encode(examples: tf.data.Dataset) -> tf.data.Dataset:
    return encode_windows(examples, vocabulary, recipe.window)

  return _passes(examples, encode, request, recipe)


def from_ids(
  examples: tf.data.Dataset, request: Request, recipe: Recipe
) -> tf.data.Dataset:
  """Rows from one pass over dictionaries of id vectors; see `from_text`."""
  return _passes(
    examples, lambda e: ids_windows(e, recipe.window), request, recipe
  )


def _passes(
  examples: tf.data.Dataset,
  to_windows: Callable[[tf.data.Dataset], tf.data.Dataset],
  request: Request,
  recipe: Recipe,
) -> tf.data.Dataset:
  require_examples(examples, request.name)
  if not request.training:
    return from_windows(to_windows(examples), request, recipe)
  return repeat_shuffled(
    examples,
    recipe.shuffle_buffer_size,
    request.seed,
    lambda shuffled: from_windows(to_windows(shuffled), request, recipe),
  )


def from_windows(
  windows: tf.data.Dataset, request: Request, recipe: Recipe
) -> tf.data.Dataset:
  """Rows from windows of ids: one pass, or as many as the windows are."""
  lengths = request.lengths(windows.element_spec)
  trimmed = trim_windows(
    windows, lengths, name=request.name, on_pass=recipe.on_pass
  )
  if recipe.delimited_lm:
    trimmed = trimmed.map(join_with_eos)
    lengths = {"targets": delimited_length(lengths)}
  if recipe.pack and request.training:
    return pack_windows(trimmed, lengths)
  return pad_windows(trimmed, lengths)
