"""Whether a checkpoint has what a program wants; one error if it has not.

Floating-point types may differ from each other, and integers from integers,
since values are converted when they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import tensorflow as tf

from ..core.errors import did_you_mean

Tensors = Mapping[str, tuple[tuple[int, ...], tf.DType]]


class CheckpointMismatchError(ValueError):
  """A checkpoint that is not of this program; the message lists all names."""


def compare(
  wanted: Tensors,
  found: Tensors,
  optional: Callable[[str], bool] | Iterable[str] = (),
  checkpoint: str = "the checkpoint",
) -> None:
  """Checks that a checkpoint has all that is wanted, and nothing more.

  Args:
    wanted: shape and type of the program's variables, by name.
    found: shape and type of the checkpoint's tensors, by name.
    optional: which of the checkpoint's tensors need not be wanted: a function
      of the name, or regular expressions that match whole names.
    checkpoint: what to call it in the error.

  Raises:
    CheckpointMismatchError: lists, sorted by name, what is missing, what is not
      wanted, and what has another shape or kind of number.
  """
  may_be_unwanted = _predicate(optional)
  missing = sorted(wanted.keys() - found.keys())
  unexpected = sorted(found.keys() - wanted.keys())
  differing = [
    name
    for name in sorted(wanted.keys() & found.keys())
    if not _fits(wanted[name], found[name])
  ]
  unwanted = [name for name in unexpected if not may_be_unwanted(name)]
  sections = [
    *_section(
      "missing from it",
      missing,
      lambda name: f"{_show(wanted[name])}{_nearest(name, wanted, found)}",
    ),
    *_section(
      "in it, but not in the program", unwanted, lambda n: _show(found[n])
    ),
    *_section(
      "of another shape or kind",
      differing,
      lambda n: f"{_show(found[n])}, but the program has {_show(wanted[n])}",
    ),
  ]
  if sections:
    raise CheckpointMismatchError(
      "\n".join(
        [
          f"{checkpoint} is not of this program; use the configuration it was "
          "made with, or another checkpoint:",
          *sections,
        ]
      )
    )


def _predicate(
  optional: Callable[[str], bool] | Iterable[str],
) -> Callable[[str], bool]:
  if callable(optional):
    return optional
  patterns = [optional] if isinstance(optional, str) else list(optional)
  return lambda name: any(re.fullmatch(p, name) for p in patterns)


def _fits(
  wanted: tuple[tuple[int, ...], tf.DType],
  found: tuple[tuple[int, ...], tf.DType],
) -> bool:
  same_kind = wanted[1] == found[1] or any(
    getattr(wanted[1], kind) and getattr(found[1], kind)
    for kind in ("is_floating", "is_integer")
  )
  return same_kind and tuple(wanted[0]) == tuple(found[0])


def _section(
  title: str, names: Sequence[str], describe: Callable[[str], str]
) -> list[str]:
  if not names:
    return []
  lines = [f"    {name}: {describe(name)}" for name in names]
  return [f"  {len(names)} {title}:", *lines]


def _nearest(name: str, wanted: Tensors, found: Tensors) -> str:
  """A hint at a tensor of the same shape that nobody wants."""
  shape = tuple(wanted[name][0])
  return did_you_mean(
    name,
    (n for n, (s, _) in found.items() if tuple(s) == shape and n not in wanted),
  )


def _show(tensor: tuple[tuple[int, ...], tf.DType]) -> str:
  shape, dtype = tensor
  return f"{dtype.name}{list(shape)}"
