"""TensorFlow functions on slices, written over the trailing axes.

A slice may carry extra axes in front (the virtual mesh keeps its processors
there), so everything here counts axes from the back or is given their number.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import math
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.shape import Shape

# The constants of each TensorFlow graph, by dtype, shape and bytes.
Constants = MutableMapping[Any, dict[Any, tf.Tensor]]
_known: contextvars.ContextVar[Constants | None] = contextvars.ContextVar(
  "constants", default=None
)


@contextlib.contextmanager
def sharing_constants(known: Constants) -> Iterator[None]:
  """Makes no constant twice within the block, where all is on one device.

  A third of the nodes of a training step are shapes, axes and numbers, and few
  of these differ.
  """
  token = _known.set(known)
  try:
    yield
  finally:
    _known.reset(token)


def constant(value: Any) -> Any:
  """A NumPy array or a list of integers, for TensorFlow's functions."""
  known = _known.get()
  if known is None or tf.executing_eagerly():
    return value
  array = value if isinstance(value, np.ndarray) else np.array(value, np.int32)
  here = known.setdefault(tf.compat.v1.get_default_graph(), {})
  key = array.dtype, array.shape, array.tobytes()
  if key not in here:
    here[key] = tf.constant(array)
  return here[key]


def transpose(x: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
  """Permutes the last `len(order)` axes."""
  if list(order) == list(range(len(order))):
    return x
  lead = x.shape.rank - len(order)
  order = [*range(lead), *(lead + i for i in order)]
  return tf.transpose(x, constant(order))


def reshape(x: tf.Tensor, ndims: int, sizes: Sequence[int]) -> tf.Tensor:
  """Gives the last `ndims` axes the sizes `sizes`."""
  lead = x.shape.as_list()[: x.shape.rank - ndims]
  if x.shape.as_list() == [*lead, *sizes]:
    return x
  return tf.reshape(x, constant([*lead, *sizes]))


def align(x: tf.Tensor, shape: Shape, target: Shape) -> tf.Tensor:
  """Reorders a slice and gives it size-1 axes, to broadcast to `target`."""
  kept = target.keep(shape)
  x = transpose(x, [shape.index(d) for d in kept])
  if len(kept) == len(target):
    return x
  sizes = x.shape.as_list()[x.shape.rank - len(kept) :]
  left = iter(sizes)
  full = [next(left) if d in shape else 1 for d in target]
  return reshape(x, len(kept), full)


def append_axes(x: tf.Tensor, ndims: int) -> tf.Tensor:
  """Adds `ndims` axes of size 1 at the end."""
  return tf.reshape(x, constant([*x.shape.as_list(), *[1] * ndims]))


def prepend_axes(x: tf.Tensor, ndims: int, count: int) -> tf.Tensor:
  """Adds `count` axes of size 1 before the last `ndims` axes."""
  sizes = x.shape.as_list()
  at = len(sizes) - ndims
  return tf.reshape(x, constant([*sizes[:at], *[1] * count, *sizes[at:]]))


# TensorFlow's own functions stop where axes of size 1 in one tensor and in the
# other take turns too often; these do not.

_TURNS = 5
_AXES_OF_THREE = 8  # with three operands it counts every axis


def broadcast_to(x: tf.Tensor, sizes: Sequence[int]) -> tf.Tensor:
  """Repeats a tensor along its axes of size 1, until it has these sizes."""
  own = x.shape.as_list()
  own = [1] * (len(sizes) - len(own)) + own
  if _turns(own, sizes) <= _TURNS:
    return tf.broadcast_to(x, constant(sizes))
  for i, n in enumerate(sizes):
    if own[i] != n:
      before, after = math.prod(own[:i]), math.prod(own[i + 1 :])
      x = tf.reshape(x, [before, 1, after])
      x = tf.broadcast_to(x, [before, n, after])
      own[i] = n
  return tf.reshape(x, own)


def on_points(fn: Callable[..., tf.Tensor], *xs: tf.Tensor) -> tf.Tensor:
  """Runs a function of elements that broadcasts its operands."""
  known = [x.shape.as_list() for x in xs]
  rank = max(map(len, known))
  known = [[1] * (rank - len(sizes)) + sizes for sizes in known]
  if _turns(*known) <= _TURNS and (len(xs) < 3 or rank <= _AXES_OF_THREE):
    return fn(*xs)
  full = [next((n for n in c if n != 1), 1) for c in zip(*known, strict=True)]
  y = fn(*(tf.reshape(broadcast_to(x, full), [-1]) for x in xs))
  return tf.reshape(y, full)


def _turns(*known: Sequence[int]) -> int:
  """How many stretches of axes there are which the same tensors lack."""
  lacking = [tuple(n == 1 for n in c) for c in zip(*known, strict=True)]
  return sum(1 for c, _ in itertools.groupby(lacking) if not all(c))


# TensorFlow's own slice and pad stop at eight axes; these take any number.


def cut(x: tf.Tensor, axis: int, begin: int, size: int) -> tf.Tensor:
  """Positions `begin` to `begin + size` of an axis, which may be negative."""
  sizes = x.shape.as_list()
  flat = _around(x, axis)
  y = tf.slice(flat, [0, begin, 0], [flat.shape[0], size, flat.shape[2]])
  sizes[axis] = size
  return tf.reshape(y, sizes)


def pad(x: tf.Tensor, axis: int, before: int, after: int) -> tf.Tensor:
  """Zeros before and after the positions of an axis, which may be negative."""
  sizes = x.shape.as_list()
  y = tf.pad(_around(x, axis), [[0, 0], [before, after], [0, 0]])
  sizes[axis] += before + after
  return tf.reshape(y, sizes)


def _around(x: tf.Tensor, axis: int) -> tf.Tensor:
  """With one axis for all before `axis`, and one for all behind it."""
  sizes = x.shape.as_list()
  axis %= len(sizes)
  before, after = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
  return tf.reshape(x, [before, sizes[axis], after])
