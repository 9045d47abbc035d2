"""Several examples in one row of fixed length, so that little of it is padding.

Beside the ids of a feature stand two more features: `..._segmentation` numbers
the examples of a row from 1, with 0 on padding, and `..._position` counts from
0 within each example. Attention is kept within a segment by the first.

Packing looks at a window of examples and places the longest first, each into
the fullest row that it fits into for every feature (best fit decreasing;
Johnson, "Near-optimal bin packing algorithms", MIT 1973). The rows of a window
come out in the order of their first examples, and the examples of a row in
their own order, so that rows of long and of short examples stay mixed.
"""

from collections.abc import Mapping, Sequence

import gin
import numpy as np
import tensorflow as tf

from .dataset_fn import lengths_of
from .pad import trim_and_pad_dataset
from .trim import trim_rows
from .window import Window, ids_windows

WINDOW = 2048
_MODULE = "mesh_tf2.transformer.dataset"


@gin.configurable(module=_MODULE)
def pack_dataset(
  dataset: tf.data.Dataset,
  length: int | Mapping[str, int],
  keys: Sequence[str] | None = None,
  use_custom_ops: bool = False,
  window: int = WINDOW,
) -> tf.data.Dataset:
  """Packs examples into rows of fixed length.

  Args:
    dataset: dictionaries of vectors of ids. Examples that are too long are
      trimmed; none is split, and zeros within an example are ids like others.
    length: length of a row, one for all features or one for each.
    keys: features to pack; None for all. Others are dropped.
    use_custom_ops: accepted for the original's gin files; there is one way.
    window: examples to choose from; more of them leave less padding and need
      more memory.

  Returns:
    A dataset of dictionaries of int32 vectors: every key, its segmentation and
    its position.

  Raises:
    ValueError: if a feature has no length.
  """
  del use_custom_ops
  keys = list(keys or dataset.element_spec)
  lengths = lengths_of(keys, length)
  chosen = dataset.map(lambda example: {key: example[key] for key in keys})
  trimmed = ids_windows(chosen, window).map(
    lambda w: {key: trim_rows(ids, lengths[key]) for key, ids in w.items()}
  )
  return pack_windows(trimmed, lengths)


@gin.configurable(module=_MODULE)
def pack_or_pad(
  dataset: tf.data.Dataset,
  length: int | Mapping[str, int],
  pack: bool = True,
  feature_keys: Sequence[str] | None = None,
  ensure_eos: bool = False,
) -> tf.data.Dataset:
  """Packs or pads examples to rows of fixed length.

  Args:
    dataset: dictionaries of vectors of ids.
    length: length of a row, one for all features or one for each.
    pack: several examples per row, or one.
    feature_keys: features to pack or pad; None for all.
    ensure_eos: ends with EOS every example that is as long as a row or longer.

  Returns:
    A dataset of dictionaries of vectors of fixed length.

  Raises:
    ValueError: if a feature has no length.
  """
  keys = list(feature_keys or dataset.element_spec)
  lengths = lengths_of(keys, length)
  if ensure_eos:
    dataset = dataset.map(
      lambda example: {
        key: _end(ids, lengths[key]) if key in lengths else ids
        for key, ids in example.items()
      }
    )
  if pack:
    return pack_dataset(dataset, lengths, keys)
  return trim_and_pad_dataset(dataset, lengths, keys)


def _end(ids: tf.Tensor, length: int) -> tf.Tensor:
  row = tf.RaggedTensor.from_row_lengths(ids, tf.shape(ids, tf.int64))
  return trim_rows(row, length, ensure_eos=True).flat_values


