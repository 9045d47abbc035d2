"""Convolution and pooling in NumPy: loops over positions, nothing clever."""

import dataclasses
import itertools

import numpy as np


@dataclasses.dataclass(frozen=True)
class Loops:
  """All pairs of an output and what it sees, one after another."""

  sizes: tuple[int, ...]
  strides: tuple[int, ...]
  padding: str
  dilations: tuple[int, ...]
  inputs: tuple[int, ...]

  @property
  def spans(self):
    pairs = zip(self.sizes, self.dilations, strict=True)
    return [(f - 1) * d + 1 for f, d in pairs]

  @property
  def outputs(self):
    lost = [0 if self.padding == "SAME" else s - 1 for s in self.spans]
    rows = zip(self.inputs, lost, self.strides, strict=True)
    return tuple(int(np.ceil((n - l) / s)) for n, l, s in rows)

  def __iter__(self):
    """(output position, filter position, input position) that exist."""
    before = [0] * len(self.sizes)
    if self.padding == "SAME":
      rows = zip(
        self.outputs, self.strides, self.spans, self.inputs, strict=True
      )
      before = [max((o - 1) * s + f - n, 0) // 2 for o, s, f, n in rows]
    for i in itertools.product(*map(range, self.outputs)):
      for k in itertools.product(*map(range, self.sizes)):
        rows = zip(i, self.strides, k, self.dilations, before, strict=True)
        at = tuple(i * s + k * d - b for i, s, k, d, b in rows)
        if all(0 <= a < n for a, n in zip(at, self.inputs, strict=True)):
          yield i, k, at


def loops(sizes, inputs, strides=1, padding="SAME", dilations=1):
  """The same, where one number stands for all dimensions."""
  n = len(sizes)
  strides, dilations = (
    (v,) * n if isinstance(v, int) else tuple(v) for v in (strides, dilations)
  )
  return Loops(tuple(sizes), strides, padding, dilations, tuple(inputs))


def _groups(w, groups):
  """(input channels, output channels) of each group."""
  c, o = w[-2], w[-1] // groups
  return [
    (slice(g * c, g * c + c), slice(g * o, g * o + o)) for g in range(groups)
  ]


def conv(x, w, strides=1, padding="SAME", dilations=1, groups=1):
  """x: batch, spatial, channels; w: filter, channels of a group, outputs."""
  n = w.ndim - 2
  steps = loops(w.shape[:n], x.shape[-n - 1 : -1], strides, padding, dilations)
  y = np.zeros([*x.shape[: -n - 1], *steps.outputs, w.shape[-1]], x.dtype)
  for i, k, at in steps:
    for c, o in _groups(w.shape, groups):
      y[(..., *i, o)] += x[(..., *at, c)] @ w[k][:, o]
  return y


def input_of(w, y, shape, strides=1, padding="SAME", dilations=1, groups=1):
  """The gradient for an input of `shape`."""
  n = w.ndim - 2
  steps = loops(w.shape[:n], shape[-n - 1 : -1], strides, padding, dilations)
  x = np.zeros(shape, y.dtype)
  for i, k, at in steps:
    for c, o in _groups(w.shape, groups):
      x[(..., *at, c)] += y[(..., *i, o)] @ w[k][:, o].T
  return x


def filter_of(x, y, shape, strides=1, padding="SAME", dilations=1, groups=1):
  """The gradient for a filter of `shape`."""
  n = len(shape) - 2
  steps = loops(shape[:n], x.shape[-n - 1 : -1], strides, padding, dilations)
  w = np.zeros(shape, x.dtype)
  for i, k, at in steps:
    for c, o in _groups(shape, groups):
      seen, out = x[(..., *at, c)], y[(..., *i, o)]
      seen = seen.reshape([-1, shape[-2]])
      w[k][:, o] += seen.T @ out.reshape([len(seen), -1])
  return w


def pool(reduce, x, ksize, strides=None, padding="VALID"):
  """`reduce` (np.max, np.mean) of what each output sees."""
  n = len(ksize)
  strides = ksize if strides is None else strides
  steps = loops(ksize, x.shape[-n - 1 : -1], strides, padding)
  y = np.zeros([*x.shape[: -n - 1], *steps.outputs, x.shape[-1]], x.dtype)
  for i, group in itertools.groupby(steps, key=lambda step: step[0]):
    seen = [x[(..., *at, slice(None))] for _, _, at in group]
    y[(..., *i, slice(None))] = reduce(seen, 0)
  return y


def largest_gets(x, dy, ksize, strides=None):
  """The gradient of max-pooling: all of the largest get the whole of it."""
  n = len(ksize)
  strides = ksize if strides is None else strides
  y = pool(np.max, x, ksize, strides)
  dx, every = np.zeros_like(x), slice(None)
  for i, _, at in loops(ksize, x.shape[-n - 1 : -1], strides, "VALID"):
    is_largest = x[(..., *at, every)] == y[(..., *i, every)]
    dx[(..., *at, every)] += is_largest * dy[(..., *i, every)]
  return dx


def mean_gets(shape, dy, ksize):
  """The gradient of mean-pooling: an equal share for all."""
  n = len(ksize)
  dx, every = np.zeros(shape, dy.dtype), slice(None)
  for i, _, at in loops(ksize, shape[-n - 1 : -1], ksize, "VALID"):
    dx[(..., *at, every)] += dy[(..., *i, every)] / np.prod(ksize)
  return dx
