"""Cuts arrays into the slices of a grid, and writes and reads them so."""

import itertools

import numpy as np
import tensorflow as tf

from mesh_tf2.checkpoint import Slice


def boxes(shape, parts):
  """Begin and size of each cell of a grid of `parts` cells a dimension."""
  edges = [
    [full * i // n for i in range(n + 1)]
    for full, n in zip(shape, parts, strict=True)
  ]
  for cell in itertools.product(*map(itertools.pairwise, edges)):
    yield tuple(a for a, _ in cell), tuple(b - a for a, b in cell)


def slices(name, value, parts, dtype=None):
  value = np.asarray(value)
  for begin, size in boxes(value.shape, parts):
    at = tuple(slice(b, b + n) for b, n in zip(begin, size, strict=True))
    yield Slice(name, value.shape, begin, tf.constant(value[at], dtype))


def whole(name, value, dtype=None):
  value = tf.constant(value, dtype)
  return Slice(name, tuple(value.shape), (0,) * value.shape.rank, value)


def read_in_slices(reader, name, parts):
  """Reads the cells of a grid one by one, and puts them together."""
  shape, dtype = reader.inventory()[name]
  result = np.empty(shape, dtype.as_numpy_dtype)
  for begin, size in boxes(shape, parts):
    at = tuple(slice(b, b + n) for b, n in zip(begin, size, strict=True))
    result[at] = reader.read(name, shape, begin, size, dtype).numpy()
  return result


def names(folder):
  """What is in a folder."""
  return sorted(path.name for path in folder.iterdir())
