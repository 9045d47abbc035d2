"""The lines of a log that show how far training has come."""

import logging

import pytest

from mesh_tf2.transformer.run import messages, progress


class Clock:
  def __init__(self):
    self.now = 0.0

  def __call__(self):
    return self.now


@pytest.fixture
def clock():
  return Clock()


def test_a_log_gets_a_line_every_so_many_steps(clock, caplog):
  shown = progress.Progress(100, 1100, 20, clock=clock, terminal=False)
  with caplog.at_level(logging.INFO, "absl"):
    for step in (110, 120, 130, 140):
      clock.now += 5
      shown.show(progress.Window(step, 3.25, 2000))
  assert [r.getMessage() for r in caplog.records] == [
    "step 120 of 1100: loss 3.250, 400 tokens per second, 8 min 10 s left",
    "step 140 of 1100: loss 3.250, 400 tokens per second, 8 min 00 s left",
  ]


def test_a_terminal_gets_a_bar_and_no_lines(clock, caplog, capsys):
  shown = progress.Progress(0, 10, 1, clock=clock, terminal=True)
  clock.now += 2
  with caplog.at_level(logging.INFO, "absl"):
    shown.show(progress.Window(10, 1.5, 3000))
  shown.close()
  assert not caplog.records
  assert "10/10" in (bar := capsys.readouterr().err)
  assert "loss 1.500, 1,500 tokens/s" in bar


@pytest.mark.parametrize(
  ("seconds", "text"),
  [(0.4, "0 s"), (59, "59 s"), (61, "1 min 01 s"), (3725, "1 h 02 min")],
)
def test_a_length_of_time_is_told_in_two_units(seconds, text):
  assert messages.duration(seconds) == text
