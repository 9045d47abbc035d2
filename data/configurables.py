"""Importing this registers all that a gin file can name of the data."""

from . import (  # noqa: F401
  byte_vocabulary,
  eval_dataset,
  packing,
  parallel_tsv,
  sentencepiece_vocabulary,
  sized_vocabulary,
  t2t_vocabulary,
  text_dataset,
  text_lines,
  text_pair,
  tfds_reader,
  tfrecord_reader,
  trained_vocabulary,
  vocabulary,
)
from .builtin import corpus  # noqa: F401
