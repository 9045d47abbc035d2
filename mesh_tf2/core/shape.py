"""Named dimensions and shapes: the words every other module speaks in."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from .errors import ShapeError, did_you_mean


class Dimension(NamedTuple):
  """A name and a size. Two dimensions are the same only if both agree.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mtf.Dimension("d_ff", 2048)
    d_ff:2048
    >>> mtf.Dimension("d_ff", 2048) == mtf.Dimension("d_ff", 4096)
    False
  """

  name: str
  size: int

  def __repr__(self) -> str:
    return f"{self.name}:{self.size}"


DimensionLike = Dimension | tuple[str, int]


def convert_to_dimension(d: DimensionLike | None) -> Dimension | None:
  """A `Dimension` from a `Dimension` or a (name, size) pair; None stays None.

  Raises:
    ValueError: `d` is no pair of a string and an integer.
  """
  return None if d is None else _dimension(d)


def _dimension(d: Any) -> Dimension:
  if not isinstance(d, tuple) or len(d) != 2:
    raise ShapeError(f"a dimension is a pair (name, size), got {d!r}")
  name, size = d
  if not isinstance(name, str):
    raise ShapeError(f"the name of a dimension is a string, got {name!r}")
  try:
    return Dimension(name, operator.index(size))
  except TypeError:
    raise ShapeError(
      f"the size of dimension {name} is an integer, got {size!r}"
    ) from None


class Shape:
  """An ordered sequence of dimensions with distinct names.

  Args:
    dims: dimensions or (name, size) pairs.

  Raises:
    ValueError: a name occurs twice, or a size is negative or no integer.

  Example:
    >>> import mesh_tf2 as mtf
    >>> shape = mtf.Shape([("batch", 8), ("length", 16)])
    >>> shape
    batch:8 length:16
    >>> shape.size
    128
    >>> shape - shape.get_dim_by_name("length")
    batch:8
  """

  def __init__(self, dims: Iterable[DimensionLike]) -> None:
    self._dims = tuple(map(_dimension, dims))
    if len({d.name for d in self._dims}) != len(self._dims):
      names = [d.name for d in self._dims]
      twice = next(n for n in names if names.count(n) > 1)
      raise ShapeError(
        f"dimension name {twice!r} occurs twice in [{self}]; rename one of them"
      )
    if negative := [d for d in self._dims if d.size < 0]:
      raise ShapeError(f"dimension {negative[0]} has a negative size")

  @property
  def dims(self) -> list[Dimension]:
    """The dimensions, in order."""
    return list(self._dims)

  @property
  def ndims(self) -> int:
    """How many dimensions there are."""
    return len(self._dims)

  @property
  def size(self) -> int:
    """How many elements a tensor of this shape has."""
    return math.prod(d.size for d in self._dims)

  @property
  def to_integer_list(self) -> list[int]:
    """The size of each dimension, in order."""
    return [d.size for d in self._dims]

  @property
  def dimension_names(self) -> list[str]:
    """The name of each dimension, in order."""
    return [d.name for d in self._dims]

  @property
  def to_string(self) -> str:
    """`Shape[a=4, b=8]`."""
    return f"Shape[{', '.join(f'{d.name}={d.size}' for d in self._dims)}]"

  @property
  def cumprod(self) -> list[int]:
    """For each dimension, the product of the sizes before it."""
    sizes = self.to_integer_list
    return [math.prod(sizes[:i]) for i in range(len(sizes))]

  def cumprod_to_tensor_axis(self, cumprod: int) -> int | None:
    """The last axis whose `cumprod` is the given number, or None."""
    axes = [i for i, c in enumerate(self.cumprod) if c == cumprod]
    return axes[-1] if axes else None

  def index(self, dim: DimensionLike) -> int:
    """The position of `dim`. Raises ShapeError where it is absent."""
    if dim not in self._dims:
      raise ShapeError(f"[{self}] has no dimension {dim}{self._nearest(dim)}")
    return self._dims.index(_dimension(dim))

  def _nearest(self, dim: Any) -> str:
    """What may be meant with a dimension that is not here, or `''`."""
    name, _ = _dimension(dim)
    for d in self._dims:
      if d.name == name:
        return f"; {name} has size {d.size} here"
    return did_you_mean(name, self.dimension_names)

  def get_dim_by_name(self, name: str) -> Dimension:
    """The dimension called `name`. Raises ValueError where there is none."""
    for d in self._dims:
      if d.name == name:
        return d
    hint = did_you_mean(name, self.dimension_names)
    raise ShapeError(f"[{self}] has no dimension called {name!r}{hint}")

  def rename_dimension(self, old_name: str, new_name: str) -> Shape:
    """This shape with one dimension renamed."""
    self.get_dim_by_name(old_name)
    return Shape(
      Dimension(new_name, d.size) if d.name == old_name else d
      for d in self._dims
    )

  def resize_dimension(self, name: str, new_size: int) -> Shape:
    """This shape with another size for the dimension called `name`."""
    self.get_dim_by_name(name)
    return Shape(
      Dimension(name, new_size) if d.name == name else d for d in self._dims
    )

  def keep(self, dims: Iterable[Dimension]) -> Shape:
    """This shape without the dimensions that are not in `dims`."""
    kept = set(dims)
    return Shape(d for d in self._dims if d in kept)

  def drop(self, dims: Iterable[Dimension]) -> Shape:
    """This shape without the dimensions that are in `dims`."""
    dropped = set(dims)
    return Shape(d for d in self._dims if d not in dropped)

  def __add__(self, other: Shape | DimensionLike | Sequence[Any]) -> Shape:
    return Shape([*self._dims, *_dims_of(other)])

  def __radd__(self, other: DimensionLike | Sequence[Any]) -> Shape:
    return Shape([*_dims_of(other), *self._dims])

  def __sub__(self, other: Shape | DimensionLike | Sequence[Any] | None) -> Any:
    if other is None:
      return self
    if isinstance(other, Dimension) and other not in self._dims:
      raise ShapeError(
        f"[{self}] has no dimension {other} to remove{self._nearest(other)}"
      )
    return self.drop(_dims_of(other))

  def __len__(self) -> int:
    return len(self._dims)

  def __iter__(self) -> Iterator[Dimension]:
    return iter(self._dims)

  def __contains__(self, dim: object) -> bool:
    return dim in self._dims

  def __getitem__(self, key: Any) -> Any:
    return self.dims[key]

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Shape) and self._dims == other._dims

  def __hash__(self) -> int:
    return hash(self._dims)

  def __repr__(self) -> str:
    return " ".join(map(repr, self._dims))


ShapeLike = Shape | str | Iterable[DimensionLike]


def _dims_of(x: Any) -> list[Dimension]:
  if isinstance(x, Shape):
    return x.dims
  is_one = isinstance(x, Dimension) or (
    isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], str)
  )
  return [_dimension(d) for d in ([x] if is_one else x)]


@overload
def convert_to_shape(x: ShapeLike) -> Shape: ...
@overload
def convert_to_shape(x: None) -> None: ...


def convert_to_shape(x: ShapeLike | None) -> Shape | None:
  """A `Shape` from a shape, a string such as `"a:4;b:8"`, or pairs.

  In a string, dimensions are separated by spaces, commas, semicolons or dots.

  Raises:
    ValueError: a part of the string is not `name:size`, or it is a number.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mtf.convert_to_shape("rows:2;cols:4")
    rows:2 cols:4
  """
  if x is None or isinstance(x, Shape):
    return x
  if isinstance(x, (int, float)):
    raise ShapeError(f"{x!r} is no shape; write for example 'batch:2;model:4'")
  if isinstance(x, str):
    return Shape(
      _parse_dimension(name, size, x) for name, size in parse_pairs(x)
    )
  return Shape(x)


def to_shape(x: ShapeLike) -> Shape:
  """Like `convert_to_shape`, for a shape that is not optional."""
  shape = convert_to_shape(x)
  if shape is None:
    raise ShapeError("a shape is needed, got None")
  return shape


def _parse_dimension(name: str, size: str, text: str) -> Dimension:
  if not size.isdigit():
    raise ShapeError(
      f"the size of {name!r} in {text!r} is a whole number, got {size!r}"
    )
  return Dimension(name, int(size))


def parse_pairs(text: str) -> list[tuple[str, str]]:
  """The `left:right` pairs of a shape or layout string."""
  pairs = []
  for part in re.split(r"[\s,;.]+", text.strip()):
    if not part:
      continue
    left, colon, right = part.partition(":")
    if not (left and colon and right) or ":" in right:
      raise ShapeError(
        f"{part!r} in {text!r} is not of the form name:value; write for "
        "example 'batch:2;model:4'"
      )
    pairs.append((left, right))
  return pairs


def union(*shapes: Iterable[Dimension]) -> Shape:
  """Dimensions of all shapes, each once, in order of first appearance."""
  return Shape(dict.fromkeys(d for s in shapes for d in s))


def is_subsequence(short_seq: Sequence[Any], long_seq: Sequence[Any]) -> bool:
  """Whether `short_seq` is `long_seq` with some elements left out."""
  rest = iter(long_seq)
  return all(any(x == y for y in rest) for x in short_seq)


def verify_no_new_dims(
  input_shapes: Iterable[Shape], output_shape: Shape
) -> None:
  """Raises ValueError if the output has a dimension that no input has."""
  known = {d for s in input_shapes for d in s}
  if new := output_shape.drop(known):
    raise ShapeError(f"output dimension [{new}] is in none of the inputs")


def combined_dimension(
  dims: Sequence[Dimension], name: str | None = None
) -> Dimension:
  """One dimension as large as all of `dims` together.

  Its name is that of the first, unless `name` is given.
  """
  if not dims:
    raise ShapeError("combined_dimension needs at least one dimension")
  return Dimension(name or dims[0].name, list_product(d.size for d in dims))


def anonymous_shape(shape: ShapeLike) -> Shape:
  """The same sizes under names that no layout rule mentions."""
  sizes = to_shape(shape).to_integer_list
  return Shape(Dimension(f"_anonymous_{i}", n) for i, n in enumerate(sizes))


def list_product(l: Iterable[int]) -> int:
  """The product of the numbers in `l`; 1 for none."""
  return math.prod(l)
