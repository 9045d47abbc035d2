"""Where raw text comes from: one class for each kind of place."""

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeVar

import tensorflow as tf

from .dataset_fn import require_examples

_T = TypeVar("_T")


class TextSource(abc.ABC):
  """Text examples by split: files, TFDS, memory.

  An example is a dictionary of scalar strings: `inputs` and `targets`, or
  `targets` alone for a language model.
  """

  @abc.abstractmethod
  def examples(
    self,
    dataset_split: str,
    *,
    shard: tuple[int, int] = (1, 0),
    seed: int | None = None,
  ) -> tf.data.Dataset:
    """One pass over a split.

    Args:
      dataset_split: name of the split.
      shard: (number of shards, index). The shards of a split are disjoint and
        together hold each example once.
      seed: allows the source to read its files in an order that this number
        decides; None keeps the order.

    Raises:
      ValueError: if the source has no such split; the message names those that
        it has.
    """


@dataclasses.dataclass(frozen=True)
class MemoryText(TextSource):
  """Examples that are in memory already.

  Attributes:
    splits: the examples of each split: dictionaries with the same keys.
  """

  splits: Mapping[str, Sequence[Mapping[str, str]]]

  def examples(
    self,
    dataset_split: str,
    *,
    shard: tuple[int, int] = (1, 0),
    seed: int | None = None,
  ) -> tf.data.Dataset:
    """One pass over a split, in order."""
    del seed
    rows = pick_split(self.splits, dataset_split, "MemoryText.splits")
    keys = rows[0] if rows else ("targets",)
    columns = {key: [row[key] for row in rows] for key in keys}
    if not rows:
      columns = {key: tf.zeros([0], tf.string) for key in keys}
    return tf.data.Dataset.from_tensor_slices(columns).shard(*shard)


def pick_split(splits: Mapping[str, _T], name: str, what: str) -> _T:
  """The entry of a split.

  Raises:
    ValueError: if there is none; the message names those that there are.
  """
  if name not in splits:
    raise ValueError(
      f"{what} has no split {name!r}; it has {', '.join(map(repr, splits))}"
    )
  return splits[name]


def plain_text(source: TextSource, dataset_split: str) -> list[tuple[str, str]]:
  """The (inputs, targets) texts of a split, in the order of evaluation.

  Inputs are empty for a language model. This is what BLEU is computed on: the
  text as it was read, whatever a vocabulary can or cannot express.

  Raises:
    ValueError: if the split is unknown or empty.
  """
  dataset = require_examples(
    source.examples(dataset_split), f"split {dataset_split!r}"
  )
  return [
    (example.get("inputs", b"").decode(), example["targets"].decode())
    for example in dataset.as_numpy_iterator()
  ]
