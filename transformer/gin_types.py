"""Texts that gin files bind where a number is wanted.

They are found when the files are read: later, a text is found out wherever a
model happens to multiply it, where no file is known any more.
"""

import gin

from . import gin_names

_NUMBERS = frozenset({"int", "float", "bool", "None"})


def text_for_number(
  scope: str, name: str, parameter: str
) -> tuple[str, str] | None:
  """The text that is bound to a parameter that is annotated as a number.

  Args:
    scope: the scopes of the binding, joined by slashes, or "".
    name: the full name of what is registered with gin.
    parameter: the name of one of its parameters; it is bound.

  Returns:
    The text, and the macro that it is the value of, or ""; None where the
    parameter takes a text, or is bound to something else.
  """
  kinds = gin_names.annotation(name, parameter).split("|")
  if not {kind.strip() for kind in kinds} <= _NUMBERS:
    return None
  place = f"{scope}/{name}" if scope else name
  value = gin.query_parameter(f"{place}.{parameter}")
  macros = [""]  # on the way; one that comes back has no value at all
  while _is_macro(value) and str(value) not in macros:
    macros.append(str(value))
    value = gin.query_parameter(str(value))
  return (value, macros[-1][1:]) if isinstance(value, str) else None


def _is_macro(value: object) -> bool:
  """Whether gin shows it as `%name`, and it is not a text that looks so."""
  return not isinstance(value, str) and str(value).startswith("%")
