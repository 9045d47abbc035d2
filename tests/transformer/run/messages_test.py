"""What a person sees of what is logged."""

import logging
import warnings

import absl.logging
import pytest

from mesh_tf2.transformer.run import messages

from tests.support import logs


@pytest.fixture
def shown():
  with logs.kept():
    messages.show_messages()
    yield absl.logging.get_absl_logger()


def test_messages_are_plain_lines_and_warnings_say_so(shown, capsys):
  absl.logging.info("step %d", 3)
  absl.logging.warning("no space")
  assert capsys.readouterr().err == "step 3\nwarning: no space\n"


def test_chatter_of_tensorflow_is_not_shown(shown, capsys):
  for level, text in ((logging.INFO, "hum"), (logging.WARNING, "beware")):
    path = "/lib/tensorflow/python/training/saver.py"
    shown.handle(logging.LogRecord("absl", level, path, 1, text, (), None))
  assert capsys.readouterr().err == "warning: beware\n"


def test_a_warning_is_a_line_without_a_place_in_the_code(shown, capsys):
  with warnings.catch_warnings():
    warnings.simplefilter("always")
    warnings.showwarning = messages._warn  # which catch_warnings puts back
    warnings.warn("a rule splits nothing", stacklevel=1)
  assert capsys.readouterr().err == "warning: a rule splits nothing\n"


def test_what_others_log_has_no_time_and_place_either(shown, capsys):
  logging.getLogger("mesh_tf2.checkpoint.directory").warning("cut short")
  logging.getLogger("tensorflow").warning("retracing")
  shown = capsys.readouterr().err
  assert shown == "warning: cut short\nwarning: retracing\n"
