"""Folds axes of processors into those of a kernel, and takes them out again.

On a virtual mesh, slices have further axes in front, one for each mesh axis
along which some slice varies. A kernel takes x: b, spatial, g, c; w: filter, g,
c, o; y: b, spatial, g, o. A mesh axis along which x and y vary becomes part of
b, one along which all three vary becomes part of g, and so on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import tensorflow as tf

SPATIAL = "012"
# Which tensors have an axis, by its letter.
_HAVE = {"b": "xy", "c": "xw", "o": "wy", "g": "xwy"}


@dataclasses.dataclass(frozen=True)
class Folding:
  """How slices of x, w and y become what a kernel takes.

  Attributes:
    letters: what each axis in front becomes part of.
    lead: the sizes of the axes in front.
    batch: the sizes of the batch axes.
    spatial: the number of spatial axes.
    groups: the number of groups in a slice.
  """

  letters: str
  lead: tuple[int, ...]
  batch: tuple[int, ...]
  spatial: int
  groups: int

  def fold(self, x: tf.Tensor, kind: str) -> tf.Tensor:
    """A slice of x, w or y ("x", "w", "y"), as a kernel takes it."""
    sizes = x.shape.as_list()
    x = tf.reshape(x, sizes[: len(self.lead)] + self._cut(sizes, kind))
    sizes = x.shape.as_list()
    order = self._order(kind)
    flat = [i for axes in order for i in axes]
    # The other axes in front are of size 1: it does not vary along them.
    rest = [i for i in range(len(sizes)) if i not in flat]
    joined = [math.prod(sizes[i] for i in axes) for axes in order]
    return tf.reshape(_transpose(x, rest + flat), joined)

  def unfold(self, x: tf.Tensor, kind: str) -> tf.Tensor:
    """What a kernel made, as a slice.

    It has those of the axes in front that are part of an axis of this tensor.
    """
    lead = len(self.lead)
    sizes: dict[int, int] = {}
    for axes, n in zip(self._order(kind), x.shape.as_list(), strict=True):
      *processors, own = axes
      sizes.update((i, self.lead[i]) for i in processors)
      sizes[own] = n // math.prod(self.lead[i] for i in processors)
    flat = list(sizes)
    x = tf.reshape(x, list(sizes.values()))
    x = _transpose(x, [flat.index(i) for i in sorted(flat)])
    front = [sizes[i] for i in sorted(flat) if i < lead]
    behind = [sizes[i] for i in sorted(flat) if i >= lead]
    return tf.reshape(x, front + self._join(behind, kind))

  def _order(self, kind: str) -> list[list[int]]:
    """For each axis of a kernel's tensor, the axes that it is made of."""
    labels = self.letters + self._own(kind)
    wanted = self._own(kind)
    if kind == "w":
      wanted = SPATIAL[: self.spatial] + "gco"
    return [[i for i, l in enumerate(labels) if l == t] for t in wanted]

  def _own(self, kind: str) -> str:
    """The axes of a slice: batch axes joined, and channels cut in groups."""
    front = "" if kind == "w" else "b"
    return (
      front + SPATIAL[: self.spatial] + {"x": "gc", "w": "cgo"}.get(kind, "go")
    )

  def _cut(self, sizes: Sequence[int], kind: str) -> list[int]:
    own = list(sizes[len(self.lead) :])
    if kind != "w":
      own[: len(self.batch)] = [math.prod(self.batch)]
    return [*own[:-1], self.groups, own[-1] // self.groups]

  def _join(self, own: Sequence[int], kind: str) -> list[int]:
    joined = [*own[:-2], own[-2] * own[-1]]
    return joined if kind == "w" else [*self.batch, *joined[1:]]


def folding(
  given: tuple[tuple[str, tf.Tensor], tuple[str, tf.Tensor]],
  summed: Sequence[int],
  batch_ndims: int,
  spatial: int,
  groups: int,
) -> Folding:
  """How to fold two of the three tensors.

  Args:
    given: ("x", its slice) and so on, for two of them. Their axes in front are
      of one number, equal or of size 1.
    summed: those of the axes in front that are to be summed over.
    batch_ndims: the number of batch axes.
    spatial: the number of spatial axes.
    groups: the number of groups in a slice.
  """
  (p, one), (q, other) = given
  (made,) = set("xwy") - {p, q}
  own = spatial + 2 if p == "w" else batch_ndims + spatial + 1
  lead = one.shape.rank - own
  batched = other if p == "w" else one
  letters, sizes = "", []
  for i in range(lead):
    m, n = one.shape[i], other.shape[i]
    sizes.append(max(m, n))
    if i in summed:
      have = {p, q}
    elif m > 1 and n == 1:
      have = {p, made}
    elif n > 1 and m == 1:
      have = {q, made}
    else:
      have = {"x", "w", "y"}
    letters += next(l for l, names in _HAVE.items() if set(names) == have)
  batch = tuple(batched.shape.as_list()[lead : lead + batch_ndims])
  return Folding(letters, tuple(sizes), batch, spatial, groups)


def _transpose(x: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
  return x if list(order) == sorted(order) else tf.transpose(x, order)
