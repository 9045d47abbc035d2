"""From examples to batches: without end for training, each once to evaluate."""

from collections.abc import Mapping

import tensorflow as tf

Batch = Mapping[str, tf.Tensor]


def training_batches(
  examples: tf.data.Dataset, batch_size: int
) -> tf.data.Dataset:
  """Full batches, made while the step before is running.

  Args:
    examples: dictionaries of fixed-length vectors, without end.
    batch_size: examples per batch.

  Returns:
    A dataset of dictionaries of [batch_size, length].
  """
  batches = examples.batch(batch_size, drop_remainder=True)
  return batches.prefetch(tf.data.AUTOTUNE)


def evaluation_batches(
  examples: tf.data.Dataset, batch_size: int, *, num_batches: int | None = None
) -> tf.data.Dataset:
  """Batches of one size that hold each example once.

  The last batch is filled up with examples whose features are all 0: padding,
  which counts in no loss and no metric.

  Args:
    examples: dictionaries of fixed-length vectors, one pass.
    batch_size: rows per batch.
    num_batches: how many batches to make, the missing ones of padding alone;
      for several hosts that must take the same number of steps.

  Returns:
    A dataset of pairs: a dictionary of [batch_size, length], and how many of
    the rows are examples, an int32 scalar. They are the first rows.
  """

  def fill(batch: Batch) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    real = tf.shape(next(iter(batch.values())))[0]
    filled = {
      key: tf.ensure_shape(
        _fill(rows, batch_size), [batch_size, *rows.shape[1:]]
      )
      for key, rows in batch.items()
    }
    return filled, real

  batches = examples.batch(batch_size).map(fill)
  if num_batches is not None:
    batches = batches.concatenate(_empty_batches(batches.element_spec))
    batches = batches.take(num_batches)
  return batches.prefetch(tf.data.AUTOTUNE)


def pad_dataset_with_zeroed_out_examples(
  examples: tf.data.Dataset,
) -> tf.data.Dataset:
  """The examples, then examples of zeros without end."""
  zeros = {
    key: tf.zeros(spec.shape, spec.dtype)
    for key, spec in examples.element_spec.items()
  }
  return examples.concatenate(tf.data.Dataset.from_tensors(zeros).repeat())


def _fill(rows: tf.Tensor, batch_size: int) -> tf.Tensor:
  missing = batch_size - tf.shape(rows)[0]
  return tf.pad(rows, [[0, missing]] + [[0, 0]] * (rows.shape.rank - 1))


def _empty_batches(
  spec: tuple[Mapping[str, tf.TensorSpec], tf.TensorSpec],
) -> tf.data.Dataset:
  batch = {key: tf.zeros(s.shape, s.dtype) for key, s in spec[0].items()}
  return tf.data.Dataset.from_tensors((batch, tf.constant(0))).repeat()
