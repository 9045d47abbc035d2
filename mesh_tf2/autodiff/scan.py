"""A loop along a dimension, which carries values from position to position."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension, Shape
from ..ops.linear.einsum import transpose
from ..ops.linear.reshape import reshape
from .loop import LoopOperation, Parts, check_carried
from .loop_lowering import Rounds
from .subgraph import capture

# No layout rule knows the dimension while the loop runs along it.
_ROUNDS = "_rounds"


def scan(
  fn: Callable[..., tuple[Sequence[Tensor], Sequence[Tensor]]],
  initial: Sequence[Tensor],
  xs: Sequence[Tensor],
  dim: Dimension,
  reverse: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
  """Goes along a dimension, and carries values from position to position.

  With gradients of every order. Of a round, what it began with is kept; the
  rest is computed again on the way back. If `dim` is split, each processor
  gets `xs` whole along it, and keeps its own part of what comes out.

  Args:
    fn: `f(carried, elements)` returns the carried values for the next position,
      of the same shapes and dtypes, and a list of results of this one.
    initial: the carried values at the first position.
    xs: tensors with the dimension `dim`; an element is one without it.
    dim: along which to go.
    reverse: whether to go from the last position to the first.

  Returns:
    The carried values after the last position, and the results of all
    positions, each with `dim` in front.

  Raises:
    ShapeError: a tensor of `xs` lacks `dim`, or a carried value changes its
      shape or dtype.
    ValueError: `fn` assigns to a variable.

  Example:
    >>> import mesh_tf2 as mtf
    >>> program = mtf.Program()
    >>> time = mtf.Dimension("time", 4)
    >>> @program.function
    ... def decayed(mesh, x):
    ...   x = mtf.import_tf_tensor(mesh, x, [time])
    ...   def step(carried, elements):
    ...     y = carried[0] * 0.5 + elements[0]
    ...     return [y], [y]
    ...   _, (ys,) = mtf.scan(step, [mtf.zeros(mesh, [])], [x], time)
    ...   return ys
    >>> print(decayed([8.0, 0.0, 0.0, 4.0]).numpy())
    [8. 4. 2. 5.]
  """
  given = [*initial, *xs]
  if not given:
    raise ShapeError("scan needs a tensor to carry, or one to go along")
  mesh = given[0].mesh
  rounds = Dimension(_ROUNDS, dim.size)
  in_front = [_to_front(x, dim, rounds) for x in xs]
  count = len(initial)
  collected: list[int] = []

  def body(*values: Tensor) -> list[Tensor]:
    carried, elements = fn(list(values[:count]), list(values[count:]))
    if len(carried) != count:
      raise ShapeError(
        f"scan: fn carries {len(carried)} tensors on, and began with {count}"
      )
    collected.append(len(elements))
    return [*carried, *elements]

  avals = [x.aval for x in initial]
  avals += [type(x.aval)(Shape(x.shape[1:]), x.dtype) for x in in_front]
  graph = capture(body, mesh, avals, "scan")
  check_carried("scan", initial, graph.results[:count])
  ys = LoopOperation(
    mesh,
    [*initial, *in_front],
    graph,
    Parts(count, len(xs), collected[0]),
    Rounds(rounds, reverse=reverse),
    name="scan",
  ).outputs
  return ys[:count], [_renamed(y, rounds, dim) for y in ys[count:]]


def _to_front(x: Tensor, dim: Dimension, rounds: Dimension) -> Tensor:
  if dim not in x.shape:
    raise ShapeError(f"scan goes along [{dim}], which {x} lacks")
  rest = [d for d in x.shape if d != dim]
  return _renamed(transpose(x, [dim, *rest]), dim, rounds)


def _renamed(x: Tensor, old: Dimension, new: Dimension) -> Tensor:
  return reshape(x, [new if d == old else d for d in x.shape])
