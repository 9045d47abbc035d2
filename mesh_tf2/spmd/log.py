"""What a program's variables and counters are, in words, for a log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .mesh import MeshImpl

_log = logging.getLogger(__name__)


def pretty_print_counters(counters: Iterable[tuple[str, float]]) -> str:
  """Counters added up, a line for each name and for each part before a slash.

  Args:
    counters: pairs of a name and a number, as in `Lowering.counters`.

  Example:
    >>> import mesh_tf2 as mtf
    >>> print(mtf.pretty_print_counters([("a/x", 1), ("a/y", 2), ("a/x", 4)]))
    a: 7
     a/x: 5
     a/y: 2
  """
  totals: dict[str, float] = {}
  for name, value in counters:
    parts = name.split("/")
    for end in range(1, len(parts) + 1):
      prefix = "/".join(parts[:end])
      totals[prefix] = totals.get(prefix, 0) + value
  return "\n".join(
    f"{' ' * name.count('/')}{name}: {total:.3g}"
    for name, total in sorted(totals.items())
  )


def log_variable_sizes(
  var_list: Iterable[Any],
  tag: str,
  verbose: bool = True,
  mesh_to_impl: Mapping[Any, MeshImpl] | None = None,
  log_file: str | None = None,
) -> None:
  """Logs how large variables are, and how large all of them.

  Args:
    var_list: variables of a graph.
    tag: how to call them, such as "Trainable Variables".
    verbose: whether each has a line of its own.
    mesh_to_impl: where they are laid out, for the size of a processor's slice.
    log_file: a file to add the lines to, as well.
  """
  variables = sorted(var_list, key=lambda v: str(v.full_name))
  impls = mesh_to_impl or {}

  def slice_size(v: Any) -> int:
    return impls[v.mesh].slice_size(v.shape) if v.mesh in impls else v.size

  lines = [
    f"Variable {v.full_name}: size {v.size}, slice_size {slice_size(v)}, "
    f"{v.shape.to_string}"
    for v in variables
    if verbose
  ]
  total, of_slices = (
    sum(v.size for v in variables),
    sum(map(slice_size, variables)),
  )
  lines.append(
    f"{tag}: {len(variables)} variables, total size {total}, total slice_size "
    f"{of_slices}"
  )
  write_log(lines, log_file)


def write_log(lines: Iterable[str], log_file: str | None = None) -> None:
  """Writes lines to the log, and adds them to a file if there is one."""
  text = "\n".join(lines)
  _log.info("%s", text)
  if log_file is not None:
    with Path(log_file).open("a", encoding="utf-8") as file:
      file.write(text + "\n")
