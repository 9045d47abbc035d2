"""A file of lines in, a file of lines out: as many, in the same order."""

from __future__ import annotations

import gin
from absl import logging

from mesh_tf2.data.text_file import TextFile

from .checkpoint_steps import restored_checkpoints
from .context import prepare
from .decoding import Decoder
from .mesh_shapes import MODULE
from .results import write_lines
from .settings import Settings


def infer_checkpoints(settings: Settings) -> None:
  """Decodes a file with each of the checkpoints that are asked for."""
  context = prepare(settings)
  decoder = Decoder(context)
  for step in restored_checkpoints(context, decoder.build):
    decode_from_file(decoder, step)


@gin.configurable(module=MODULE)
def decode_from_file(
  decoder: Decoder,
  step: int,
  input_filename: str = gin.REQUIRED,
  output_filename: str = gin.REQUIRED,
  repeats: int = 1,
) -> None:
  r"""Decodes each line of a file, and writes what comes out as a line.

  Args:
    decoder: of a model.
    step: of the model's checkpoint.
    input_filename: a text file, plain or `.gz`. A line ends at \n only; a \r
      before it is dropped. An empty line is answered by an empty line.
    output_filename: `-<step>` is put behind it.
    repeats: so many lines for each, one after the other, when sampling.

  Raises:
    FileNotFoundError: there is no such file.
  """
  lines = [x for x in TextFile(input_filename).lines() for _ in range(repeats)]
  full = [i for i, line in enumerate(lines) if line.strip()]
  decoded = decoder.decode(decoder.encode([lines[i] for i in full]))
  answers = [""] * len(lines)
  for i, text in zip(full, decoded, strict=True):
    answers[i] = text
  if decoder.is_first:
    path = f"{output_filename}-{step}"
    write_lines(path, answers)
    logging.info("decoded %d lines to %s", len(lines), path)
