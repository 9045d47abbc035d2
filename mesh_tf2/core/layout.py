"""Layout rules: which tensor dimension is split over which mesh dimension.

A rule maps the name of a tensor dimension to the name of a mesh dimension. A
rule that names an absent dimension is without effect, so that one set of rules
serves many meshes. Processors are numbered row-major over the mesh: the last
mesh dimension varies fastest.

What an optimizer remembers of a variable is split like the variable. A rule for
`slot_d_model` splits only that: over a mesh dimension that replicates the
variable, it saves memory (ZeRO-1; see `slot_names.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .errors import LayoutError
from .shape import Dimension, Shape, ShapeLike, parse_pairs, to_shape
from .slot_names import is_slot_dimension, slot_axis


class TensorLayout:
  """For each axis of a tensor, the mesh axis that splits it, or None."""

  def __init__(self, tensor_axis_to_mesh_axis: Iterable[int | None]) -> None:
    self._axes = tuple(tensor_axis_to_mesh_axis)

  @property
  def tensor_axis_to_mesh_axis(self) -> tuple[int | None, ...]:
    """The mesh axis of each tensor axis, or None."""
    return self._axes

  @property
  def is_fully_replicated(self) -> bool:
    """Whether every processor holds the whole tensor."""
    return all(a is None for a in self._axes)

  @property
  def mesh_axes(self) -> tuple[int, ...]:
    """The mesh axes that split the tensor, ascending."""
    return tuple(sorted(a for a in self._axes if a is not None))

  def mesh_axis_to_tensor_axis(self, mesh_ndims: int) -> tuple[int | None, ...]:
    """For each mesh axis, the tensor axis that it splits, or None."""
    return tuple(
      self._axes.index(a) if a in self._axes else None
      for a in range(mesh_ndims)
    )

  def __eq__(self, other: object) -> bool:
    return isinstance(other, TensorLayout) and self._axes == other._axes

  def __hash__(self) -> int:
    return hash(self._axes)

  def __len__(self) -> int:
    return len(self._axes)

  def __iter__(self) -> Iterator[int | None]:
    return iter(self._axes)

  def __getitem__(self, i: int) -> int | None:
    return self._axes[i]

  def __repr__(self) -> str:
    return f"TensorLayout{self._axes}"


class LayoutRules:
  """A set of (tensor dimension name, mesh dimension name) pairs."""

  def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
    self._pairs = tuple(dict.fromkeys((str(t), str(m)) for t, m in pairs))
    # By name and mesh: a lowering asks tens of thousands of times.
    self._known: dict[tuple[str, Shape], int | None] = {}

  @property
  def pairs(self) -> tuple[tuple[str, str], ...]:
    """The rules, in the order in which they were given."""
    return self._pairs

  def tensor_dimension_to_mesh_axis(
    self, tensor_dimension: Dimension, mesh_shape: Shape
  ) -> int | None:
    """The mesh axis that splits a dimension, or None.

    Raises:
      LayoutError: two rules send the dimension to two axes of this mesh.
    """
    key = tensor_dimension.name, mesh_shape
    if key not in self._known:
      self._known[key] = self._find(*key)
    return self._known[key]

  def _find(self, name: str, mesh_shape: Shape) -> int | None:
    def axis_of(name: str) -> int | None:
      return self._rule(name, mesh_shape)

    if is_slot_dimension(name):
      return slot_axis(name, axis_of)
    return axis_of(name)

  def _rule(self, name: str, mesh_shape: Shape) -> int | None:
    names = mesh_shape.dimension_names
    axes = sorted(
      names.index(m) for t, m in self._pairs if t == name and m in names
    )
    if len(axes) > 1:
      rules = ", ".join(f"'{name}:{names[a]}'" for a in axes)
      raise LayoutError(
        f"dimension '{name}' maps to several mesh dimensions "
        f"({rules}); keep one of these layout rules"
      )
    return axes[0] if axes else None

  def tensor_layout(
    self, tensor_shape: Shape, mesh_shape: Shape
  ) -> TensorLayout:
    """How a tensor of this shape is split over this mesh.

    Raises:
      LayoutError: two dimensions of the tensor share a mesh dimension.
    """
    axes = [
      self.tensor_dimension_to_mesh_axis(d, mesh_shape) for d in tensor_shape
    ]
    for i, a in enumerate(axes):
      if a is not None and a in axes[:i]:
        first, second = tensor_shape[axes.index(a)], tensor_shape[i]
        mesh_dim = mesh_shape[a].name
        raise LayoutError(
          f"tensor [{tensor_shape}]: dimensions '{first.name}' and "
          f"'{second.name}' are both split over mesh dimension '{mesh_dim}'; "
          f"drop the rule '{first.name}:{mesh_dim}' or "
          f"'{second.name}:{mesh_dim}', or rename one of the dimensions"
        )
    return TensorLayout(axes)

  def mesh_dimension_name_to_tensor_dimension_names(
    self, mesh_dimension_name: str
  ) -> list[str]:
    """Names of the tensor dimensions that are split over a mesh dimension."""
    return [t for t, m in self._pairs if m == mesh_dimension_name]

  def __eq__(self, other: object) -> bool:
    return isinstance(other, LayoutRules) and set(self._pairs) == set(
      other._pairs
    )

  def __hash__(self) -> int:
    return hash(frozenset(self._pairs))

  def __repr__(self) -> str:
    return ";".join(f"{t}:{m}" for t, m in self._pairs)


LayoutLike = LayoutRules | str | Iterable[tuple[str, str]]


def convert_to_layout_rules(x: LayoutLike) -> LayoutRules:
  """`LayoutRules` from rules, a string like `"batch:rows;d_ff:cols"`, or pairs.

  Raises:
    ValueError: a part of the string is not `tensor_name:mesh_name`, or it is a
      number.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mtf.convert_to_layout_rules([("batch", "rows"), ("d_ff", "cols")])
    batch:rows;d_ff:cols
  """
  if isinstance(x, LayoutRules):
    return x
  if isinstance(x, (int, float)):
    raise LayoutError(f"{x!r} is no layout; write for example 'batch:rows'")
  return LayoutRules(parse_pairs(x) if isinstance(x, str) else x)


def to_mesh_shape(x: ShapeLike) -> Shape:
  """The shape of a mesh, from whatever stands for one.

  Raises:
    LayoutError: a dimension has no processors.
  """
  mesh_shape = to_shape(x)
  for d in mesh_shape:
    if d.size < 1:
      raise LayoutError(
        f"mesh [{mesh_shape}]: mesh dimension '{d.name}' has size {d.size}; "
        "give it 1 processor or more, or drop it"
      )
  return mesh_shape


def tensor_dim_to_mesh_dim_size(
  layout: LayoutLike, mesh_shape: ShapeLike, tensor_dim: Dimension
) -> int:
  """How many ways `tensor_dim` is split; 1 where it is not.

  Raises:
    LayoutError: two rules send it to two mesh dimensions, or a mesh dimension
      has no processors.
  """
  mesh_shape = to_mesh_shape(mesh_shape)
  axis = convert_to_layout_rules(layout).tensor_dimension_to_mesh_axis(
    tensor_dim, mesh_shape
  )
  return 1 if axis is None else mesh_shape[axis].size


def tensor_dim_to_size_per_split(
  layout: LayoutLike, mesh_shape: ShapeLike, tensor_dim: Dimension
) -> int:
  """The size of one processor's part of `tensor_dim`.

  Raises:
    LayoutError: the dimension does not divide evenly.
  """
  parts = tensor_dim_to_mesh_dim_size(layout, mesh_shape, tensor_dim)
  if tensor_dim.size % parts:
    raise LayoutError(
      f"dimension {tensor_dim} does not divide into {parts} equal parts"
    )
  return tensor_dim.size // parts


def pnum_to_processor_coordinates(mesh_shape: Shape, pnum: int) -> list[int]:
  """The coordinates of processor `pnum`, one for each mesh dimension."""
  coordinates = []
  for d in reversed(mesh_shape.dims):
    coordinates.append(pnum % d.size)
    pnum //= d.size
  return coordinates[::-1]


def processor_coordinates_to_pnum(
  mesh_shape: Shape, coord: Sequence[int]
) -> int:
  """The number of the processor at the coordinates `coord`."""
  pnum = 0
  for d, c in zip(mesh_shape, coord, strict=True):
    pnum = pnum * d.size + c
  return pnum


def pnum_to_group(
  mesh_shape: Shape, group_dims: Iterable[int], pnum: int
) -> int:
  """Which group a processor is in when `group_dims` are reduced over."""
  gone = set(group_dims)
  kept = [i for i in range(len(mesh_shape)) if i not in gone]
  coordinates = pnum_to_processor_coordinates(mesh_shape, pnum)
  return processor_coordinates_to_pnum(
    Shape(mesh_shape[i] for i in kept), [coordinates[i] for i in kept]
  )


def processor_groups(
  mesh_shape: Shape, group_dims: Iterable[int]
) -> list[list[int]]:
  """Processors that differ only along `group_dims`, group by group."""
  gone = list(group_dims)
  groups: dict[int, list[int]] = {}
  for pnum in range(mesh_shape.size):
    groups.setdefault(pnum_to_group(mesh_shape, gone, pnum), []).append(pnum)
  return [groups[g] for g in sorted(groups)]
