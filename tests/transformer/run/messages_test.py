"""What a person sees of what is logged."""

import logging

import absl.logging
import pytest

from mesh_tf2.transformer.run import messages


@pytest.fixture
def shown():
  logger = absl.logging.get_absl_logger()
  before = logger.handlers, logger.propagate, absl.logging.get_verbosity()
  messages.show_messages()
  yield logger
  logger.handlers, logger.propagate = before[:2]
  absl.logging.set_verbosity(before[2])


def test_messages_are_plain_lines_and_warnings_say_so(shown, capsys):
  absl.logging.info("step %d", 3)
  absl.logging.warning("no space")
  assert capsys.readouterr().err == "step 3\nwarning: no space\n"


def test_chatter_of_tensorflow_is_not_shown(shown, capsys):
  for level, text in ((logging.INFO, "hum"), (logging.WARNING, "beware")):
    path = "/lib/tensorflow/python/training/saver.py"
    shown.handle(logging.LogRecord("absl", level, path, 1, text, (), None))
  assert capsys.readouterr().err == "warning: beware\n"
