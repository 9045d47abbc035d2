"""Curves, as TensorBoard reads them."""

import numpy as np
import tensorflow as tf

from mesh_tf2.transformer.run import curves, events


def scalars(folder):
  """(step, name) -> value, from all event files of a folder."""
  found = {}
  for path in sorted(folder.glob("events.out.tfevents.*")):
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
      event = tf.compat.v1.Event.FromString(record)
      for value in event.summary.value:
        assert value.metadata.plugin_data.plugin_name == "scalars"
        found[event.step, value.tag] = float(tf.make_ndarray(value.tensor))
  return found


def test_scalars_are_what_tensorboard_takes_for_scalars(tmp_path):
  written = events.Scalars(tmp_path)
  assert not list(tmp_path.iterdir())
  written.write(3, {"loss": 1.5, "rate": 0.25})
  written.write(4, {"loss": 1.25})
  written.close()
  assert scalars(tmp_path) == {
    (3, "loss"): 1.5,
    (3, "rate"): 0.25,
    (4, "loss"): 1.25,
  }


def test_a_point_of_a_curve_is_the_mean_over_steps_that_were_kept(tmp_path):
  clock = iter([10.0, 12.0]).__next__
  drawn = curves.Curves(str(tmp_path), clock)
  for loss, finite in ((1.0, True), (np.inf, False), (3.0, True)):
    drawn.add(
      {
        "loss": np.array([loss]),
        "tokens": np.array([100]),
        "learning_rate": np.array([np.nan]),
        "gradient_norm": np.array([loss / 2]),
        "finite": np.array([finite]),
      }
    )
  drawn.write(3, skipped=1)
  drawn.close()
  assert scalars(tmp_path) == {
    (3, "loss"): 2.0,
    (3, "gradient_norm"): 1.0,
    (3, "tokens_per_second"): 150.0,
    (3, "skipped_steps"): 1.0,
  }
