"""What is drawn for a slot: a day, a time, a price, a number of things."""

import datetime
import random
from collections.abc import Callable

from . import cldr, clock, lexicon, numbers
from .cldr import Phrase


def moment(rng: random.Random, first: int = 5, last: int = 23) -> datetime.time:
  """A time of day with minutes in steps of 5, between two full hours."""
  minutes = 5 * rng.randint(12 * first, 12 * last)
  return datetime.time(*divmod(minutes, 60))


def duration(rng: random.Random, choices: list[tuple[str, str, int]]) -> Phrase:
  """A time span in one unit, or in two: 2 hours, 2 hours and 5 minutes."""
  larger, smaller, most = rng.choice(choices)
  first = cldr.unit(_or_one(rng, 12), larger)
  if rng.random() < 0.5:
    return first
  second = cldr.unit(rng.randint(2, most), smaller)
  return Phrase(
    f"{first.en} and {second.en}",
    f"{first.de} und {second.de}",
    f"{first.fr} et {second.fr}",
  )


def _or_one(rng: random.Random, most: int) -> int:
  """A number up to `most`; one of seven is 1, for the sake of the singular."""
  return 1 if rng.random() < 1 / 7 else rng.randint(2, most)


# A larger unit, a smaller one, and the most of the smaller one.
_HOURS = [
  ("duration-hour", "duration-minute", 59),
  ("duration-minute", "duration-second", 59),
]
_DAYS = [
  ("duration-week", "duration-day", 6),
  ("duration-day", "duration-hour", 23),
]


def _date(rng: random.Random) -> Phrase:
  first = datetime.date(2020, 1, 1).toordinal()
  last = datetime.date(2035, 12, 31).toordinal()
  return cldr.date(datetime.date.fromordinal(rng.randint(first, last)))


def _day(rng: random.Random) -> Phrase:
  day = datetime.date(2000, 1, 1) + datetime.timedelta(rng.randint(0, 365))
  return cldr.day_of_month(day.month, day.day)


def _nth(rng: random.Random) -> Phrase:
  """The second Monday of May."""
  nth = rng.choice(lexicon.ORDINALS)
  day, month = cldr.weekday(rng.randint(0, 6)), cldr.month(rng.randint(1, 12))
  return Phrase(
    f"{nth.en} {day.en} of {month.en}",
    f"{nth.de} {day.de} im {month.de}",
    f"{nth.fr} {day.fr} de {month.fr}",
  )


def _clock(rng: random.Random) -> Phrase:
  hour = rng.randint(1, 11)
  if rng.random() < 0.6:
    return clock.past(hour, rng.choice(clock.PAST))
  return clock.before(hour, rng.choice(clock.BEFORE))


def _price(rng: random.Random) -> Phrase:
  whole = rng.choice([rng.randint(2, 99), rng.randint(100, 4999)])
  cents = rng.choice([0, 50, 95, 99, rng.randint(1, 99)])
  return cldr.price(whole + cents / 100, rng.choice(lexicon.CURRENCIES))


def _count(rng: random.Random) -> Phrase:
  thing = rng.choice(lexicon.COUNTED)
  n = _integer(rng)
  return Phrase(
    f"{numbers.english(n)} {thing.en}",
    f"{numbers.german(n)} {thing.de}",
    f"{numbers.french(n, feminine=thing.genre == 'f')} {thing.fr}",
  )


def _integer(rng: random.Random) -> int:
  """A number to spell: not 1, nor one that ends in 01 (one more than 100)."""
  n = rng.randint(2, 99)
  if rng.random() < 0.2:
    n = 100 * rng.randint(1, 9) + rng.choice([0, n])
  return n


def number(rng: random.Random) -> tuple[Phrase, Phrase]:
  """A number in digits and in words."""
  n = _integer(rng)
  words = numbers.english(n), numbers.german_alone(n), numbers.french(n)
  return cldr.same(str(n)), Phrase(*words)


def _weight(rng: random.Random) -> Phrase:
  """At least 2 kilograms, so that the verb is in the plural in French too."""
  n = rng.choice([rng.randint(2, 40), rng.randint(21, 99) / 10])
  return cldr.unit(n, "mass-kilogram")


DRAW: dict[str, Callable[[random.Random], Phrase]] = {
  "date": _date,
  "day": _day,
  "nth": _nth,
  "weekday": lambda rng: cldr.weekday(rng.randint(0, 6)),
  "time": lambda rng: cldr.time(moment(rng)),
  "clock": _clock,
  "hours": lambda rng: duration(rng, _HOURS),
  "duration": lambda rng: duration(rng, _HOURS + _DAYS),
  "years": lambda rng: cldr.unit(
    _or_one(rng, 40), rng.choice(["duration-year", "duration-month"])
  ),
  "year": lambda rng: cldr.same(str(rng.randint(1950, 2024))),
  "price": _price,
  "percent": lambda rng: cldr.percent(rng.randint(11, 299) / 1000),
  "count": _count,
  "weight": _weight,
  "distance": lambda rng: cldr.unit(rng.randint(51, 2400), "length-kilometer"),
  "degrees": lambda rng: cldr.unit(rng.randint(2, 35), "temperature-celsius"),
  "number": lambda rng: cldr.decimal(rng.randint(1001, 999_999)),
  "food": lambda rng: rng.choice(lexicon.FOODS),
  "place": lambda rng: rng.choice(lexicon.PLACES),
}
