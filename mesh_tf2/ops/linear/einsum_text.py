"""Einsum as text: `"batch d_model, d_model d_ff -> batch d_ff"`.

A word is the name of a dimension. The words of an operand may stand in any
order, but they are all of its dimensions, so that the text can be believed. A
word that is wrong is pointed at.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Sequence

from ...core.errors import ShapeError, did_you_mean
from ...core.graph import Tensor
from ...core.shape import Dimension, Shape

ARROW = "->"


@dataclasses.dataclass(frozen=True)
class Span:
  """A part of a text, and where it begins."""

  text: str
  begin: int

  def words(self) -> list[Span]:
    """The words in it."""
    found = re.finditer(r"[^\s,]+", self.text)
    return [Span(m.group(), self.begin + m.start()) for m in found]

  def split(self, separator: str) -> Iterator[Span]:
    """The parts between separators."""
    begin = self.begin
    for part in self.text.split(separator):
      yield Span(part, begin)
      begin += len(part) + len(separator)


def shape_of_result(text: str, xs: Sequence[Tensor]) -> Shape:
  """The dimensions behind the arrow.

  Args:
    text: the dimensions of each operand, separated by commas; an arrow; the
      dimensions of the result.
    xs: the operands.

  Raises:
    ShapeError: the words are not the dimensions of the operands. The message
      shows the text and marks what is wrong.
  """
  text = re.sub(r"\s", " ", text)
  sides = list(Span(text, 0).split(ARROW))
  if len(sides) != 2:
    extra = Span(ARROW, sides[2].begin - len(ARROW)) if sides[2:] else None
    raise _wrong(text, extra, f"one '{ARROW}' is needed before the result")
  operands = list(sides[0].split(","))
  if len(operands) != len(xs):
    extra = operands[len(xs)] if len(operands) > len(xs) else None
    raise _wrong(
      text,
      extra or operands[-1],
      f"described operands: {len(operands)}, given: {len(xs)}; a comma stands "
      "between two of them",
    )
  for i, (part, x) in enumerate(zip(operands, xs, strict=True)):
    _check_operand(text, part, f"operand {i + 1}, {x.name} [{x.shape}],", x)
  return Shape(_dimensions(text, sides[1], xs))


def _check_operand(text: str, part: Span, who: str, x: Tensor) -> None:
  names, seen = x.shape.dimension_names, set()
  for word in part.words():
    if word.text not in names:
      hint = _way_out(word.text, names)
      raise _wrong(text, word, f"{who} has no dimension '{word.text}'{hint}")
    if word.text in seen:
      raise _wrong(
        text,
        word,
        f"{who} has '{word.text}' only once; for a diagonal, rename one "
        "dimension and take mtf.diagonal first",
      )
    seen.add(word.text)
  if missing := [n for n in names if n not in seen]:
    raise _wrong(
      text, part, f"{who} has '{missing[0]}', too; write down all dimensions"
    )


def _dimensions(
  text: str, part: Span, xs: Sequence[Tensor]
) -> Iterator[Dimension]:
  if "," in part.text:
    comma = Span(",", part.begin + part.text.index(","))
    raise _wrong(text, comma, "there is one result, so no comma")
  known, seen = {d.name: d for x in xs for d in x.shape}, set()
  for word in part.words():
    if word.text not in known:
      hint = _way_out(word.text, known)
      raise _wrong(text, word, f"no operand has '{word.text}'{hint}")
    if word.text in seen:
      raise _wrong(text, word, f"'{word.text}' stands twice in the result")
    seen.add(word.text)
    yield known[word.text]


def _way_out(word: str, names: Collection[str]) -> str:
  if word.partition(":")[0] in names:
    return "; write the name only, without a size"
  nearest = did_you_mean(word, names)
  if nearest or not names:
    return nearest
  return f"; take one of: {', '.join(names)}"


def _wrong(text: str, where: Span | None, message: str) -> ShapeError:
  """The text with marks under a part of it, or behind its end."""
  begin, length = len(text), 1
  if where is not None:
    inner = where.text.strip()
    begin = where.begin + (where.text.index(inner) if inner else 0)
    length = max(len(inner), 1)
  marks = " " * begin + "^" * length
  return ShapeError(f"einsum: {message}\n  {text}\n  {marks}")