def pack_windows(
  windows: tf.data.Dataset, lengths: Mapping[str, int]
) -> tf.data.Dataset:
  """Packs windows whose examples were trimmed to `lengths`."""
  keys = list(windows.element_spec)

  def pack(window: Window) -> dict[str, tf.Tensor]:
    arguments, names, specs = [], [], []
    for key in keys:
      arguments += [window[key].flat_values, window[key].row_lengths()]
      names += [key, f"{key}_segmentation", f"{key}_position"]
      specs += [[None, lengths[key]]] * 3

    def rows(*parts: np.ndarray) -> list[np.ndarray]:
      return pack_arrays(parts[::2], parts[1::2], [lengths[k] for k in keys])

    packed = tf.numpy_function(
      rows, arguments, [tf.int32] * len(names), stateful=False
    )
    return {
      name: tf.ensure_shape(tensor, spec)
      for name, tensor, spec in zip(names, packed, specs, strict=True)
    }

  return windows.map(pack).unbatch()


def pack_arrays(
  ids: Sequence[np.ndarray],
  sizes: Sequence[np.ndarray],
  lengths: Sequence[int],
) -> list[np.ndarray]:
  """Packs one window.

  Args:
    ids: for each feature the ids of all examples, one after the other.
    sizes: for each feature the number of ids of every example.
    lengths: for each feature the length of a row.

  Returns:
    For each feature three int32 arrays [rows, length]: ids, segmentation (the
    same number for the same example in all features) and position.
  """
  rows = assign_rows(np.stack(sizes, axis=1), np.array(lengths))
  order = np.argsort(rows, kind="stable")  # by row, then as they came
  sorted_rows = rows[order]
  starts = np.searchsorted(sorted_rows, sorted_rows)
  segments = np.arange(len(rows)) - starts + 1  # within the row
  num_rows = int(rows.max()) + 1 if len(rows) else 0
  packed = []
  for values, size, length in zip(ids, sizes, lengths, strict=True):
    packed += _place(
      values, size, order, sorted_rows, segments, (num_rows, length)
    )
  return packed


def _place(
  values: np.ndarray,
  sizes: np.ndarray,
  order: np.ndarray,
  rows: np.ndarray,
  segments: np.ndarray,
  shape: tuple[int, int],
) -> list[np.ndarray]:
  """Writes one feature; `rows` and `segments` are given in `order`."""
  begins = (np.cumsum(sizes) - sizes)[order]  # of an example, in `values`
  sizes = sizes[order]
  ends = np.cumsum(sizes)
  position = np.arange(len(values)) - np.repeat(ends - sizes, sizes)
  first = np.searchsorted(rows, rows)  # the first example of the same row
  offset = (ends - sizes) - (ends - sizes)[first]  # of an example, in its row
  target = np.repeat(rows * shape[1] + offset, sizes) + position
  out = np.zeros([3, shape[0] * shape[1]], np.int32)
  out[0, target] = values[np.repeat(begins, sizes) + position]
  out[1, target] = np.repeat(segments, sizes)
  out[2, target] = position
  return list(out.reshape([3, *shape]))


def assign_rows(sizes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
  """The row of every example: best fit, the longest first.

  Args:
    sizes: examples, features: numbers of ids, none above its length.
    lengths: features: lengths of a row.

  Returns:
    For every example the number of its row; rows are numbered in the order of
    their first examples.
  """
  share = sizes / lengths  # of a row
  rows = np.empty(len(sizes), np.int64)
  free = np.empty_like(sizes)  # rows, features: ids that are still free
  left = np.empty(len(sizes))  # rows: the same, as a share, over the features
  count = 0
  for example in np.argsort(-share.max(axis=1), kind="stable"):
    fits = (free[:count] >= sizes[example]).all(axis=1).nonzero()[0]
    if len(fits):
      row = fits[left[fits].argmin()]
    else:
      row, count = count, count + 1
      free[row], left[row] = lengths, len(lengths)
    free[row] -= sizes[example]
    left[row] -= share[example].sum()
    rows[example] = row
  _, first = np.unique(rows, return_index=True)
  renumbered = np.empty(count, np.int64)
  renumbered[np.argsort(first)] = np.arange(count)
  return renumbered[rows]
