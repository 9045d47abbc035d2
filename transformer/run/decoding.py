"""Has a model decode many rows of ids, however long and however many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tqdm
from absl import logging

import mesh_tf2 as mtf
from mesh_tf2.data.language_model import delimited_length
from mesh_tf2.data.vocabulary import inputs_vocabulary, targets_vocabulary

from .context import Context
from .decodes import clean_decodes
from .features import ENCODER_DECODER, import_features

LANGUAGE_MODELS = ("lm", "delimited_lm")


class Decoder:
  """From texts to texts, with the variables that the program has at the time.

  Args:
    context: program, model and settings.

  Raises:
    ValueError: a model of this type does not decode.
  """

  def __init__(self, context: Context) -> None:
    self._context = context
    self._model_type = model_type = context.settings.model_type
    if model_type not in (ENCODER_DECODER, *LANGUAGE_MODELS):
      raise ValueError(
        f"run.model_type {model_type!r} does not decode; set run.mode = "
        '"perplexity_eval"'
      )
    self._decode = context.program.function(self._graph)

  @property
  def is_first(self) -> bool:
    """Whether it is up to this process to write what is decoded."""
    return self._context.program.processes.is_first

  def build(self) -> None:
    """Makes the variables that decoding needs."""
    rows = [self._context.settings.batch_size, self._length()]
    self._decode.build(
      tf.TensorSpec(rows, tf.int32), tf.TensorSpec([], tf.int64)
    )

  def encode(self, texts: Sequence[str]) -> list[list[int]]:
    """The ids that the model is given for each text.

    An encoder reads the text and the end of the sequence, and so does a
    language model that follows inputs with targets; one that continues a text
    does not read an end, and has room for one token more. What is too long is
    cut; an end stays the end.
    """
    settings = self._context.settings
    continues = self._model_type == "lm"
    pick = targets_vocabulary if continues else inputs_vocabulary
    vocabulary = pick(settings.vocabulary)
    end = [] if continues else [vocabulary.eos_id]
    room = settings.sequence_length["targets" if continues else "inputs"]
    room -= continues
    rows = vocabulary.encode_batch(texts)
    if too_long := sum(len(row) + len(end) > room for row in rows):
      logging.warning(
        "%d of %d texts were longer than %d tokens and were truncated",
        too_long,
        len(rows),
        room,
      )
    return [[*row[: room - len(end)], *end] for row in rows]

  def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
    """The text that the model makes of each row of ids.

    Args:
      rows: ids without padding, none longer than `encode` makes them.

    Returns:
      A text for each of `rows`, in their order.
    """
    # Rows of about the same length together: a batch is decoded until its
    # longest row has ended.
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
    size = self._context.settings.batch_size
    vocabulary = targets_vocabulary(self._context.settings.vocabulary)
    texts = [""] * len(rows)
    starts = range(0, len(rows), size)
    for start in tqdm.tqdm(starts, "decoding", unit="batch", disable=None):
      chosen = order[start : start + size]
      decoded = self._batch([rows[i] for i in chosen], start)
      for i, ids in zip(chosen, decoded, strict=False):
        texts[i] = vocabulary.decode(ids)
    return texts

  def _batch(self, rows: Sequence[Sequence[int]], number: int) -> np.ndarray:
    """Ids decoded from the ids of at most a batch of rows."""
    size = self._context.settings.batch_size
    batch = np.zeros([size, self._length()], np.int32)
    # More copies of the first row fill up the batch: they take no longer.
    for i in range(size):
      row = rows[i] if i < len(rows) else rows[0]
      batch[i, : len(row)] = row
    ids = self._decode(tf.constant(batch), tf.constant(number, tf.int64))
    if self._model_type == ENCODER_DECODER:
      ids = clean_decodes(ids)
    return np.asarray(ids)

  def _length(self) -> int:
    """The length of the rows that the model is given."""
    length = self._context.settings.sequence_length
    if self._model_type == ENCODER_DECODER:
      return length["inputs"]
    if self._model_type == "lm":
      return length["targets"]
    return delimited_length(length)

  def _graph(
    self, mesh: mtf.Mesh, ids: tf.Tensor, number: tf.Tensor
  ) -> mtf.Tensor:
    """Decoded ids: batch, length. `number` tells the batches' samples apart."""
    context = self._context
    settings = context.settings
    mesh.graph.random_salt = number
    key = "inputs" if self._model_type == ENCODER_DECODER else "targets"
    given = import_features(mesh, {key: ids})[key]
    if settings.evaluation.predict_fn is not None:
      return settings.evaluation.predict_fn(
        context.model, given, context.variable_dtype
      )
    if self._model_type == ENCODER_DECODER:
      return context.model.decode(given, variable_dtype=context.variable_dtype)
    remove = {"remove_partial_sequences": True}
    return context.model.sample_autoregressive(
      given,
      variable_dtype=context.variable_dtype,
      **(remove if self._model_type == "delimited_lm" else {}),
    )
