"""TFDS data sets that are on disk, of text or of ids, by name.

`wmt14_translate/de-en`, `wmt14_translate/fr-en`, `lm1b`, and whatever else has
features of this kind.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import gin
import tensorflow as tf
import tensorflow_datasets as tfds

from .dataset_fn import OnPass, Request
from .packing import WINDOW
from .pipeline import Recipe, from_ids, from_text
from .text_source import TextSource
from .tfds_on_disk import PreparedDataset, find_prepared
from .trim import log_pass
from .vocabulary import EOS_ID, Vocabularies

_MODULE = "mesh_tf2.transformer.dataset"


@gin.configurable(module=_MODULE)
@dataclasses.dataclass(frozen=True)
class TfdsText(TextSource):
  """Text of a TFDS data set.

  Attributes:
    dataset_name: as in `tfds.load`, for example `wmt14_translate/de-en`.
    inputs: feature that is the input, for example `en`; None for the first of
      the data set's supervised keys.
    targets: feature that is the target; None for the second of them.
    text2self: language model: targets alone.
    data_dir: where TFDS keeps data sets; None for TFDS's own default.
    splits: names of splits where the data set has others, for example
      `{"validation": "test[:5%]"}`.
  """

  dataset_name: str
  inputs: str | None = None
  targets: str | None = None
  text2self: bool = False
  data_dir: str | None = None
  splits: Mapping[str, str] | None = None

  def examples(
    self,
    dataset_split: str,
    *,
    shard: tuple[int, int] = (1, 0),
    seed: int | None = None,
  ) -> tf.data.Dataset:
    """One pass over a split; with a seed, its files in any order.

    Raises:
      FileNotFoundError: if the data set is not on disk; says how to prepare it.
      ValueError: if it lacks the split or a feature, or holds no text.
    """
    return self._load(dataset_split, tf.string, shard, seed)

  def ids(
    self, dataset_split: str, *, shard: tuple[int, int], seed: int | None
  ) -> tf.data.Dataset:
    """The same for a data set whose features are vectors of ids."""
    return self._load(dataset_split, tf.int64, shard, seed)

  def _load(
    self,
    dataset_split: str,
    dtype: tf.DType,
    shard: tuple[int, int],
    seed: int | None,
  ) -> tf.data.Dataset:
    found = find_prepared(self.dataset_name, self.data_dir)
    info = _info(found)
    keys = self._features(info)
    _check_dtype(info, keys, dtype)
    split = (self.splits or {}).get(dataset_split, dataset_split)
    _check_split(info, split)
    shards, index = shard
    dataset = tfds.load(
      found.name,
      split=tfds.even_splits(split, shards)[index],
      data_dir=found.data_dir,
      download=False,
      try_gcs=False,
      shuffle_files=seed is not None,
      read_config=tfds.ReadConfig(
        shuffle_seed=seed,
        # A new order in each pass would be another one after a restart.
        shuffle_reshuffle_each_iteration=False,
        # A cache would be saved with every iterator.
        try_autocache=False,
        skip_prefetch=True,
      ),
    )
    return dataset.map(
      lambda example: {ours: example[theirs] for ours, theirs in keys.items()}
    )

  def _features(self, info: Any) -> dict[str, str]:
    """Which of the data set's features are our inputs and targets."""
    supervised = info.supervised_keys or (None, None)
    keys: dict[str, Any] = {"targets": self.targets or supervised[1]}
    if not self.text2self:
      keys = {"inputs": self.inputs or supervised[0], **keys}
    for ours, theirs in keys.items():
      if theirs not in info.features:
        raise ValueError(
          f"{self.dataset_name}: feature {theirs!r} was wanted as {ours!r}; "
          f"the data set has {', '.join(map(repr, info.features))}"
        )
    return keys


def _info(found: PreparedDataset) -> Any:
  try:
    return tfds.builder(found.name, data_dir=found.data_dir, try_gcs=False).info
  except ValueError as error:
    raise ValueError(
      f"TFDS cannot read {found.name} in {found.data_dir}: {error} Data sets "
      "with a vocabulary of their own (`subwords...`) are no longer read by "
      "TFDS; prepare the one of plain text"
    ) from error


def _check_dtype(info: Any, keys: dict[str, str], dtype: tf.DType) -> None:
  for key in keys.values():
    found = tf.as_dtype(info.features[key].tf_dtype)
    if (found == tf.string) != (dtype == tf.string):
      wanted, way = ("text", "pretokenized_tfds_dataset")
      if dtype != tf.string:
        wanted, way = ("ids", "untokenized_tfds_dataset")
      raise ValueError(
        f"{info.full_name}: feature {key!r} has type {found.name}, where "
        f"{wanted} was wanted; read it with {way}"
      )


