"""Sentences of the built-in corpus: what fills the slots of the templates.

A template is the same sentence in each language with the same slots. German
moves verbs to the end, French elides, numbers and dates change their form: the
languages differ in more than their words.
"""

import datetime
import random
import re
from collections.abc import Callable

from . import cldr, lexicon, numbers
from .cldr import Phrase
from .templates import TEMPLATES


class Slots:
  """The fillings of one sentence; each is drawn when it is asked for."""

  def __init__(self, rng: random.Random) -> None:
    self._rng = rng
    self._drawn: dict[str, Phrase] = {}
    self._nouns: dict[str, lexicon.Noun] = {}
    self._verb = rng.choice(lexicon.VERBS)
    self._persons = iter(rng.sample(lexicon.PERSONS, 2))
    self._cities = iter(rng.sample(lexicon.CITIES, 2))
    self._unit = rng.choice(_DURATIONS)

  def __getitem__(self, name: str) -> Phrase:
    if name not in self._drawn:
      self._drawn[name] = self._draw(name)
    return self._drawn[name]

  def _draw(self, name: str) -> Phrase:
    kind = name.rstrip("2")
    if kind in _NOUNS:
      return self._noun(kind).subject()
    if kind.endswith("_object"):
      return self._noun(kind.removesuffix("_object")).object()
    if kind in _DRAW:
      return _DRAW[kind](self._rng)
    own: dict[str, Callable[[], Phrase]] = {
      "person": lambda: _same(next(self._persons)),
      "city": lambda: next(self._cities),
      "pronoun": lambda: _same(self._noun("item").pronoun()),
      "present": lambda: self._verb_form(0, 0, 0),
      "past": lambda: self._verb_form(1, 1, 1),
      "base": lambda: self._verb_form(2, 2, 2),
      "future": lambda: self._verb_form(2, 2, 3),
      "duration": self._duration,
      "duration_dative": lambda: dative(self["duration"]),
      "years_dative": lambda: dative(self["years"]),
    }
    return own[kind]()

  def _noun(self, kind: str) -> lexicon.Noun:
    if kind not in self._nouns:
      self._nouns[kind] = self._rng.choice(_NOUNS[kind])
    return self._nouns[kind]

  def _verb_form(self, en: int, de: int, fr: int) -> Phrase:
    v = self._verb
    return Phrase(v.en[en], v.de[de], v.fr[fr])

  def _duration(self) -> Phrase:
    larger, smaller, most = self._unit
    first = cldr.unit(self._rng.randint(2, 12), larger)
    if self._rng.random() < 0.5:
      return first
    second = cldr.unit(self._rng.randint(2, most), smaller)
    return Phrase(
      f"{first.en} and {second.en}",
      f"{first.de} und {second.de}",
      f"{first.fr} et {second.fr}",
    )


# A larger unit, a smaller one, and the most of the smaller one.
_DURATIONS = [
  ("duration-hour", "duration-minute", 59),
  ("duration-day", "duration-hour", 23),
  ("duration-minute", "duration-second", 59),
  ("duration-week", "duration-day", 6),
]

_NOUNS = {
  "event": lexicon.EVENTS,
  "vehicle": lexicon.VEHICLES,
  "shop": lexicon.SHOPS,
  "item": lexicon.ITEMS,
}


def _any_day(rng: random.Random) -> datetime.date:
  first = datetime.date(2000, 1, 1).toordinal()
  last = datetime.date(2035, 12, 31).toordinal()
  return datetime.date.fromordinal(rng.randint(first, last))


def _time(rng: random.Random) -> Phrase:
  minute = rng.choice(range(0, 60, 5))
  return cldr.time(datetime.time(rng.randint(5, 23), minute))


def _price(rng: random.Random) -> Phrase:
  euros = rng.choice([rng.randint(2, 99), rng.randint(100, 4999)])
  cents = rng.choice([0.0, 0.5, 0.95, 0.99, rng.randint(1, 99) / 100])
  return cldr.price(euros + cents, rng.choice(lexicon.CURRENCIES))


def _count(rng: random.Random) -> Phrase:
  thing = rng.choice(lexicon.COUNTED)
  n = rng.randint(2, 99)
  if rng.random() < 0.2:
    n = 100 * rng.randint(1, 9) + rng.choice([0, rng.randint(2, 99)])
  if n % 100 == 1:
    n += 1
  return Phrase(
    f"{numbers.english(n)} {thing.en}",
    f"{numbers.german(n)} {thing.de}",
    f"{numbers.french(n, thing.feminine)} {thing.fr}",
  )


def _weight(rng: random.Random) -> Phrase:
  n = rng.choice([rng.randint(2, 40), rng.randint(11, 99) / 10])
  return cldr.unit(n, "mass-kilogram")


def _distance(rng: random.Random) -> Phrase:
  return cldr.unit(rng.randint(51, 2400), "length-kilometer")


def _number(rng: random.Random) -> Phrase:
  return cldr.decimal(rng.randint(1001, 999_999))


def _year(rng: random.Random) -> Phrase:
  return _same(str(rng.randint(1950, 2035)))


def _same(text: str) -> Phrase:
  return Phrase(text, text, text)


_DRAW: dict[str, Callable[[random.Random], Phrase]] = {
  "date": lambda rng: cldr.date(_any_day(rng)),
  "day": lambda rng: cldr.day_of_month(_any_day(rng)),
  "weekday": lambda rng: cldr.weekday(_any_day(rng)),
  "time": _time,
  "years": lambda rng: cldr.unit(
    rng.randint(2, 40), rng.choice(["duration-year", "duration-month"])
  ),
  "price": _price,
  "percent": lambda rng: cldr.percent(rng.randint(11, 299) / 1000),
  "count": _count,
  "weight": _weight,
  "distance": _distance,
  "number": _number,
  "year": _year,
  "food": lambda rng: rng.choice(lexicon.FOODS),
  "place": lambda rng: rng.choice(lexicon.PLACES),
}

# German nouns after "seit" and "nach" end in n.
_DATIVES = {"Jahre": "Jahren", "Monate": "Monaten", "Tage": "Tagen"}


def dative(duration: Phrase) -> Phrase:
  """A duration, in German in the dative."""
  words = [_DATIVES.get(word, word) for word in duration.de.split()]
  return Phrase(duration.en, " ".join(words), duration.fr)


def elide(text: str) -> str:
  """French: que and de lose their vowel before another one."""
  text = re.sub(r"\b([dD]|[qQ]u)e (?=[AEIOUaeiouéœ])", r"\1'", text)
  return re.sub(r"\bde le ", "du ", text)


def sentence(rng: random.Random) -> Phrase:
  """A sentence in each language."""
  en, de, fr = rng.choice(TEMPLATES)
  slots = Slots(rng)
  names = dict.fromkeys(re.findall(r"{(\w+)}", en + de + fr))
  fill = {name: slots[name] for name in names}
  english = en.format(**{n: p.en for n, p in fill.items()})
  german = de.format(**{n: p.de for n, p in fill.items()})
  french = elide(fr.format(**{n: p.fr for n, p in fill.items()}))
  return Phrase(*map(_capital, (english, german, french)))


def _capital(text: str) -> str:
  return text[0].upper() + text[1:]
