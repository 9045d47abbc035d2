"""Checkpoints that several processes write together; here they are threads."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2 import checkpoint
from mesh_tf2.checkpoint.together import write_together
from mesh_tf2.spmd.processes import Cluster

COUNT = 3


class Meeting:
  """Where threads agree on the largest number."""

  def __init__(self):
    self._barrier = threading.Barrier(COUNT, timeout=20)
    self._values = {}

  def member(self, number):
    def largest(value):
      self._values[number] = value
      self._barrier.wait()
      found = max(self._values.values())
      self._barrier.wait()
      return found

    return Cluster(number, COUNT, largest)


def write_all(prefix, slices):
  """Every thread writes its slices; returns what each has raised."""
  meeting, errors = Meeting(), [None] * COUNT

  def work(number):
    try:
      write_together(prefix, slices[number], meeting.member(number))
    except Exception as error:
      errors[number] = error

  threads = [threading.Thread(target=work, args=(n,)) for n in range(COUNT)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(30)
  return errors


def rows(number, count=2):
  value = tf.constant(np.full([count, 4], number, np.float32))
  return checkpoint.Slice("w", (6, 4), (2 * number, 0), value)


def test_the_parts_of_all_are_one_checkpoint(tmp_path):
  prefix = str(tmp_path / "model.ckpt-1")
  assert write_all(prefix, [[rows(0)], [rows(1)], [rows(2)]]) == [None] * 3
  got = checkpoint.Reader(prefix).read("w", (6, 4), (0, 0), (6, 4), tf.float32)
  np.testing.assert_array_equal(got[:, 0], [0, 0, 1, 1, 2, 2])
  assert not list(tmp_path.glob("*part*"))


def test_who_has_nothing_to_write_writes_nothing(tmp_path):
  prefix = str(tmp_path / "model.ckpt-1")
  whole = checkpoint.Slice("w", (2,), (0,), tf.constant([1.0, 2.0]))
  assert write_all(prefix, [[], [whole], []]) == [None] * 3
  assert checkpoint.Reader(prefix).inventory() == {"w": ((2,), tf.float32)}


def test_when_one_cannot_write_its_part_nobody_waits_for_it(tmp_path):
  prefix = str(tmp_path / "model.ckpt-1")

  def broken():
    yield rows(1)
    raise OSError("the disk is full")

  errors = write_all(prefix, [[rows(0)], broken(), [rows(2)]])
  assert str(errors[1]) == "the disk is full"
  for number in (0, 2):
    with pytest.raises(OSError, match="another process has failed, and says w"):
      raise errors[number]
  assert not (tmp_path / "model.ckpt-1.index").exists()


def test_when_the_parts_do_not_make_a_whole_all_are_told(tmp_path):
  prefix = str(tmp_path / "model.ckpt-1")
  errors = write_all(prefix, [[rows(0)], [rows(1)], []])
  assert isinstance(errors[0], ValueError)
  assert "w" in str(errors[0])
  assert all(isinstance(error, OSError) for error in errors[1:])
