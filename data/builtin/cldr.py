"""Dates, times, prices and units as three languages write them.

A thin layer over Babel, which ships the tables of the Unicode CLDR. They change
a little from release to release: the corpus is a function of its seed for one
version of Babel.
"""

import dataclasses
import datetime

from babel import dates, numbers, units


@dataclasses.dataclass(frozen=True)
class Phrase:
  """The same words in each language."""

  en: str
  de: str
  fr: str


def phrase(en: str, de: str, fr: str) -> Phrase:
  """A phrase with plain spaces: CLDR uses several that cannot be seen."""
  return Phrase(*(" ".join(text.split()) for text in (en, de, fr)))


def date(day: datetime.date) -> Phrase:
  """With the day of the week: on ..., am ..., le ...."""
  return phrase(
    dates.format_date(day, "EEEE, MMMM d, y", "en_US"),
    dates.format_date(day, "EEEE, 'dem' d. MMMM y", "de"),
    _first(dates.format_date(day, "EEEE d MMMM y", "fr"), day),
  )


def day_of_month(day: datetime.date) -> Phrase:
  """Month and day: on ..., am ..., le ...."""
  return phrase(
    dates.format_date(day, "MMMM d", "en_US"),
    dates.format_date(day, "d. MMMM", "de"),
    _first(dates.format_date(day, "d MMMM", "fr"), day),
  )


def weekday(day: datetime.date) -> Phrase:
  """The name of the day of the week."""
  return phrase(
    *(dates.format_date(day, "EEEE", locale) for locale in _LOCALES)
  )


def time(at: datetime.time) -> Phrase:
  """A time of day."""
  german = dates.format_time(at, "HH:mm", locale="de")
  return phrase(
    dates.format_time(at, "h:mm a", locale="en_US"),
    f"{german} Uhr",
    dates.format_time(at, "HH:mm", locale="fr"),
  )


def price(amount: float, currency: str) -> Phrase:
  """An amount of money."""
  return phrase(
    *(numbers.format_currency(amount, currency, locale=x) for x in _LOCALES)
  )


def decimal(number: float) -> Phrase:
  """A number with its separators."""
  return phrase(*(numbers.format_decimal(number, locale=x) for x in _LOCALES))


def percent(share: float) -> Phrase:
  """A share of a whole, in per cent with at most one digit behind the point."""
  return phrase(
    *(numbers.format_percent(share, "#,##0.#%", x) for x in _LOCALES[:1]),
    *(numbers.format_percent(share, "#,##0.# %", x) for x in _LOCALES[1:]),
  )


def unit(number: float, name: str) -> Phrase:
  """A number of units, such as "duration-hour", written out."""
  return phrase(
    *(units.format_unit(number, name, "long", locale=x) for x in _LOCALES)
  )


_LOCALES = ("en_US", "de", "fr")


def _first(text: str, day: datetime.date) -> str:
  """In French, the first of a month is an ordinal: le 1er mai."""
  if day.day != 1:
    return text
  return " ".join("1er" if word == "1" else word for word in text.split())
