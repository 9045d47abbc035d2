"""Gradients of NumPy functions, by central differences in float64."""

import numpy as np

STEP = 1e-5


def gradients(fn, arrays, weights):
  """Gradients of sum(weights * fn(*arrays)) for the floating arrays.

  Args:
    fn: returns a list of arrays.
    arrays: float64 or integers.
    weights: for each result an array, or None to leave it out.

  Returns:
    For each array its gradient, or None if it holds no floats.
  """

  def loss(arrays):
    ys = fn(*arrays)
    pairs = zip(ys, weights, strict=True)
    return sum(np.sum(y * w) for y, w in pairs if w is not None)

  return [
    _gradient(loss, arrays, i) if x.dtype == np.float64 else None
    for i, x in enumerate(arrays)
  ]


def _gradient(loss, arrays, i):
  arrays = list(arrays)
  gradient = np.zeros_like(arrays[i])
  for at in np.ndindex(gradient.shape):
    around = []
    for step in (STEP, -STEP):
      moved = arrays[i].copy()
      moved[at] += step
      around.append(loss([*arrays[:i], moved, *arrays[i + 1 :]]))
    gradient[at] = (around[0] - around[1]) / (2 * STEP)
  return gradient
