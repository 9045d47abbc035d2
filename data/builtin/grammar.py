"""Sentences of the built-in corpus: what fills the slots of the templates.

A template is the same sentence in each language with the same slots. German
moves verbs to the end, French elides, numbers and dates change their form: the
languages differ in more than their words.
"""

import dataclasses
import random
import re
from collections.abc import Callable, Sequence

from . import cldr, drawing, lexicon
from .cldr import Phrase
from .noun import Noun
from .templates import TEMPLATES


def sentence(rng: random.Random) -> Phrase:
  """A sentence in each language."""
  return render(rng.choice(TEMPLATES), Slots(rng))


def render(template: Sequence[str], slots: "Slots") -> Phrase:
  """A template with its slots filled."""
  en, de, fr = template
  names = dict.fromkeys(re.findall(r"{(\w+)}", en + de + fr))
  fill = {name: slots[name] for name in names}
  english = en.format(**{n: p.en for n, p in fill.items()})
  german = de.format(**{n: p.de for n, p in fill.items()})
  french = elide(fr.format(**{n: p.fr for n, p in fill.items()}))
  return Phrase(*map(_capital, (english, german, french)))


class Slots:
  """The fillings of one sentence; most are drawn when they are asked for.

  The name of a slot is a kind, such as `item`; with a 2 behind it, it is
  another one of that kind; behind an underscore stands the form that it takes:
  `item2_object`.

  Attributes:
    nouns: by kind; their forms are made from these.
    drawn: all other fillings so far.
  """

  def __init__(self, rng: random.Random) -> None:
    self.nouns = _nouns(rng)
    self.drawn = _connected(rng)
    self._rng = rng

  def __getitem__(self, name: str) -> Phrase:
    if name not in self.drawn:
      self.drawn[name] = self._draw(name)
    return self.drawn[name]

  def _draw(self, name: str) -> Phrase:
    base, _, form = name.partition("_")
    if base in self.nouns:
      return _FORMS[form](self.nouns[base])
    if form == "dative":
      return dative(self[base])
    return drawing.DRAW[base.rstrip("2")](self._rng)


_FORMS: dict[str, Callable[[Noun], Phrase]] = {
  "": Noun.subject,
  "object": Noun.object,
  "any": Noun.any,
  "to": Noun.towards,
  "pronoun": lambda noun: cldr.same(noun.pronoun()),
}


def _nouns(rng: random.Random) -> dict[str, Noun]:
  """A noun of each kind, and another item; half of the items have a colour."""
  item, item2 = (
    dataclasses.replace(noun, colour=rng.choice(lexicon.COLOURS))
    if rng.random() < 0.5
    else noun
    for noun in rng.sample(lexicon.ITEMS, 2)
  )
  return {
    "event": rng.choice(lexicon.EVENTS),
    "vehicle": rng.choice(lexicon.VEHICLES),
    "shop": rng.choice(lexicon.SHOPS),
    "item": item,
    "item2": item2,
  }


def _connected(rng: random.Random) -> dict[str, Phrase]:
  """What cannot be drawn one by one: pairs, and the forms of a verb."""
  person, person2 = map(cldr.same, rng.sample(lexicon.PERSONS, 2))
  city, city2 = rng.sample(lexicon.CITIES, 2)
  digits, spelled = drawing.number(rng)
  verb = rng.choice(lexicon.VERBS)
  present, past, base = map(Phrase, verb.en, verb.de, verb.fr)
  return {
    "person": person,
    "person2": person2,
    "city": city,
    "city2": city2,
    "early": cldr.time(drawing.moment(rng, 6, 13)),
    "late": cldr.time(drawing.moment(rng, 14, 22)),
    "digits": digits,
    "spelled": spelled,
    "present": present,
    "past": past,
    "base": base,
    "future": dataclasses.replace(base, fr=verb.fr[3]),
  }


# German nouns after "seit" and "nach" end in n.
_DATIVES = {"Jahre": "Jahren", "Monate": "Monaten", "Tage": "Tagen"}


def dative(duration: Phrase) -> Phrase:
  """A duration, in German in the dative."""
  words = [_DATIVES.get(word, word) for word in duration.de.split()]
  return Phrase(duration.en, " ".join(words), duration.fr)


def elide(text: str) -> str:
  """French: que and de before a vowel; de le becomes du, à le becomes au."""
  text = re.sub(r"\b([dD]|[qQ]u)e (?=[AEIOUaeiouéœ])", r"\1'", text)
  text = re.sub(r"\bde le ", "du ", text)
  return re.sub(r"\bà le ", "au ", text)


def _capital(text: str) -> str:
  return text[0].upper() + text[1:]
