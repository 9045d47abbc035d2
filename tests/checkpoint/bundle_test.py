"""Checkpoints written in any slicing, read in any other, and by TensorFlow."""

import pathlib
import re

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2.checkpoint import (
  CheckpointDirectory,
  Reader,
  Slice,
  bundle,
  merge,
  write,
  write_part,
)

from tests.checkpoint import slicing


@pytest.fixture
def prefix(tmp_path):
  return str(tmp_path / "model.ckpt-7")


def beside(prefix):
  return slicing.names(pathlib.Path(prefix).parent)


def random_array(*shape):
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def whole_by_tensorflow(prefix, name):
  return tf.train.load_checkpoint(prefix).get_tensor(name)


@st.composite
def slicings(draw):
  shape = draw(st.lists(st.integers(1, 7), min_size=2, max_size=3))
  one, other = (
    [draw(st.integers(1, full)) for full in shape] for _ in range(2)
  )
  return shape, one, other


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(slicings())
def test_any_slicing_is_read_in_any_other(tmp_path_factory, slicing_pair):
  shape, written, read = slicing_pair
  prefix = str(tmp_path_factory.mktemp("any") / "model.ckpt-1")
  value = random_array(*shape)
  write(prefix, slicing.slices("w", value, written))
  got = slicing.read_in_slices(Reader(prefix), "w", read)
  np.testing.assert_array_equal(got, value)
  np.testing.assert_array_equal(whole_by_tensorflow(prefix, "w"), value)


def test_eight_by_one_is_resharded_to_two_by_four(prefix):
  value = random_array(16, 8)
  write(prefix, slicing.slices("w", value, (8, 1)))
  reader = Reader(prefix)
  for begin, size in slicing.boxes((16, 8), (2, 4)):
    got = reader.read("w", (16, 8), begin, size, tf.float32)
    rows, cols = begin
    np.testing.assert_array_equal(got, value[rows : rows + 8, cols : cols + 2])


def test_a_slice_with_edges_on_no_grid_is_read(prefix):
  value = random_array(5, 6, 7)
  write(prefix, slicing.slices("w", value, (2, 1, 3)))
  got = Reader(prefix).read("w", (5, 6, 7), (1, 2, 3), (3, 1, 4), tf.float32)
  np.testing.assert_array_equal(got, value[1:4, 2:3, 3:7])


VALUES = {
  tf.float32: [[0.5, -1.0, 2.0, 3.5], [4.0, 5.0, 6.0, 7.0]],
  tf.bfloat16: [[0.5, -1.0, 2.0, 3.5], [4.0, 5.0, 6.0, 7.0]],
  tf.float16: [[0.5, -1.0, 2.0, 3.5], [4.0, 5.0, 6.0, 7.0]],
  tf.int64: [[1, -1, 2**40, 0], [3, 4, 5, 6]],
  tf.uint32: [[1, 2, 2**32 - 1, 0], [3, 4, 5, 6]],
  tf.bool: [[True, False, True, True], [False, False, True, False]],
  tf.string: [[b"a", b"", b"\xff\0", b"long " * 9], [b"b", b"c", b"d", b"e"]],
}


@pytest.mark.parametrize("dtype", VALUES, ids=lambda dtype: dtype.name)
def test_every_type_is_written_and_read_in_slices(prefix, dtype):
  value = tf.constant(VALUES[dtype], dtype).numpy()
  write(prefix, slicing.slices("w", value, (2, 2), dtype))
  reader = Reader(prefix)
  assert reader.inventory() == {"w": ((2, 4), dtype)}
  for parts in [(1, 1), (2, 1), (1, 4)]:
    got = slicing.read_in_slices(reader, "w", parts)
    np.testing.assert_array_equal(got, value)
  np.testing.assert_array_equal(whole_by_tensorflow(prefix, "w"), value)
  reader.verify()


def test_scalars_and_empty_tensors_are_written_and_read(prefix):
  empty = np.zeros((0, 4), np.float32)
  write(
    prefix,
    [
      slicing.whole("global_step", 7, tf.int64),
      slicing.whole("text", "word"),
      *slicing.slices("empty", empty, (1, 2)),
    ],
  )
  reader = Reader(prefix)
  assert reader.read("global_step", (), (), (), tf.int64).numpy() == 7
  assert reader.read("text", (), (), (), tf.string).numpy() == b"word"
  got = reader.read("empty", (0, 4), (0, 2), (0, 2), tf.float32)
  assert got.shape == (0, 2)
  assert whole_by_tensorflow(prefix, "empty").shape == (0, 4)
  reader.verify()


def test_a_slice_without_elements_is_left_out(prefix):
  nothing = Slice("w", (2, 3), (0, 3), tf.zeros((2, 0)))
  write(prefix, [nothing, slicing.whole("w", random_array(2, 3))])
  np.testing.assert_array_equal(
    whole_by_tensorflow(prefix, "w"), random_array(2, 3)
  )


