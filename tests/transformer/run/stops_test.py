"""Ctrl-C, SIGTERM, and losses that are no numbers."""

import os
import signal

import pytest

from mesh_tf2.transformer.run import stops


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_acts(number):
  acted = []
  before = signal.signal(number, lambda *_: acted.append(1))
  try:
    with stops.stop_requests() as request:
      assert not request
      os.kill(os.getpid(), number)
      assert request
      assert request.name == signal.Signals(number).name
      assert not acted
      os.kill(os.getpid(), number)
      assert acted == [1]
    os.kill(os.getpid(), number)
    assert acted == [1, 1]
  finally:
    signal.signal(number, before)


def test_handlers_are_put_back_when_nothing_came():
  before = signal.getsignal(signal.SIGTERM)
  with stops.stop_requests():
    assert signal.getsignal(signal.SIGTERM) is not before
  assert signal.getsignal(signal.SIGTERM) is before


def test_a_loss_that_is_no_number_says_where_to_go_back_to():
  text = str(stops.non_finite(7, "dir/model.ckpt-5"))
  assert "step 7: " in text
  assert "go back to the checkpoint dir/model.ckpt-5" in text
  assert "no checkpoint yet" in str(stops.non_finite(7, None))
