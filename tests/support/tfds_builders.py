"""TFDS data sets of a few examples, written to disk as TFDS writes its own.

They have the names, versions and features of WMT14 and LM1B.
"""

import numpy as np
import tensorflow_datasets as tfds

WMT14_SIZES = {"train": 30, "validation": 5, "test": 4}
WMT14_CONFIGS = [
  tfds.core.BuilderConfig(name=name, version=tfds.core.Version("1.0.0"))
  for name in ("de-en", "fr-en")
]
LM1B_SIZES = {"train": 20, "test": 10}
IDS_SIZES = {"train": 6}


class Local(tfds.core.GeneratorBasedBuilder, skip_registration=True):
  """Writes what it is given; named as the data set that it stands for."""

  def __init_subclass__(cls, **keywords):
    # Of a module within a package, TFDS asks `importlib_resources`, which it
    # does not require, where it is.
    cls.__module__ = "builders"
    super().__init_subclass__(skip_registration=True, **keywords)

  def _split_generators(self, dl_manager):
    return {split: self._generate(split) for split in self.SPLITS}

  def _generate_examples(self, split):
    raise NotImplementedError

  def _generate(self, split):
    for number in range(self.SPLITS[split]):
      yield number, self.example(split, number)


class Wmt14(Local):
  name = "wmt14_translate"
  VERSION = tfds.core.Version("1.0.0")
  SPLITS = WMT14_SIZES
  BUILDER_CONFIGS = WMT14_CONFIGS

  def _languages(self):
    return tuple(self.builder_config.name.split("-"))

  def _info(self):
    languages = self._languages()
    return tfds.core.DatasetInfo(
      builder=self,
      features=tfds.features.Translation(languages=languages),
      supervised_keys=languages,
    )

  def example(self, split, number):
    return {
      language: f"{split} {language} ü{number}"
      for language in self._languages()
    }


class Lm1b(Local):
  name = "lm1b"
  VERSION = tfds.core.Version("1.1.0")
  SPLITS = LM1B_SIZES

  def _info(self):
    features = tfds.features.FeaturesDict({"text": tfds.features.Text()})
    return tfds.core.DatasetInfo(
      builder=self, features=features, supervised_keys=("text", "text")
    )

  def example(self, split, number):
    return {"text": f"{split} {number}"}


class Ids(Local):
  name = "tokenized"
  VERSION = tfds.core.Version("2.0.0")
  SPLITS = IDS_SIZES

  def _info(self):
    ids = tfds.features.Tensor(shape=(None,), dtype=np.int64)
    features = tfds.features.FeaturesDict({"a": ids, "b": ids})
    return tfds.core.DatasetInfo(
      builder=self, features=features, supervised_keys=("a", "b")
    )

  def example(self, split, number):
    return {
      "a": np.arange(1, number + 1, dtype=np.int64),
      "b": np.array([number + 1], np.int64),
    }


class Subwords(Local):
  """With an encoder, as data sets had it before TFDS dropped them."""

  name = "lm1b_subwords"
  VERSION = tfds.core.Version("1.0.0")
  SPLITS = IDS_SIZES

  def _info(self):
    encoder = tfds.deprecated.text.SubwordTextEncoder(["old_", "text_", "ol"])
    text = tfds.features.Text(encoder=encoder)
    return tfds.core.DatasetInfo(
      builder=self,
      features=tfds.features.FeaturesDict({"text": text}),
      supervised_keys=("text", "text"),
    )

  def example(self, split, number):
    return {"text": "old text"}


def write(folder):
  """Writes all of them below a folder."""
  tfds.disable_progress_bar()
  for config in ("de-en", "fr-en"):
    Wmt14(config=config, data_dir=folder).download_and_prepare(
      download_config=tfds.download.DownloadConfig(num_shards=3)
    )
  for builder in (Lm1b, Ids, Subwords):
    builder(data_dir=folder).download_and_prepare()
