"""A row of the conformance table: one use of one operation."""

import collections
import dataclasses
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import mesh_tf2 as mtf

from tests.support import finite_differences


@dataclasses.dataclass(frozen=True)
class Input:
  """A tensor that goes in: its shape, and what kind of numbers it holds."""

  shape: mtf.Shape
  kind: str = "normal"

  def array(self, rng):
    """The same numbers every time; float32 numbers, held as float64."""
    size = self.shape.to_integer_list
    make = {
      "normal": lambda: _spread_out(rng, size),
      "positive": lambda: rng.uniform(0.5, 2.0, size),
      "integers": lambda: rng.integers(-4, 10, size, np.int32),
      "ties": lambda: rng.integers(0, 3, size, np.int32),
      "bool": lambda: rng.integers(0, 2, size) > 0,
    }[self.kind]
    array = np.asarray(make())
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _spread_out(rng, size):
  """Numbers between -3 and 3, of which no two are equal, in bfloat16 too."""
  count = math.prod(size)
  numbers = rng.permutation(np.arange(count) + 0.5) / count * 6 - 3
  return np.reshape(numbers * rng.uniform(0.9, 1.0), size)


@dataclasses.dataclass(frozen=True)
class Row:
  """One use of one operation.

  Attributes:
    name: of the public function.
    build: `f(mesh, *tensors)` returns a tensor or several.
    inputs: what it is called with.
    reference: the same on arrays, in NumPy; without one, the result on one
      processor is taken.
    out: the shapes of the results.
    dtype: of the results; by default that of the first input.
    unsplit: names of the dimensions that must not be split.
    has_gradient: whether to look at the gradient.
    gradient: `f(*arrays, *weights)` returns the gradients, where those of the
      reference are not meant.
    dtypes: further dtypes to try.
    covers: other names of the function.
  """

  name: str
  build: Callable[..., Any]
  inputs: tuple[Input, ...]
  reference: Callable[..., Any] | None
  out: tuple[mtf.Shape, ...]
  dtype: str | None = None
  unsplit: frozenset[str] = frozenset()
  has_gradient: bool = True
  gradient: Callable[..., Any] | None = None
  dtypes: tuple[str, ...] = ()
  covers: tuple[str, ...] = ()
  label: str = ""

  def __str__(self):
    return f"{self.name} {self.label}".strip()

  @property
  def dims(self):
    """(name, sizes) of all dimensions that may be split."""
    sizes = collections.defaultdict(list)
    for shape in [*(x.shape for x in self.inputs), *self.out]:
      for d in shape:
        sizes[d.name].append(d.size)
    return [(n, s) for n, s in sizes.items() if n not in self.unsplit]

  @property
  def seed(self):
    return zlib.crc32(str(self).encode())

  def arrays(self):
    rng = np.random.default_rng(self.seed)
    return [x.array(rng) for x in self.inputs]

  def weights(self):
    """With which the results are added up to a loss."""
    rng = np.random.default_rng(self.seed + 1)
    return [
      rng.normal(size=s.to_integer_list).astype(np.float32) for s in self.out
    ]

  def expected(self, arrays):
    """The results according to the reference, as a list of arrays."""
    result = self.reference(*map(_widest, arrays))
    return list(result) if isinstance(result, (list, tuple)) else [result]

  def expected_gradients(self, arrays, weights):
    """The gradients according to the reference."""
    wide = [_widest(x) for x in arrays]
    if self.gradient is not None:
      result = self.gradient(*wide, *weights)
      return list(result) if isinstance(result, (list, tuple)) else [result]
    ys = self.expected(arrays)
    floating = [
      w if np.issubdtype(y.dtype, np.floating) else None
      for y, w in zip(map(np.asarray, ys), weights, strict=True)
    ]
    return finite_differences.gradients(
      lambda *xs: self.expected(xs), wide, floating
    )


def _widest(x):
  return x.astype(np.float64) if x.dtype == np.float32 else x


def row(name, build, inputs, reference, out, **kwargs):
  """A row, from shorter words.

  Args:
    name: of the public function; `"gather: batched"` adds a label.
    build: see `Row`.
    inputs: shapes like `"a:4 b:8"`, or pairs of a shape and a kind.
    reference: see `Row`.
    out: a shape, or a list of them.
    **kwargs: see `Row`.
  """
  name, _, label = name.partition(": ")
  pairs = [(x, "normal") if isinstance(x, str) else x for x in inputs]
  outs = [out] if isinstance(out, str) else out
  return Row(
    name,
    build,
    tuple(Input(mtf.convert_to_shape(s), kind) for s, kind in pairs),
    reference,
    tuple(map(mtf.convert_to_shape, outs)),
    unsplit=frozenset(kwargs.pop("unsplit", "").split()),
    covers=tuple(kwargs.pop("covers", "").split()),
    label=label,
    **kwargs,
  )