def test_a_generator_is_written_in_parts_of_bounded_size(prefix, monkeypatch):
  monkeypatch.setattr(bundle, "PART_BYTES", 64)
  value = random_array(16, 4)  # 16 rows of 16 bytes: four parts
  write(prefix, slicing.slices("w", value, (16, 1)))
  assert beside(prefix) == [
    *(f"model.ckpt-7.data-{i:05d}-of-00004" for i in range(4)),
    "model.ckpt-7.index",
  ]
  np.testing.assert_array_equal(whole_by_tensorflow(prefix, "w"), value)


def test_a_checkpoint_of_the_same_name_is_replaced_with_all_its_files(
  prefix, monkeypatch
):
  for i, part_bytes in enumerate([16, 1000, 1000, 32, 16, 1000]):
    monkeypatch.setattr(bundle, "PART_BYTES", part_bytes)
    value = random_array(4, 4) + i
    write(
      prefix, [*slicing.slices("w", value, (4, 1)), slicing.whole("n", [i])]
    )
    np.testing.assert_array_equal(whole_by_tensorflow(prefix, "w"), value)
    assert whole_by_tensorflow(prefix, "n") == [i]
    names = beside(prefix)
    counts = {n[-5:] for n in names if ".data-" in n}
    assert len(counts) == 1 and int(counts.pop()) == len(names) - 1


def test_the_folder_is_made_and_a_path_may_be_a_path(tmp_path):
  prefix = tmp_path / "some" / "where" / "model.ckpt-1"
  write(prefix, [slicing.whole("w", [1.0])])
  assert whole_by_tensorflow(str(prefix), "w") == [1.0]
  Reader(prefix).verify()


