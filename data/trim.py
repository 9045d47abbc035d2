"""Cuts examples that are longer than a row, and says how many there were."""

from collections.abc import Mapping

import tensorflow as tf
from absl import logging

from .dataset_fn import OnPass, PassReport
from .vocabulary import EOS_ID
from .window import Window, num_rows, with_end_of_pass


def log_pass(report: PassReport) -> None:
  """Logs the end of a pass; a warning if examples were cut."""
  level = logging.WARNING if report.truncated else logging.INFO
  logging.log(
    level,
    "%s: %d of %d examples were longer than a row and were truncated",
    report.name,
    report.truncated,
    report.examples,
  )


def trim_windows(
  windows: tf.data.Dataset,
  lengths: Mapping[str, int],
  *,
  name: str,
  on_pass: OnPass = log_pass,
) -> tf.data.Dataset:
  """Cuts every feature to its length; an EOS at the end stays the end.

  Args:
    windows: one pass over a split.
    lengths: the most ids that a feature may have.
    name: which split this is, for the report.
    on_pass: is called once, at the end of the pass. The counts are part of a
      saved iterator, so they are those of the whole pass even if it was
      interrupted.

  Returns:
    A dataset of windows, the last of which has no rows.
  """

  def report(examples: int, truncated: int) -> tuple[int, int]:
    on_pass(PassReport(name, int(examples), int(truncated)))
    return examples, truncated

  def trim(
    counts: tuple[tf.Tensor, tf.Tensor], window: Window
  ) -> tuple[tuple[tf.Tensor, tf.Tensor], Window]:
    rows = num_rows(window)
    counts = (counts[0] + rows, counts[1] + _num_longer(window, lengths))
    # The report hands the counts through, or it would be pruned.
    counts = tf.cond(
      tf.equal(rows, 0),
      lambda: tuple(
        tf.ensure_shape(count, [])
        for count in tf.numpy_function(
          report, counts, [tf.int64, tf.int64], stateful=False
        )
      ),
      lambda: counts,
    )
    trimmed = {k: trim_rows(ids, lengths[k]) for k, ids in window.items()}
    return counts, trimmed

  zero = tf.constant(0, tf.int64)
  return with_end_of_pass(windows).scan((zero, zero), trim)


def trim_rows(
  ids: tf.RaggedTensor, length: int, *, ensure_eos: bool = False
) -> tf.RaggedTensor:
  """Cuts rows to `length` ids.

  Args:
    ids: rows of ids.
    length: the most ids a row may keep, at least 1.
    ensure_eos: ends every row that fills its length with EOS. Otherwise only
      rows that ended with EOS before the cut end with it afterwards.

  Returns:
    Rows of at most `length` ids.
  """
  sizes = ids.row_lengths()
  kept = ids[:, :length]
  cut = sizes >= length if ensure_eos else sizes > length
  last = tf.boolean_mask(kept.row_limits(), cut) - 1
  if ensure_eos:
    ends = tf.fill(tf.shape(last), tf.cast(EOS_ID, ids.dtype))
  else:
    before = tf.gather(
      ids.flat_values, tf.boolean_mask(ids.row_limits(), cut) - 1
    )
    after = tf.gather(kept.flat_values, last)
    ends = tf.where(tf.equal(before, EOS_ID), before, after)
  values = tf.tensor_scatter_nd_update(kept.flat_values, last[:, None], ends)
  return kept.with_flat_values(values)


def _num_longer(window: Window, lengths: Mapping[str, int]) -> tf.Tensor:
  """How many examples have a feature that is too long: an int64 scalar."""
  too_long = [ids.row_lengths() > lengths[key] for key, ids in window.items()]
  return tf.reduce_sum(tf.cast(tf.reduce_any(too_long, axis=0), tf.int64))
