"""Which variables are trained; the others stay as they are."""

from __future__ import annotations

import re
from collections.abc import Callable

import gin

import mesh_tf2 as mtf

from .mesh_shapes import MODULE

VariableFilter = str | Callable[[mtf.Variable], bool]


@gin.configurable(module=MODULE)
def variable_filter_max_size(v: mtf.Variable, max_size: float = 1e7) -> bool:
  """Lets through the variables with at most `max_size` elements."""
  return v.size <= max_size


def freeze(graph: mtf.Graph, variable_filter: VariableFilter | None) -> None:
  """Takes the variables that a filter does not let through out of training.

  Args:
    graph: has its variables already, and no gradients yet.
    variable_filter: a regular expression for the start of the name, a function
      of the variable, or None to let all through.

  Raises:
    ValueError: it lets none through.
  """
  if variable_filter is None:
    return
  lets_through = (
    variable_filter if callable(variable_filter) else _matching(variable_filter)
  )
  graph.make_variables_untrainable(
    [v for v in graph.trainable_variables if not lets_through(v)]
  )
  if not graph.trainable_variables:
    raise ValueError(
      f"run.variable_filter {variable_filter!r} leaves no variable to train"
    )


def _matching(pattern: str) -> Callable[[mtf.Variable], bool]:
  return lambda v: re.match(pattern, v.full_name) is not None
