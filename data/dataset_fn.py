"""What a trainer asks of a data set, and what it may rely on in return."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import tensorflow as tf

from .vocabulary import Vocabularies


class DatasetFn(Protocol):
  """A function from a request to examples of fixed length, not batched.

  It returns a `tf.data.Dataset` of dictionaries of int32 vectors. `inputs` and
  `targets` have the length that `sequence_length` gives them; where examples
  were packed, `targets_segmentation` numbers the examples of a row from 1 (0 is
  padding) and `targets_position` counts from 0 within each, and likewise for
  `inputs`. For `dataset_split="train"` it repeats without end, in an order that
  is a function of `seed` and differs from pass to pass, each example once in
  each pass. For any other split it is one pass, in order, unpacked.
  """

  def __call__(
    self,
    *,
    dataset_split: str,
    sequence_length: Mapping[str, int],
    vocabulary: Vocabularies,
    seed: int = 0,
    shard: tuple[int, int] = (1, 0),
  ) -> tf.data.Dataset:
    """Returns the examples of one split.

    Args:
      dataset_split: "train", or a split to go through once.
      sequence_length: tokens per row of `inputs` and `targets`.
      vocabulary: a vocabulary, or a pair for inputs and targets.
      seed: of the order of training examples.
      shard: (number of shards, index): this reader gets its share only.
    """
    ...


@dataclasses.dataclass(frozen=True)
class Request:
  """The arguments that every dataset function is called with.

  Attributes:
    dataset_split: "train", or a split to go through once.
    sequence_length: tokens per row of each feature.
    vocabulary: a vocabulary or a pair; None where there are ids already.
    seed: of the order of training examples.
    shard: (number of shards, index).
    one_pass: goes through "train", too, once and in order.
  """

  dataset_split: str
  sequence_length: Mapping[str, int]
  vocabulary: Vocabularies | None
  seed: int = 0
  shard: tuple[int, int] = (1, 0)
  one_pass: bool = False

  def __post_init__(self) -> None:
    shards, index = self.shard
    if not 0 <= index < shards:
      raise ValueError(
        f"shard must be (number of shards, index below it): got {self.shard}"
      )

  @property
  def training(self) -> bool:
    """Whether to shuffle and repeat."""
    return self.dataset_split == "train" and not self.one_pass

  @property
  def name(self) -> str:
    """For log and error messages."""
    shards, index = self.shard
    part = f", shard {index} of {shards}" if shards > 1 else ""
    return f"split {self.dataset_split!r}{part}"

  def lengths(self, features: Iterable[str]) -> dict[str, int]:
    """The fixed length of each feature.

    Raises:
      ValueError: if `sequence_length` lacks a feature or gives it no room.
    """
    return lengths_of(features, self.sequence_length)


def lengths_of(
  features: Iterable[str], length: int | Mapping[str, int]
) -> dict[str, int]:
  """The length of each feature, from one number or a number for each.

  `inputs_plaintext`-like names fall back on what stands before their first
  underscore.

  Raises:
    ValueError: if a feature has no length, or one below 1.
  """
  found = {}
  for feature in features:
    if isinstance(length, Mapping):
      size = length.get(feature, length.get(feature.split("_")[0]))
    else:
      size = length
    if not isinstance(size, int) or size < 1:
      raise ValueError(
        f"sequence_length: feature {feature!r} needs a length of at least 1, "
        f"got {size!r} from {length!r}"
      )
    found[feature] = size
  return found


def require_examples(dataset: tf.data.Dataset, name: str) -> tf.data.Dataset:
  """`dataset`, if it has an example.

  Raises:
    ValueError: if it has none; a training loop would wait for ever.
  """
  for _ in dataset.take(1):
    return dataset
  raise ValueError(f"{name} has no example; is the file or the split empty?")


@dataclasses.dataclass(frozen=True)
class PassReport:
  """What happened to the examples of one pass over a split.

  Attributes:
    name: which split, and which shard.
    examples: how many there were.
    truncated: how many of them were longer than a row and lost their tail.
  """

  name: str
  examples: int
  truncated: int


OnPass = Callable[[PassReport], None]
