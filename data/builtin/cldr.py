"""Dates, times, prices and units as three languages write them.

A thin layer over Babel, which ships the tables of the Unicode CLDR. They change
a little from release to release: the corpus is a function of its seed for one
version of Babel.
"""

import dataclasses
import datetime
import functools

import babel
from babel import dates, numbers, units

BABEL_VERSION: str = babel.__version__

_LOCALES = tuple(map(babel.Locale.parse, ("en_US", "de", "fr")))
_ENGLISH, _GERMAN, _FRENCH = _LOCALES


@dataclasses.dataclass(frozen=True)
class Phrase:
  """The same words in each language."""

  en: str
  de: str
  fr: str


def phrase(en: str, de: str, fr: str) -> Phrase:
  """A phrase with plain spaces: CLDR uses several that cannot be seen."""
  return Phrase(*(" ".join(text.split()) for text in (en, de, fr)))


def same(text: str) -> Phrase:
  """Words that are the same in each language."""
  return Phrase(text, text, text)


@functools.cache
def date(day: datetime.date) -> Phrase:
  """With the day of the week: on ..., am ..., le ...."""
  return phrase(
    dates.format_date(day, "EEEE, MMMM d, y", _ENGLISH),
    dates.format_date(day, "EEEE, 'dem' d. MMMM y", _GERMAN),
    _first(dates.format_date(day, "EEEE d MMMM y", _FRENCH), day),
  )


@functools.cache
def day_of_month(month: int, day: int) -> Phrase:
  """Month and day: on ..., am ..., le ...."""
  leap = datetime.date(2000, month, day)
  return phrase(
    dates.format_date(leap, "MMMM d", _ENGLISH),
    dates.format_date(leap, "d. MMMM", _GERMAN),
    _first(dates.format_date(leap, "d MMMM", _FRENCH), leap),
  )


@functools.cache
def weekday(index: int) -> Phrase:
  """The name of a day of the week; 0 is Monday."""
  names = (dates.get_day_names("wide", locale=x) for x in _LOCALES)
  return phrase(*(name[index] for name in names))


@functools.cache
def month(index: int) -> Phrase:
  """The name of a month; 1 is January."""
  names = (dates.get_month_names("wide", locale=x) for x in _LOCALES)
  return phrase(*(name[index] for name in names))


@functools.cache
def time(at: datetime.time) -> Phrase:
  """A time of day in digits: at ..., um ..., à ...."""
  german = dates.format_time(at, "HH:mm", locale=_GERMAN)
  return phrase(
    dates.format_time(at, "h:mm a", locale=_ENGLISH),
    f"{german} Uhr",
    dates.format_time(at, "HH:mm", locale=_FRENCH),
  )


def price(amount: float, currency: str) -> Phrase:
  """An amount of money; `currency` is an ISO code."""
  return phrase(
    *(numbers.format_currency(amount, currency, locale=x) for x in _LOCALES)
  )


def decimal(number: float) -> Phrase:
  """A number with its separators."""
  return phrase(*(numbers.format_decimal(number, locale=x) for x in _LOCALES))


@functools.cache
def percent(share: float) -> Phrase:
  """A share of a whole, in per cent with at most one digit behind the point."""
  return phrase(
    numbers.format_percent(share, "#,##0.#%", _ENGLISH),
    numbers.format_percent(share, "#,##0.# %", _GERMAN),
    numbers.format_percent(share, "#,##0.# %", _FRENCH),
  )


@functools.cache
def unit(number: float, name: str) -> Phrase:
  """A number of units, such as "duration-hour", written out."""
  return phrase(
    *(units.format_unit(number, name, "long", locale=x) for x in _LOCALES)
  )


def _first(text: str, day: datetime.date) -> str:
  """In French, the first of a month is an ordinal: le 1er mai."""
  if day.day != 1:
    return text
  return " ".join("1er" if word == "1" else word for word in text.split())
