"""The vocabulary that old TFDS data sets of ids carry with them."""

from typing import Any

import gin
import tensorflow_datasets as tfds

from .tfds_on_disk import find_prepared
from .vocabulary import Vocabulary


class TFDSVocabulary(Vocabulary):
  """An encoder of TFDS, its ids raised by 1 to make room for EOS."""

  def __init__(self, tfds_encoder: Any) -> None:
    """Wraps `tfds_encoder`, which has `vocab_size`, `encode` and `decode`."""
    self._encoder = tfds_encoder

  @property
  def vocab_size(self) -> int:
    """Number of ids, padding and EOS included."""
    return int(self._encoder.vocab_size) + 1

  @property
  def unk_id(self) -> int | None:
    """None: TFDS's encoders spell what they do not know in bytes."""
    return None

  def encode(self, text: str) -> list[int]:
    """Ids of `text`, without EOS."""
    return [each + 1 for each in self._encoder.encode(text)]

  def _decode(self, ids: list[int]) -> str:
    return str(self._encoder.decode([each - 1 for each in ids]))


@gin.configurable(module="mesh_tf2.transformer.vocabulary")
def get_tfds_vocabulary(
  dataset_name: str = gin.REQUIRED, tfds_data_dir: str | None = None
) -> TFDSVocabulary:
  """The encoder of the targets of a TFDS data set that is on disk.

  Args:
    dataset_name: as in `tfds.load`, for example `lm1b/subwords32k`.
    tfds_data_dir: where TFDS keeps data sets; None for its own default.

  Raises:
    FileNotFoundError: if the data set is not on disk; says how to prepare it.
    ValueError: if it has text rather than ids.
  """
  found = find_prepared(dataset_name, tfds_data_dir)
  info = tfds.builder(found.name, data_dir=found.data_dir, try_gcs=False).info
  keys = info.supervised_keys or list(info.features)
  encoder = getattr(info.features[keys[-1]], "encoder", None)
  if encoder is None:
    raise ValueError(
      f"{found.name} carries no vocabulary, since its feature {keys[-1]!r} is "
      "text; train one with mesh_tf2.data.train_sentencepiece, bind "
      "get_sentencepiece_vocabulary.model_file, and read the data set with "
      "untokenized_tfds_dataset"
    )
  return TFDSVocabulary(encoder)
