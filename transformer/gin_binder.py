"""Checks the statements of gin files against what is registered; binds them."""

import dataclasses
import importlib
import importlib.util
from collections.abc import Mapping

import gin
from absl import logging

from . import gin_names, gin_types
from .gin_statements import (
  OURS,
  Binding,
  Block,
  Import,
  Source,
)

SKIP_FLAG = "--gin_skip_unknown"
MODEL_DIR = "model_dir"  # a flag, and the macro that it gives a value

# How like a registered name another has to look to be a slip of the pen even
# where names of missing packages are skipped, or are new macros.
SLIP = 0.8


@dataclasses.dataclass
class Binder:
  """Binds statements, and remembers what can only be judged at the end.

  Attributes:
    skip_unknown: whether to skip what needs a package that is missing.
    skipped: the places of what was skipped.
  """

  skip_unknown: bool = False
  skipped: list[Source] = dataclasses.field(default_factory=list)
  # The packages that imports named in vain.
  _missing: set[str] = dataclasses.field(default_factory=set)
  # Where each macro was last given a value.
  _defined: dict[str, Source] = dataclasses.field(default_factory=dict)
  # The macros that some value names, whether or not it was overridden.
  _used: set[str] = dataclasses.field(default_factory=set)
  # The binding that counts, by scope, full name and parameter.
  _live: dict[tuple[str, str, str], Binding] = dataclasses.field(
    default_factory=dict
  )

  def bind(self, statement: Import | Block | Binding) -> None:
    """Checks a statement, then has gin do as it says.

    Args:
      statement: the next statement, in the order of the files.

    Raises:
      GinFileError: if it names something that there is not, or is malformed.
    """
    if isinstance(statement, Import):
      self._import(statement)
    elif isinstance(statement, Block):
      self._find(statement.selector, statement.source)
    elif statement.parameter:
      self._bind_parameter(statement)
    else:
      self._bind_macro(statement)

  def check_macros(self) -> None:
    """Checks, when all is read, that macros have values, and a use.

    Raises:
      GinFileError: if a value that counts names a macro without a value, or a
        macro that nothing uses looks like one that is used, or macros lead in
        a circle.
    """
    self._check_circles()
    for binding in self._live.values():
      for macro in binding.macros:
        if macro.name not in self._defined and not _is_bound(macro.name):
          raise macro.source.error(
            f"the macro {macro.name!r} has no value; "
            + self._value_for(macro.name)
          )
    for name, source in self._defined.items():
      if name not in self._used:
        near = gin_names.nearest(name, self._used - {name}, SLIP)
        if near:
          raise source.error(
            f"nothing uses the macro {name!r}{_did_you_mean(near)}"
          )
        logging.warning(
          "%s, line %d: nothing uses the macro %r.",
          source.file,
          source.line,
          name,
        )

  def check_numbers(self) -> None:
    """Checks, when all is read, that no number is given as a text.

    Raises:
      GinFileError: if a value that counts is a text where the parameter is
        annotated as a number.
    """
    for (scope, name, parameter), binding in self._live.items():
      if not parameter or name == "gin.macro":
        continue
      found = gin_types.text_for_number(scope, name, parameter)
      if found is not None:
        text, macro = found
        raise self._defined.get(macro, binding.source).error(
          f"{binding.selector}.{parameter} is a number, got the text {text!r}"
        )

  def _check_circles(self) -> None:
    """Checks that no macro has its value from itself, on whatever way."""
    macros = {
      name: binding
      for (_, function, name), binding in self._live.items()
      if function == "gin.macro"
    }
    for start in macros:
      way = _circle(start, macros)
      if way:
        places = "; ".join(
          f"{x.source.file}, line {x.source.line}: {x.source.text.strip()}"
          for x in (macros[name] for name in way[1:])
        )
        raise macros[start].source.error(
          f"the macro {start!r} has its value from itself"
          + (f", by way of {places}" if places else "")
          + "; give one of them a value of its own"
        )

  def _value_for(self, macro: str) -> str:
    """How to give a macro its value."""
    if macro == MODEL_DIR:
      return f"name the folder with --{MODEL_DIR}"
    near = gin_names.nearest(macro, self._defined)
    return f"give it one: {macro} = ...{_did_you_mean(near)}"

  def _bind_macro(self, binding: Binding) -> None:
    scope = f"{binding.scope}/" if binding.scope else ""
    name = scope + binding.selector
    if self._bind(binding, ("", "gin.macro", name)):
      self._defined[name] = binding.source

  def _bind_parameter(self, binding: Binding) -> None:
    name = self._find(binding.selector, binding.source)
    if name is None:
      self._used |= {macro.name for macro in binding.macros}
      self._skip(binding.source)
      return
    known = gin_names.parameters(name)
    if known is not None and binding.parameter not in known:
      raise binding.source.error(
        f"{binding.selector} has no parameter {binding.parameter!r}"
        + _did_you_mean(gin_names.nearest(binding.parameter, known))
      )
    self._bind(binding, (binding.scope, name, binding.parameter))

  def _bind(self, binding: Binding, key: tuple[str, str, str]) -> bool:
    """Has gin bind a value, unless it names what is to be skipped."""
    self._used |= {macro.name for macro in binding.macros}
    for reference in binding.references:
      selector = reference.name.rpartition("/")[2]
      if self._find(selector, reference.source, in_value=True) is None:
        self._skip(binding.source)
        return False
    _parse(binding.text, binding.source)
    self._live[key] = binding
    return True

  def _find(
    self, selector: str, source: Source, in_value: bool = False
  ) -> str | None:
    """The full name of what is registered; None if that is to be skipped."""
    found = gin_names.matches(selector)
    if len(found) == 1:
      return found[0]
    if found:
      names = " or ".join(gin_names.shortest(name) for name in found)
      raise source.error(f"{selector!r} stands for more than one: {names}")
    if not in_value and gin_names.is_optional(selector):
      return None
    if self.skip_unknown and self._is_of_missing_package(selector):
      return None
    is_slip = gin_names.nearest_selector(selector, SLIP) is not None
    raise source.error(
      f"there is no configurable {selector!r}"
      + _did_you_mean(gin_names.nearest_selector(selector))
      + ("" if is_slip else self._hint(selector))
    )

  def _is_of_missing_package(self, selector: str) -> bool:
    package, dot, _ = selector.partition(".")
    if dot and package in self._missing:
      return True
    is_slip = gin_names.nearest_selector(selector, SLIP) is not None
    if dot:
      return not is_slip and not _is_installed(package)
    return not is_slip and bool(self._missing)

  def _hint(self, selector: str) -> str:
    package, dot, _ = selector.partition(".")
    parts = {part for name in gin_names.modules() for part in name.split(".")}
    if self.skip_unknown or not dot or package in parts:
      return ""
    if _is_installed(package):
      return f"; import what registers it first: import {package}"
    return _way_out(package)

  def _skip(self, source: Source) -> None:
    logging.warning("%s, line %d: skipped.", source.file, source.line)
    self.skipped.append(source)

  def _import(self, statement: Import) -> None:
    module = statement.module
    package = module.partition(".")[0]
    if package == OURS:
      # What is ours is registered before the first file is read.
      known = gin_names.modules()
      if module not in known and not _is_installed(module):
        near = gin_names.nearest(module, known)
        raise statement.source.error(
          f"there is no module {module!r}{_did_you_mean(near)}"
        )
      return
    try:
      importlib.import_module(module)
    except ModuleNotFoundError as error:
      if not f"{module}.".startswith(f"{error.name}."):
        raise statement.source.error(f"{module} needs {error.name}") from None
      if self.skip_unknown:
        self._missing.add(package)
        self._skip(statement.source)
        return
      raise statement.source.error(
        f"there is no module {error.name!r}{_way_out(package)}"
      ) from None
    _parse(statement.text, statement.source)


