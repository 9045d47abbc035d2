"""What a run is told, and what is refused at once."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.data import byte_vocabulary
from mesh_tf2.transformer.run import models, settings

from tests.support import small_runs


@pytest.mark.parametrize(
  ("name", "mode"),
  [
    ("train", settings.Mode.TRAIN),
    ("eval", settings.Mode.EVALUATE),
    ("evaluate", settings.Mode.EVALUATE),
    ("perplexity", settings.Mode.PERPLEXITY),
    ("perplexity_eval", settings.Mode.PERPLEXITY),
    ("infer", settings.Mode.INFER),
    ("train_eval", settings.Mode.TRAIN_EVALUATE),
  ],
)
def test_a_mode_has_the_original_name_and_a_plain_one(name, mode):
  assert settings.Mode.from_name(name) is mode


def test_an_unknown_mode_is_answered_with_the_known_ones():
  with pytest.raises(ValueError, match=r"no mode 'tarin'; take one of train, "):
    settings.Mode.from_name("tarin")


def test_mesh_and_devices_that_differ_are_told_in_one_line(tmp_path):
  with pytest.raises(mtf.LayoutError) as error:
    small_runs.make_settings(tmp_path, devices=["cpu:0", "cpu:1"])
  assert str(error.value) == (
    "run.mesh_shape [batch:2 model:4] has 8 processors, run.mesh_devices has 2 "
    "devices"
  )


@pytest.mark.parametrize("parameter", ["steps", "save_steps", "log_steps"])
def test_a_number_of_steps_is_at_least_one(tmp_path, parameter):
  with pytest.raises(ValueError, match="is 0; it is a number of steps"):
    small_runs.make_settings(tmp_path, **{parameter: 0})


def test_at_least_one_checkpoint_is_kept(tmp_path):
  with pytest.raises(ValueError, match=r"run\.keep_checkpoint_max is 0; it is"):
    small_runs.make_settings(tmp_path, keep_checkpoints=0)


def test_a_model_dir_is_needed():
  with pytest.raises(
    ValueError, match="model_dir is empty; name it with --mod"
  ):
    small_runs.make_settings("")


def test_lengths_are_one_number_or_one_for_each_feature():
  assert settings.lengths(8) == {"inputs": 8, "targets": 8}
  assert settings.lengths({"targets": 4}) == {"targets": 4}
  with pytest.raises(ValueError, match="sequence_length is not set"):
    settings.lengths(None)


@pytest.mark.parametrize(
  "wrong", [0, 2.5, "8", [8, 8], {"targets": 0}, {"targets": "a"}]
)
def test_a_length_is_a_number_of_tokens(wrong):
  with pytest.raises(ValueError, match=r"sequence_length is .* at least 1"):
    settings.lengths(wrong)


def test_a_model_that_reads_inputs_needs_their_length(tmp_path):
  fine = small_runs.make_settings(tmp_path, model_type="bitransformer")
  with pytest.raises(
    ValueError, match=r"'bitransformer' needs the length of inputs, too"
  ):
    dataclasses.replace(fine, sequence_length={"targets": 8})


@pytest.mark.parametrize("wrong", [len, byte_vocabulary.ByteVocabulary])
def test_what_makes_a_vocabulary_is_none(wrong):
  fine = byte_vocabulary.ByteVocabulary()
  assert settings.required((fine, fine)) == (fine, fine)
  with pytest.raises(ValueError, match=rf"write .*: @{wrong.__name__}\(\)"):
    settings.required((fine, wrong))


def test_a_learning_rate_is_a_number_a_schedule_or_factors():
  def half(step, total):
    return tf.cast(step, tf.float32) / tf.cast(total, tf.float32)

  rates = [settings.schedule(r)(4, 8) for r in (0.3, half, [0.5, half, 4])]
  np.testing.assert_allclose(rates, [0.3, 0.5, 1.0])


def test_an_unknown_type_of_model_is_answered_with_the_known_ones():
  with pytest.raises(ValueError, match=r"'lmm'; take one of bitransformer, lm"):
    models.build_model("lmm", 8, 8)


@pytest.mark.parametrize("rate", ["fast", [], [0.1, None]])
def test_a_rate_that_is_none_is_told_what_it_can_be(rate):
  with pytest.raises(ValueError, match=r"learning_rate_schedule is .*number"):
    settings.schedule(rate)


def test_a_plan_for_no_steps_is_refused(tmp_path):
  with pytest.raises(ValueError, match=r"run.total_run_steps is 0"):
    small_runs.make_settings(tmp_path, total_steps=0)
