"""Finds a TFDS data set where it was prepared, and touches nothing else.

`tfds.load` of a name alone may run the code that makes a data set, look for it
in a bucket, or ask a catalogue. A name with a version whose files are there is
read from these files; so the version is looked up first.
"""

import dataclasses
import os
import pathlib
import re

import tensorflow as tf

_NAME = re.compile(
  r"(?P<dataset>\w+)(/(?P<config>[\w\-.]+))?(:(?P<version>\d+\.\d+\.\d+))?"
)


@dataclasses.dataclass(frozen=True)
class PreparedDataset:
  """A data set that is on disk.

  Attributes:
    name: `dataset/config:version`, as `tfds.load` takes it.
    data_dir: the directory that all data sets are below.
  """

  name: str
  data_dir: str


def find_prepared(
  dataset_name: str, data_dir: str | None = None
) -> PreparedDataset:
  """Finds the newest prepared version of a data set.

  Args:
    dataset_name: `dataset`, `dataset/config`, either with `:version`.
    data_dir: where TFDS keeps data sets; None for the environment variable
      TFDS_DATA_DIR or else `~/tensorflow_datasets`.

  Returns:
    The full name and where it is.

  Raises:
    FileNotFoundError: if it is not there; the message says how to prepare it.
    ValueError: if the name is not of this form.
  """
  match = _NAME.fullmatch(dataset_name)
  if not match:
    raise ValueError(
      f"dataset_name: wanted 'dataset', 'dataset/config' or either with "
      f"':1.2.3', as TFDS has it on disk; got {dataset_name!r}"
    )
  root = data_dir or os.environ.get("TFDS_DATA_DIR", "~/tensorflow_datasets")
  root = str(pathlib.Path(root).expanduser()) if "://" not in root else root
  parts = [match["dataset"], match["config"], match["version"]]
  folder = "/".join(filter(None, [root, *parts[:2]]))
  versions = _versions(folder)
  if match["version"]:
    versions = [v for v in versions if v == match["version"]]
  if not versions:
    raise FileNotFoundError(
      _how_to_prepare(dataset_name, match["dataset"], root)
    )
  name = "/".join(filter(None, parts[:2]))
  return PreparedDataset(f"{name}:{versions[-1]}", root)


def _versions(folder: str) -> list[str]:
  """Versions of a data set below its folder, the newest last."""
  infos = tf.io.gfile.glob(f"{folder}/*/dataset_info.json")
  found = [info.split("/")[-2] for info in infos]
  versions = [v for v in found if re.fullmatch(r"\d+\.\d+\.\d+", v)]
  return sorted(versions, key=lambda v: [int(n) for n in v.split(".")])


def _how_to_prepare(name: str, dataset: str, root: str) -> str:
  infos = tf.io.gfile.glob(f"{root}/{dataset}/*/dataset_info.json")
  infos += tf.io.gfile.glob(f"{root}/{dataset}/*/*/dataset_info.json")
  there = sorted(
    info.removeprefix(f"{root}/").removesuffix("/dataset_info.json")
    for info in infos
  )
  others = f" There is {', '.join(there)}." if there else ""
  plain = name.split(":")[0]
  return (
    f"the TFDS data set {name} is not prepared in {root}.{others} Nothing is "
    "downloaded unasked. Prepare it once, with\n"
    f"  tfds build {plain} --data_dir={root}\n"
    "or in Python\n"
    "  import tensorflow_datasets as tfds\n"
    f'  tfds.builder("{plain}", data_dir="{root}").download_and_prepare()\n'
    "or name the directory that it is in (data_dir, or the environment "
    "variable TFDS_DATA_DIR)."
  )