def _circle(start: str, macros: Mapping[str, Binding]) -> list[str]:
  """The macros on the way from `start` back to itself, or none."""
  ways = [[start]]
  seen = set()
  while ways:
    way = ways.pop()
    for macro in macros[way[-1]].macros:
      if macro.name == start:
        return way
      if macro.name in macros and macro.name not in seen:
        seen.add(macro.name)
        ways.append([*way, macro.name])
  return []


def _way_out(package: str) -> str:
  return (
    f"; install {package}, or skip what needs packages that are not "
    f"installed with {SKIP_FLAG}"
  )


def _did_you_mean(name: str | None) -> str:
  return f"; did you mean {name!r}?" if name else ""


def _is_installed(module: str) -> bool:
  try:
    return importlib.util.find_spec(module) is not None
  except ModuleNotFoundError:  # of a package above it
    return False


def _is_bound(macro: str) -> bool:
  """Whether gin knows a constant or a macro of this name."""
  for key in (macro, f"{macro}/gin.macro.value"):
    try:
      gin.query_parameter(key)
    except ValueError:
      continue
    return True
  return False


def _parse(text: str, source: Source) -> None:
  try:
    gin.parse_config(text)
  except SyntaxError as error:
    rows = text.splitlines()
    row = min(error.lineno or 1, len(rows)) - 1
    shown = rows[row].strip() if row else source.text
    place = Source(source.file, source.line + row, shown)
    raise place.error(_reason(error)) from None
  except (KeyError, TypeError, ValueError) as error:
    raise source.error(str(error).strip().partition("\n")[0]) from None


def _reason(error: SyntaxError) -> str:
  _, failed, token = (error.msg or "").partition("Failed to parse token ")
  if failed:
    return f"{token} is not a value; text stands in quotes"
  return f"cannot be read ({error.msg})"
