"""Examples for language models: targets alone, or inputs and targets joined."""

from collections.abc import Mapping

import tensorflow as tf

from .window import Window


def targets_only(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Drops everything but `targets`."""
  return dataset.map(lambda example: {"targets": example["targets"]})


def join_with_eos(window: Window) -> Window:
  """`inputs EOS targets EOS` as `targets`, from rows that end with EOS.

  The two parts are trimmed before they are joined, so that there are always
  two EOS: an even number of EOS before an id says that it belongs to inputs.
  """
  return {"targets": tf.concat([window["inputs"], window["targets"]], axis=1)}


def delimited_length(sequence_length: Mapping[str, int]) -> int:
  """Length of a row that has room for the longest inputs and targets."""
  return sequence_length["inputs"] + sequence_length["targets"]
