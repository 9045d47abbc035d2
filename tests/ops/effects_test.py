"""Printing and summaries."""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor


def test_print_shows_whole_tensors_and_hands_on_the_first(capfd):
  def build(mesh):
    x = tensor(mesh, "a:4", dtype=np.int32)
    return mtf.Print(x, [x + 1], "here they are:", summarize=-1)

  result = run(build, "x:2", "a:x")
  np.testing.assert_array_equal(result.value(), [0, 1, 2, 3])
  assert "here they are: [1 2 3 4]" in capfd.readouterr().err


def test_the_gradient_passes_through_a_print():
  def build(mesh):
    x = tensor(mesh, "a:4")
    y = mtf.print_tensors(x * x, [x], "x")
    return mtf.gradients([y], [x])

  np.testing.assert_array_equal(run(build).value(), [0, 2, 4, 6])


def test_scalar_summary_writes_at_the_current_step(tmp_path):
  writer = tf.summary.create_file_writer(str(tmp_path))
  with writer.as_default(step=3):
    result = run(
      lambda mesh: mtf.scalar_summary("loss", mtf.constant(mesh, 2.5))
    )
  writer.close()
  assert result.value() == 2.5
  (file,) = tmp_path.iterdir()
  events = tf.compat.v1.train.summary_iterator(str(file))
  found = [(e.step, v.tag) for e in events for v in e.summary.value]
  assert found == [(3, "loss")]


def test_scalar_summary_of_more_than_a_number_is_an_error():
  with pytest.raises(ValueError, match=r"scalar_summary\('loss'\): \[a:4\]"):
    mtf.scalar_summary("loss", tensor(new_mesh(), "a:4"))


def test_depend_makes_a_tensor_after_others():
  def build(mesh):
    x, y = tensor(mesh, "a:4"), tensor(mesh, "b:2")
    return mtf.depend(x, [y])

  np.testing.assert_array_equal(run(build, "x:2", "a:x").value(), range(4))
