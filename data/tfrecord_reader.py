"""TFRecord files of ids: `tf.train.Example` with int64 inputs and targets."""

from collections.abc import Mapping, Sequence

import gin
import tensorflow as tf

from .dataset_fn import OnPass, Request
from .packing import WINDOW
from .pipeline import Recipe, from_ids
from .trim import log_pass
from .vocabulary import EOS_ID, Vocabularies


def pretokenized_tfrecord_dataset(
  filenames: Sequence[str],
  text2self: bool,
  eos_included: bool,
  repeat: bool,
  batch_size: int | None,
  sequence_length: Mapping[str, int],
  vocab_shift: int = 0,
) -> tf.data.Dataset:
  """Packed rows from TFRecord files.

  Args:
    filenames: paths of the files.
    text2self: language model: reads `targets` alone.
    eos_included: whether the ids end with EOS already; otherwise it is added.
    repeat: goes through the files without end, shuffled; otherwise once.
    batch_size: accepted for the original's callers; batching comes later.
    sequence_length: tokens per row of `inputs` and `targets`.
    vocab_shift: is added to every id that is read.

  Returns:
    A dataset of dictionaries of int32 vectors; packed if it repeats.

  Raises:
    ValueError: if there is no example.
  """
  del batch_size
  split = "train" if repeat else "one pass"
  examples = _examples(filenames, text2self, eos_included, vocab_shift)
  return from_ids(examples, Request(split, sequence_length, None), Recipe())


@gin.configurable(module="mesh_tf2.transformer.dataset")
def pretokenized_t2t_dataset(  # noqa: PLR0913  names that gin files bind
  dataset_name: str = gin.REQUIRED,
  text2self: bool = False,
  data_dir: str = gin.REQUIRED,
  dataset_split: str = "train",
  batch_size: int | None = None,
  sequence_length: Mapping[str, int] = gin.REQUIRED,
  vocabulary: Vocabularies | None = None,
  eos_included: bool = True,
  vocab_shift: int = 0,
  *,
  seed: int = 0,
  shard: tuple[int, int] = (1, 0),
  pack: bool = True,
  shuffle_buffer_size: int = 100_000,
  window: int = WINDOW,
  on_pass: OnPass = log_pass,
) -> tf.data.Dataset:
  """Reads the TFRecord files of a Tensor2Tensor problem; see `DatasetFn`.

  Args:
    dataset_name: name of the problem, for example `translate_ende_wmt32k`.
    text2self: language model: reads `targets` alone.
    data_dir: directory of the files `<dataset_name>-<split>-*`.
    dataset_split: "train", or a split to go through once ("dev", "test").
    batch_size: accepted for the original's callers; batching comes later.
    sequence_length: tokens per row of `inputs` and `targets`.
    vocabulary: not used; the ids are there already.
    eos_included: whether the ids end with EOS already; otherwise it is added.
    vocab_shift: is added to every id that is read.
    seed: of the order of training examples.
    shard: (number of shards, index).
    pack: several training examples per row.
    shuffle_buffer_size: training examples that are shuffled together.
    window: training examples that packing chooses from.
    on_pass: gets the number of truncated examples of each pass.

  Returns:
    A dataset of dictionaries of int32 vectors.

  Raises:
    FileNotFoundError: if no file matches.
    ValueError: if there is no example.
  """
  del batch_size
  pattern = f"{data_dir.rstrip('/')}/{dataset_name}-{dataset_split}-*"
  filenames = sorted(tf.io.gfile.glob(pattern))
  if not filenames:
    raise FileNotFoundError(f"{pattern}: no file matches this pattern")
  request = Request(dataset_split, sequence_length, vocabulary, seed, shard)
  examples = _examples(filenames, text2self, eos_included, vocab_shift)
  recipe = Recipe(pack, window, shuffle_buffer_size, on_pass=on_pass)
  return from_ids(examples.shard(*shard), request, recipe)


def _examples(
  filenames: Sequence[str],
  text2self: bool,
  eos_included: bool,
  vocab_shift: int,
) -> tf.data.Dataset:
  """One pass over the files, in order: dictionaries of int32 vectors."""
  keys = ["targets"] if text2self else ["inputs", "targets"]
  spec = {key: tf.io.RaggedFeature(tf.int64) for key in keys}
  end = tf.constant([] if eos_included else [EOS_ID], tf.int32)

  def parse(record: tf.Tensor) -> dict[str, tf.Tensor]:
    example = tf.io.parse_single_example(record, spec)
    return {
      key: tf.concat([tf.cast(ids, tf.int32) + vocab_shift, end], axis=0)
      for key, ids in example.items()
    }

  return tf.data.TFRecordDataset(list(filenames)).map(parse)
