"""What operations ask of their operands: a kind of dtype, sizes that agree.

Both are looked at when the graph is built, so that no mistake of this sort is
left for TensorFlow to find in a slice.
"""

from __future__ import annotations

import enum

import tensorflow as tf

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension, Shape


class Kind(enum.Enum):
  """A set of dtypes: what it is called, the way out, and what is in it."""

  ANY = ("any dtype", "", lambda t: True)
  BOOL = (
    "bool",
    "compare it first, for example with mtf.not_equal(x, 0)",
    lambda t: t == tf.bool,
  )
  INTEGER = (
    "integers",
    "cast it first, for example with mtf.to_int32",
    lambda t: t.is_integer,
  )
  ORDERED = (
    "real numbers",
    "cast it first, for example with mtf.to_int32",
    lambda t: t.is_integer or t.is_floating,
  )
  NUMBER = (
    "numbers",
    "cast it first, for example with mtf.to_int32",
    lambda t: t.is_integer or t.is_floating or t.is_complex,
  )
  SIGNED = (
    "signed numbers",
    "cast it first, for example with mtf.to_int32",
    lambda t: t.is_floating or t.is_complex or t.is_integer > t.is_unsigned,
  )
  REAL = (
    "real floating numbers",
    "cast it first, for example with mtf.to_float",
    lambda t: t.is_floating,
  )
  FLOAT = (
    "floating numbers",
    "cast it first, for example with mtf.to_float",
    lambda t: t.is_floating or t.is_complex,
  )

  def check(self, op: str, dtype: tf.DType) -> None:
    """Raises ValueError where `op`, which takes this kind, gets `dtype`."""
    words, way_out, accepts = self.value
    if not accepts(dtype):
      raise ValueError(f"{op} takes {words}, got {dtype.name}; {way_out}")


def check_tensor(op: str, x: object) -> None:
  """Raises TypeError where `op` is given something else than a mesh tensor."""
  if not isinstance(x, Tensor):
    raise TypeError(
      f"{op} takes a mesh tensor, got {x!r}; make one of it with "
      "mtf.import_tf_tensor"
    )


def check_kept(op: str, wanted: Shape, points: Shape) -> None:
  """Raises ShapeError where an `output_shape` lacks some of the dimensions."""
  if lost := points.drop(wanted):
    raise ShapeError(
      f"{op}: output_shape=[{wanted}] lacks [{lost}] of the operands; add it, "
      "or sum over it first with mtf.reduce_sum"
    )


def agreed_union(op: str, *xs: Tensor) -> Shape:
  """The dimensions of all tensors, each once, in order of first appearance.

  Raises:
    ShapeError: a name stands for two sizes.
  """
  known: dict[str, tuple[Dimension, Tensor]] = {}
  for x in xs:
    for d in x.shape:
      first, owner = known.setdefault(d.name, (d, x))
      if first != d:
        raise ShapeError(
          f"{op}: dimension '{d.name}' has size {first.size} in {owner.name} "
          f"[{owner.shape}] and size {d.size} in {x.name} [{x.shape}]; rename "
          "it in one of them, or make the sizes equal"
        )
  return Shape(d for d, _ in known.values())