def _check_split(info: Any, split: str) -> None:
  try:
    empty = info.splits[split].num_examples == 0
  except (KeyError, ValueError) as error:
    raise ValueError(
      f"{info.full_name} has no split {split!r}; it has "
      f"{', '.join(map(repr, info.splits))}. Another can be named with "
      "`splits`, for example {'validation': 'test[:5%]'}"
    ) from error
  if empty:
    raise ValueError(f"{info.full_name}: split {split!r} has no example")


@gin.configurable(module=_MODULE)
def untokenized_tfds_dataset(  # noqa: PLR0913  names that gin files bind
  dataset_name: str = gin.REQUIRED,
  text2self: bool = gin.REQUIRED,
  tfds_data_dir: str | None = gin.REQUIRED,
  dataset_split: str = gin.REQUIRED,
  batch_size: int | None = None,
  sequence_length: Mapping[str, int] = gin.REQUIRED,
  vocabulary: Vocabularies = gin.REQUIRED,
  pack: bool = gin.REQUIRED,
  *,
  seed: int = 0,
  shard: tuple[int, int] = (1, 0),
  inputs: str | None = None,
  targets: str | None = None,
  splits: Mapping[str, str] | None = None,
  shuffle_buffer_size: int = 100_000,
  window: int = WINDOW,
  delimited_lm: bool = False,
  on_pass: OnPass = log_pass,
) -> tf.data.Dataset:
  """Reads and encodes text of a TFDS data set; see `DatasetFn`.

  Args:
    dataset_name: as in `tfds.load`.
    text2self: language model: targets alone.
    tfds_data_dir: where TFDS keeps data sets; None for its own default.
    dataset_split: "train", or a split to go through once.
    batch_size: accepted for the original's callers; batching comes later.
    sequence_length: tokens per row of `inputs` and `targets`.
    vocabulary: a vocabulary, or a pair for inputs and targets.
    pack: several training examples per row.
    seed: of the order of training examples.
    shard: (number of shards, index).
    inputs: feature that is the input, for example `en`; None for the first of
      the data set's supervised keys.
    targets: feature that is the target; None for the second of them.
    splits: names of splits where the data set has others.
    shuffle_buffer_size: training examples that are shuffled together.
    window: training examples that packing chooses from.
    delimited_lm: joins inputs and targets for a language model.
    on_pass: gets the number of truncated examples of each pass.

  Returns:
    A dataset of dictionaries of int32 vectors.

  Raises:
    FileNotFoundError: if the data set is not on disk; says how to prepare it.
    ValueError: if it lacks the split or a feature, or holds no text.
  """
  del batch_size
  request = Request(dataset_split, sequence_length, vocabulary, seed, shard)
  source = TfdsText(
    dataset_name, inputs, targets, text2self, tfds_data_dir, splits
  )
  file_seed = seed if request.training else None
  examples = source.examples(dataset_split, shard=shard, seed=file_seed)
  recipe = Recipe(pack, window, shuffle_buffer_size, delimited_lm, on_pass)
  return from_text(examples, request, recipe)


@gin.configurable(module=_MODULE)
def pretokenized_tfds_dataset(  # noqa: PLR0913  names that gin files bind
  dataset_name: str = gin.REQUIRED,
  text2self: bool = gin.REQUIRED,
  tfds_data_dir: str | None = gin.REQUIRED,
  dataset_split: str = gin.REQUIRED,
  batch_size: int | None = None,
  sequence_length: Mapping[str, int] = gin.REQUIRED,
  vocabulary: Vocabularies | None = None,
  *,
  seed: int = 0,
  shard: tuple[int, int] = (1, 0),
  inputs: str | None = None,
  targets: str | None = None,
  splits: Mapping[str, str] | None = None,
  pack: bool = True,
  shuffle_buffer_size: int = 100_000,
  window: int = WINDOW,
  on_pass: OnPass = log_pass,
) -> tf.data.Dataset:
  """Reads a TFDS data set whose features are vectors of ids; see `DatasetFn`.

  The ids are raised by 1, which makes room for EOS beside padding, and EOS is
  appended. Arguments and errors are those of `untokenized_tfds_dataset`;
  `vocabulary` is not used.
  """
  del batch_size
  request = Request(dataset_split, sequence_length, vocabulary, seed, shard)
  source = TfdsText(
    dataset_name, inputs, targets, text2self, tfds_data_dir, splits
  )
  file_seed = seed if request.training else None
  examples = source.ids(dataset_split, shard=shard, seed=file_seed)
  recipe = Recipe(pack, window, shuffle_buffer_size, on_pass=on_pass)
  return from_ids(examples.map(_shift_and_end), request, recipe)


def _shift_and_end(example: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
  return {
    key: tf.concat([tf.cast(ids, tf.int32) + 1, [EOS_ID]], axis=0)
    for key, ids in example.items()
  }
