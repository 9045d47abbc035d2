"""Linear recurrences: y_i = a_i * y_(i-1) + b_i, all at once.

Two steps in a row are a step of the same form, so pairs are joined, and pairs
of pairs: n steps take about 3n multiplications, in rounds whose number grows
like log n (Blelloch, Prefix sums and their applications, 1990). If the
dimension is split over a mesh axis, the processors exchange what their parts do
as a whole: two allconcats of one element for each processor.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from ..core.graph import Apply, Aval, Tensor, apply
from ..core.primitive import Primitive
from ..core.shape import Dimension, Shape
from ..spmd import slices as on_slice
from ..spmd.laid_out import Slices
from ..spmd.mesh import MeshImpl
from .elementwise import multiply
from .linear.shift import shift

Steps = tuple[tf.Tensor, tf.Tensor]  # a and b of y -> a * y + b


@dataclasses.dataclass(frozen=True)
class Recurrence(Primitive):
  """Runs through a dimension, from its end if `reverse`; starts from zero."""

  dim: Dimension
  reverse: bool
  flops_per_point = 5

  def infer(self, a: Aval, b: Aval) -> Aval:
    a.shape.index(self.dim)
    if a != b:
      raise ValueError(f"recurrence takes two tensors alike, got {a} and {b}")
    return a

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    (a, _), (y,) = op.inputs, op.outputs
    step = -1 if self.reverse else 1
    following = shift(a, -step, self.dim, wrap=False)
    db = recurrence(following, dy, self.dim, not self.reverse)
    return [multiply(db, shift(y, step, self.dim, wrap=False)), db]

  def lower(self, mesh: MeshImpl, op: Apply, a: Slices, b: Slices) -> Slices:
    shape, dtype = op.outputs[0].shape, op.outputs[0].dtype
    last = Shape([*(shape - self.dim), self.dim])
    back = [last.index(d) for d in shape]
    wide = tf.float32 if dtype.is_floating and dtype.size < 4 else dtype

    def along(a: tf.Tensor, b: tf.Tensor) -> Steps:
      steps = (
        self._turn(tf.cast(on_slice.align(x, shape, last), wide))
        for x in (a, b)
      )
      return _joined(*steps)

    def restore(y: tf.Tensor) -> tf.Tensor:
      return on_slice.transpose(tf.cast(self._turn(y), dtype), back)

    a, b = mesh.map_trailing(along, a, b)
    axis = mesh.tensor_dimension_to_mesh_axis(self.dim)
    y = b if axis is None else self._start(mesh, axis, a, b)
    return mesh.map_trailing(restore, y)

  def _turn(self, x: tf.Tensor) -> tf.Tensor:
    return tf.reverse(x, [x.shape.rank - 1]) if self.reverse else x

  def _start(self, mesh: MeshImpl, axis: int, a: Slices, b: Slices) -> Slices:
    """Begins each part with what the parts before it end with."""
    at = len(mesh.slice_sizes(a)) - 1
    m = mesh.shape[axis].size
    wholes = [
      mesh.allconcat(mesh.map_trailing(lambda x: x[..., -1:], x), axis, at)
      for x in (a, b)
    ]

    def start(
      a: tf.Tensor,
      b: tf.Tensor,
      all_a: tf.Tensor,
      all_b: tf.Tensor,
      coordinate: tf.Tensor,
    ) -> tf.Tensor:
      _, ends = _joined(self._turn(all_a), self._turn(all_b))
      ends = tf.concat([tf.zeros_like(ends[..., :1]), ends[..., :-1]], -1)
      mine = m - 1 - coordinate if self.reverse else coordinate
      is_mine = tf.equal(tf.range(m), on_slice.append_axes(mine, at + 1))
      chosen = tf.where(is_mine, ends, tf.zeros([], ends.dtype))
      return a * tf.reduce_sum(chosen, -1, keepdims=True) + b

    coordinate = mesh.processor_coordinate(axis)
    return mesh.map_trailing(start, a, b, *wholes, coordinate)


def _joined(a: tf.Tensor, b: tf.Tensor) -> Steps:
  """All steps up to each one, as one step; along the last axis."""
  n = a.shape[-1]
  if n < 2:
    return a, b
  even, odd = (a[..., ::2], b[..., ::2]), (a[..., 1::2], b[..., 1::2])
  pairs = _joined(
    *_after((even[0][..., : n // 2], even[1][..., : n // 2]), odd)
  )
  before = (pairs[0][..., : (n - 1) // 2], pairs[1][..., : (n - 1) // 2])
  rest = _after(before, (even[0][..., 1:], even[1][..., 1:]))
  a, b = (
    _interleave(tf.concat([x[..., :1], y], -1), z)
    for x, y, z in zip(even, rest, pairs, strict=True)
  )
  return a, b


def _after(first: Steps, second: Steps) -> Steps:
  """Two steps as one."""
  (a, b), (c, d) = first, second
  return c * a, c * b + d


def _interleave(even: tf.Tensor, odd: tf.Tensor) -> tf.Tensor:
  n = even.shape[-1] + odd.shape[-1]
  if n % 2:
    odd = tf.concat([odd, even[..., :1]], -1)  # cut off again below
  both = tf.stack([even, odd], -1)
  flat = tf.reshape(both, [*both.shape.as_list()[:-2], -1])
  return flat[..., :n]


def recurrence(
  a: Tensor, b: Tensor, dim: Dimension, reverse: bool = False
) -> Tensor:
  """y_i = a_i * y_(i-1) + b_i along a dimension, from y = 0 on.

  Args:
    a: factors. 16-bit floats are computed in float32.
    b: terms, of the shape and dtype of `a`.
    dim: a dimension of both; it may be split.
    reverse: whether to begin at the last position: y_i follows y_(i+1).

  Returns:
    A tensor of the shape and dtype of `a`.
  """
  return apply(Recurrence(dim, reverse), a, b)
