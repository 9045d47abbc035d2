"""Files that are cut short, changed or missing are found out and named."""

import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2.checkpoint import (
  DamagedCheckpointError,
  Reader,
  bundle,
  reader,
  write,
)

from tests.checkpoint import slicing

VALUE = np.arange(32, dtype=np.float32).reshape(4, 8)
INDEX = "model.ckpt-1.index"
FIRST = "model.ckpt-1.data-00000-of-00002"
SECOND = "model.ckpt-1.data-00001-of-00002"


@pytest.fixture
def files(tmp_path, monkeypatch):
  """A checkpoint of two data files: the rows of "w", and "word"."""
  monkeypatch.setattr(bundle, "PART_BYTES", 80)
  write(
    tmp_path / "model.ckpt-1",
    [*slicing.slices("w", VALUE, (2, 1)), slicing.whole("word", ["ab", "c"])],
  )
  assert slicing.names(tmp_path) == [FIRST, SECOND, INDEX]
  return tmp_path


def damaged(path):
  return pytest.raises(
    DamagedCheckpointError, match=f"^{re.escape(str(path))} "
  )


def verify(folder, contents=True):
  Reader(folder / "model.ckpt-1").verify(contents)


@pytest.mark.parametrize("name", [FIRST, SECOND])
@pytest.mark.parametrize("contents", [True, False])
def test_a_data_file_that_is_cut_short_is_named(files, name, contents):
  path = files / name
  path.write_bytes(path.read_bytes()[:-1])
  with damaged(path) as caught:
    verify(files, contents)
  assert "is cut short: it has" in str(caught.value)


@pytest.mark.parametrize("name", [FIRST, SECOND])
@pytest.mark.parametrize("contents", [True, False])
def test_a_data_file_that_is_missing_is_named(files, name, contents):
  (files / name).unlink()
  with damaged(files / name) as caught:
    verify(files, contents)
  assert str(caught.value).endswith("is missing")


@pytest.mark.parametrize("name", [FIRST, SECOND])
def test_each_byte_of_a_data_file_is_checked(files, name):
  path = files / name
  data = path.read_bytes()
  for at in range(len(data)):
    path.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
    with damaged(path):
      verify(files)
    verify(files, contents=False)  # which only measures
  path.write_bytes(data)
  verify(files)


def test_a_damaged_slice_is_found_when_it_is_read(files):
  path = files / SECOND
  data = path.read_bytes()
  path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
  cut = Reader(files / "model.ckpt-1")
  got = cut.read("w", (4, 8), (0, 0), (2, 8), tf.float32)
  np.testing.assert_array_equal(got, VALUE[:2])
  with damaged(path) as caught:
    cut.read("w", (4, 8), (1, 0), (2, 8), tf.float32)
  assert '"w" cannot be read from it: ' in str(caught.value)
  assert "Checksum does not match" in str(caught.value)
  assert "RestoreV2" not in str(caught.value)


def test_an_index_cut_short_anywhere_is_named(files):
  path = files / INDEX
  data = path.read_bytes()
  for size in range(len(data)):
    path.write_bytes(data[:size])
    with damaged(path):
      verify(files)


def test_no_changed_byte_of_an_index_changes_what_is_found(files):
  path = files / INDEX
  data = path.read_bytes()
  inventory = Reader(files / "model.ckpt-1").inventory()
  found = 0
  for at in range(len(data)):
    path.write_bytes(data[:at] + bytes([data[at] ^ 65]) + data[at + 1 :])
    try:
      assert Reader(files / "model.ckpt-1").inventory() == inventory
    except DamagedCheckpointError as error:
      assert str(error).startswith(f"{path} ")
      found += 1
  # The footer's padding and a block that is always empty do not matter.
  assert found > len(data) - 60


def test_a_damaged_block_of_a_long_index_does_not_hide_names(tmp_path):
  prefix = tmp_path / "model.ckpt-1"
  names = [f"{i:05d}/{'x' * 120}" for i in range(3000)]
  tf.raw_ops.SaveV2(
    prefix=str(prefix),
    tensor_names=names,
    shape_and_slices=[""] * len(names),
    tensors=[tf.constant(1.0)] * len(names),
  )
  assert sorted(Reader(prefix).inventory()) == names
  path = tmp_path / INDEX
  data = bytearray(path.read_bytes())
  assert len(data) > 1 << 18  # more than one block
  data[len(data) // 2] ^= 1
  path.write_bytes(data)
  with damaged(path):
    Reader(prefix)


def test_an_index_that_does_not_list_all_slices_is_damaged(tmp_path):
  prefix = tmp_path / "model.ckpt-1"
  tf.raw_ops.SaveV2(
    prefix=str(prefix),
    tensor_names=["w"],
    shape_and_slices=["4 8 0,2:-"],
    tensors=[tf.zeros((2, 8))],
  )
  with damaged(tmp_path / INDEX) as caught:
    verify(tmp_path)
  assert "[2:4, 0:8] is in none of them" in str(caught.value)


def test_a_table_that_is_no_index_is_said_to_be_none(files):
  shutil.copy(files / FIRST, files / INDEX)
  with damaged(files / INDEX) as caught:
    verify(files)
  assert "is no index, or cut short (64 bytes)" in str(caught.value)


def test_many_slices_are_verified_a_few_at_a_time(files, monkeypatch):
  for nbytes, pieces in [(1, 100), (10**9, 2), (80, 1)]:
    monkeypatch.setattr(reader, "CHECKED_BYTES", nbytes)
    monkeypatch.setattr(reader, "CHECKED_UNITS", pieces)
    verify(files)