def test_a_prefix_without_a_folder_is_in_the_working_folder(
  tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  write("here", [slicing.whole("w", [1.0])])
  assert Reader("here").inventory() == {"w": ((1,), tf.float32)}
  assert slicing.names(tmp_path) == ["here.data-00000-of-00001", "here.index"]


def test_several_writers_make_one_checkpoint(prefix):
  value = random_array(4, 6)
  mine = list(slicing.slices("w", value, (4, 2)))
  parts = [f"{prefix}.part-{i}" for i in range(3)]
  write_part(parts[0], [*mine[:3], slicing.whole("b", [1.0])])
  write_part(parts[1], mine[3:4])
  write_part(parts[2], mine[4:])
  merge(prefix, parts)
  np.testing.assert_array_equal(whole_by_tensorflow(prefix, "w"), value)
  assert whole_by_tensorflow(prefix, "b") == [1.0]
  reader = Reader(prefix)
  reader.verify()
  np.testing.assert_array_equal(
    slicing.read_in_slices(reader, "w", (1, 3)), value
  )
  assert not [n for n in beside(prefix) if "part" in n]


def test_parts_that_leave_something_out_are_not_merged(prefix):
  mine = list(slicing.slices("w", random_array(4, 6), (2, 2)))
  write_part(f"{prefix}.a", mine[:2])
  write_part(f"{prefix}.b", mine[3:])
  message = r'"w" .* 18 of its 24 elements: \[2:4, 0:3\] is in none of them'
  with pytest.raises(ValueError, match=message):
    merge(prefix, [f"{prefix}.a", f"{prefix}.b"])
  write_part(f"{prefix}.c", mine[2:3])
  merge(prefix, [f"{prefix}.{part}" for part in "abc"])
  Reader(prefix).verify()


def test_parts_that_overlap_or_disagree_are_not_merged(prefix):
  mine = list(slicing.slices("w", random_array(4, 6), (2, 1)))
  write_part(f"{prefix}.a", mine)
  write_part(f"{prefix}.b", mine[:1])
  with pytest.raises(ValueError, match=r'\[0:2, 0:6\] of "w" overlap'):
    merge(prefix, [f"{prefix}.a", f"{prefix}.b"])
  write_part(f"{prefix}.b", [slicing.whole("w", [1])])
  with pytest.raises(ValueError, match=r"float32\[4, 6\], another of int32"):
    merge(prefix, [f"{prefix}.a", f"{prefix}.b"])


def test_a_part_that_is_not_there_is_named(prefix):
  with pytest.raises(FileNotFoundError, match=re.escape(f"{prefix}.a.index")):
    merge(prefix, [f"{prefix}.a"])


def box(begin, size, dtype=tf.float32, shape=(4, 8)):
  return Slice("w", shape, begin, tf.zeros(size, dtype))


HALF = box((0, 0), (2, 8))
BAD = {
  "overlap": (
    [box((0, 0), (3, 8)), box((2, 0), (2, 8))],
    r'\[0:3, 0:8\] and \[2:4, 0:8\] of "w" overlap; write each element once',
  ),
  "twice": ([HALF, HALF], r"\[0:2, 0:8\] and \[0:2, 0:8\] of .* overlap"),
  "inside": ([HALF, box((1, 4), (1, 2))], r"\[1:2, 4:6\] of \"w\" overlap"),
  "gap": (
    [HALF, box((2, 0), (2, 4))],
    r'"w" of shape \[4, 8\] hold 24 of its 32 elements: \[2:4, 4:8\] is in',
  ),
  "shape": (
    [HALF, box((0, 0), (2, 8), shape=(4, 9))],
    r'one slice of "w" is of float32\[4, 8\], another of float32\[4, 9\]',
  ),
  "type": (
    [HALF, box((2, 0), (2, 8), tf.int32)],
    r'"w" is of float32\[4, 8\], another of int32\[4, 8\]',
  ),
  "beyond": (
    [box((3, 0), (2, 8))],
    r'"w" of shape \[4, 8\] has no slice \[3:5, 0:8\]',
  ),
  "rank": ([box((0,), (2,))], r'"w" of shape \[4, 8\] has no slice \[0:2\]'),
  "half, of a type that is only stored whole": (
    [box((0, 0), (2, 8), tf.float16)],
    r"\[2:4, 0:8\] is in none of them; TensorFlow stores float16 only whole",
  ),
  "nothing": ([], "nothing to write to .*model.ckpt-7: no slices"),
}


@pytest.mark.parametrize("case", BAD)
def test_slices_that_do_not_fit_leave_the_old_checkpoint(prefix, case):
  write(prefix, [slicing.whole("w", random_array(4, 8))])
  files = beside(prefix)
  wrong, message = BAD[case]
  with pytest.raises(ValueError, match=message):
    write(prefix, wrong)
  assert beside(prefix) == files
  np.testing.assert_array_equal(
    whole_by_tensorflow(prefix, "w"), random_array(4, 8)
  )


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_the_format_cannot_hold_are_refused(name):
  with pytest.raises(ValueError, match="cannot name a tensor"):
    Slice(name, (), (), tf.constant(1.0))


def test_writing_in_a_graph_is_refused(prefix):
  with tf.Graph().as_default(), pytest.raises(RuntimeError, match="outside"):
    write(prefix, [])
  with pytest.raises(ValueError, match="part without slices"):
    write_part(prefix, [])


def test_what_is_not_in_the_checkpoint_is_said(prefix):
  write(prefix, [slicing.whole("encoder/w", random_array(4, 8))])
  reader = Reader(prefix)
  at = ((0, 0), (4, 8), tf.float32)
  near = r'no tensor "encodr/w" \(did you mean "encoder/w"\?\)'
  with pytest.raises(ValueError, match=near):
    reader.read("encodr/w", (4, 8), *at)
  shapes = r'"encoder/w" as float32\[4, 8\], not as float32\[8, 4\]'
  with pytest.raises(ValueError, match=shapes):
    reader.read("encoder/w", (8, 4), *at)
  with pytest.raises(ValueError, match=r"not as bfloat16\[4, 8\]; read it as"):
    reader.read("encoder/w", (4, 8), (0, 0), (4, 8), tf.bfloat16)
  with pytest.raises(ValueError, match=r"has no slice \[3:5, 0:8\]"):
    reader.read("encoder/w", (4, 8), (3, 0), (2, 8), tf.float32)


def test_a_checkpoint_that_is_not_there_is_named(tmp_path):
  path = tmp_path / "model.ckpt-1"
  message = f"no checkpoint {re.escape(str(path))}: no file .*-1.index$"
  with pytest.raises(FileNotFoundError, match=message):
    Reader(path)
  with pytest.raises(FileNotFoundError, match="it is a folder: give a check"):
    Reader(tmp_path)
  write(path, [slicing.whole("w", [1.0])])
  with pytest.raises(FileNotFoundError, match="give the path without its suf"):
    Reader(f"{path}.index")


@pytest.mark.parametrize("name", ["a[1]", "a\\b"])
def test_a_path_that_could_not_be_read_again_is_not_written(tmp_path, name):
  slices = [slicing.whole("w", [1.0])]
  with pytest.raises(ValueError, match="cannot read checkpoints from a path"):
    write(tmp_path / name / "model.ckpt-1", slices)
  with pytest.raises(ValueError, match="cannot read checkpoints from a path"):
    CheckpointDirectory(tmp_path / name)
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "folder/"])
def test_a_checkpoint_has_a_name(tmp_path, monkeypatch, name):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ValueError, match=r"the name is missing, as in '.*-100'"):
    write(name, [slicing.whole("w", [1.0])])
  assert not list(tmp_path.iterdir())
