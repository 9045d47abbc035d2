"""Error classes, and the nearest known name to one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ShapeError(ValueError):
  """Dimensions that do not fit an operation."""


class LayoutError(ValueError):
  """A layout that cannot be carried out on this mesh."""


class VariableError(ValueError):
  """A variable that is asked for in two incompatible ways."""


class LayoutWarning(UserWarning):
  """A layout rule or a mesh dimension that splits nothing."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
  """`' (did you mean "x"?)'` for the known name nearest to `name`, or `''`."""
  near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
  return f' (did you mean "{near[0]}"?)' if near else ""
