"""Datasets of lines by the original's names, and rows from lines with a tab."""

from collections.abc import Callable, Mapping, Sequence

import gin
import tensorflow as tf

from .dataset_fn import OnPass, Request, require_examples
from .encode import encode_windows
from .packing import WINDOW
from .pipeline import Recipe, from_windows
from .shuffle import repeat_shuffled, shuffled
from .text_lines import text_lines
from .text_pair import split_at_tab
from .trim import log_pass
from .vocabulary import Vocabularies
from .window import Window

_MODULE = "mesh_tf2.transformer.dataset"


@gin.configurable(module=_MODULE)
def sample_from_text_line_datasets(
  glob_weight_list: Sequence[tuple[str, float]],
  shuffle_buffer_size: int = 100_000,
  prefetch: int = 1000,
  seed: int = 0,
) -> tf.data.Dataset:
  """A mixture of lines of several groups of files, without end.

  Args:
    glob_weight_list: (pattern, weight): files, and how often to draw from them.
    shuffle_buffer_size: lines of each group that are shuffled together.
    prefetch: lines to read ahead.
    seed: of the orders and of the draws.

  Returns:
    A dataset of scalar strings.

  Raises:
    FileNotFoundError: if a pattern matches nothing.
    ValueError: if all files of a group are empty.
  """
  groups, weights = [], []
  for number, (pattern, weight) in enumerate(glob_weight_list):
    lines = require_examples(text_lines(pattern), pattern)
    groups.append(_repeated(lines, shuffle_buffer_size, seed + number))
    weights.append(float(weight))
  shares = [weight / sum(weights) for weight in weights]
  mixture = tf.data.Dataset.sample_from_datasets(groups, shares, seed=seed)
  return mixture.prefetch(prefetch)


@gin.configurable(module=_MODULE)
def make_text_line_dataset(
  glob: str = gin.REQUIRED, seed: int = 0
) -> tf.data.Dataset:
  """Lines of the files that a pattern matches, shuffled, without end."""
  return sample_from_text_line_datasets([(glob, 1.0)], seed=seed)


@gin.configurable(module=_MODULE)
def simple_text_line_dataset(
  glob: str = gin.REQUIRED, shuffle_buffer_size: int = 100_000, seed: int = 0
) -> tf.data.Dataset:
  """Lines of the files that a pattern matches, shuffled, once.

  Gone through again, they come in the same order.
  """
  blocks = _blocks(text_lines(glob), shuffle_buffer_size)
  return _lines(shuffled(blocks, shuffle_buffer_size, seed))


def _repeated(
  lines: tf.data.Dataset, buffer_size: int, seed: int
) -> tf.data.Dataset:
  blocks = _blocks(lines, buffer_size)
  return repeat_shuffled(blocks, buffer_size, seed, _lines)


def _blocks(lines: tf.data.Dataset, size: int) -> tf.data.Dataset:
  return lines.map(lambda line: {"line": line}).batch(size)


def _lines(batches: tf.data.Dataset) -> tf.data.Dataset:
  return batches.unbatch().map(lambda example: example["line"])


@gin.configurable(module=_MODULE)
def packed_parallel_tsv_dataset(  # noqa: PLR0913  names that gin files bind
  dataset: tf.data.Dataset | Callable[..., tf.data.Dataset] = gin.REQUIRED,
  dataset_split: str = gin.REQUIRED,
  batch_size: int | None = None,
  sequence_length: Mapping[str, int] = gin.REQUIRED,
  vocabulary: Vocabularies = gin.REQUIRED,
  append_eos: bool = True,
  eos_id: int = 1,
  max_encoded_len: int = 0,
  *,
  seed: int = 0,
  shard: tuple[int, int] = (1, 0),
  pack: bool = True,
  window: int = WINDOW,
  on_pass: OnPass = log_pass,
) -> tf.data.Dataset:
  """Rows from lines `inputs TAB targets`; see `DatasetFn`.

  Args:
    dataset: lines, shuffled already, or a function that is called with `seed=`
      and returns them. Its order is kept.
    dataset_split: "train", or a split to go through once.
    batch_size: accepted for the original's callers; batching comes later.
    sequence_length: tokens per row of `inputs` and `targets`.
    vocabulary: a vocabulary, or a pair for inputs and targets.
    append_eos: ends inputs and targets with EOS.
    eos_id: the id of EOS.
    max_encoded_len: drops examples whose inputs or targets have more ids than
      this, EOS included; 0 keeps all.
    seed: for `dataset`, if it is a function.
    shard: (number of shards, index).
    pack: several training examples per row.
    window: training examples that packing chooses from.
    on_pass: gets the number of truncated examples of each pass.

  Returns:
    A dataset of dictionaries of int32 vectors.

  Raises:
    ValueError: if there is no line, or no end of lines that should be gone
      through once.
  """
  del batch_size
  request = Request(dataset_split, sequence_length, vocabulary, seed, shard)
  lines = dataset(seed=seed) if callable(dataset) else dataset
  if (
    not request.training and lines.cardinality() == tf.data.INFINITE_CARDINALITY
  ):
    raise ValueError(
      f"packed_parallel_tsv_dataset: {request.name} is gone through once, and "
      "its lines have no end; use simple_text_line_dataset"
    )
  lines = require_examples(lines.shard(*shard), request.name)
  windows = encode_windows(
    lines.map(split_at_tab).batch(window),
    vocabulary,
    eos_id=eos_id if append_eos else None,
  )
  if max_encoded_len:
    windows = windows.map(lambda w: _drop_long(w, max_encoded_len))
    windows = windows.filter(lambda w: w["targets"].nrows() > 0)
  rows = from_windows(windows, request, Recipe(pack, window, on_pass=on_pass))
  return rows.repeat() if request.training else rows


def _drop_long(window: Window, most: int) -> Window:
  sizes = [ids.row_lengths() for ids in window.values()]
  kept = tf.reduce_max(tf.stack(sizes), axis=0) <= most
  return {key: tf.ragged.boolean_mask(ids, kept) for key, ids in window.items()}
