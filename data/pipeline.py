"""From text or ids to the fixed-length examples that a trainer asked for."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from .dataset_fn import OnPass, Request, require_examples
from .encode import encode_windows
from .language_model import delimited_length, join_with_eos
from .packing import WINDOW, pack_windows
from .pad import pad_windows
from .shuffle import Transform, block_size, repeat_shuffled
from .trim import log_pass, trim_windows
from .window import ids_windows


@dataclasses.dataclass(frozen=True)
class Recipe:
  """How examples become rows.

  Attributes:
    pack: several training examples per row. Other splits are never packed.
    window: training examples that packing chooses from.
    shuffle_buffer_size: training examples that are shuffled together; as many
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
  require_examples(examples, request.name)
  return _passes(
    examples.batch,
    lambda texts: encode_windows(texts, vocabulary),
    request,
    recipe,
  )


def from_ids(
  examples: tf.data.Dataset, request: Request, recipe: Recipe
) -> tf.data.Dataset:
  """Rows from one pass over dictionaries of id vectors; see `from_text`."""
  require_examples(examples, request.name)
  return _passes(
    lambda size: ids_windows(examples, size), lambda ids: ids, request, recipe
  )


def _passes(
  batched: Callable[[int], tf.data.Dataset],
  to_windows: Transform,
  request: Request,
  recipe: Recipe,
) -> tf.data.Dataset:
  def rows(batches: tf.data.Dataset) -> tf.data.Dataset:
    return from_windows(to_windows(batches), request, recipe)

  if not request.training:
    return rows(batched(recipe.window))
  size = block_size(recipe.shuffle_buffer_size, recipe.window)
  return repeat_shuffled(batched(size), recipe.window, request.seed, rows)


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
