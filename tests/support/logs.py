"""Leaves loggers as they were."""

import contextlib
import logging
import warnings

import absl.logging


@contextlib.contextmanager
def kept():
  """Puts handlers, levels and the way of showing warnings back afterwards."""
  loggers = [
    absl.logging.get_absl_logger(),
    logging.getLogger(),
    logging.getLogger("tensorflow"),
  ]
  before = [(x.handlers[:], x.propagate) for x in loggers]
  verbosity, show = absl.logging.get_verbosity(), warnings.showwarning
  try:
    yield
  finally:
    for logger, (handlers, propagate) in zip(loggers, before, strict=True):
      logger.handlers, logger.propagate = handlers, propagate
    absl.logging.set_verbosity(verbosity)
    warnings.showwarning = show
