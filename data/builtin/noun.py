"""Nouns with their articles and colours: case and gender in three languages."""

import dataclasses

from .cldr import Phrase


@dataclasses.dataclass(frozen=True)
class Colour:
  """A colour: the stem in German; masculine and feminine in French."""

  en: str
  de: str
  masculine: str
  feminine: str


@dataclasses.dataclass(frozen=True)
class Noun:
  """A noun in the singular.

  Attributes:
    en: begins with a consonant.
    de: the same in the nominative, the dative and the accusative.
    gender: m, f or n: in German.
    fr: if it begins with h, then with one that allows elision.
    genre: m or f: in French.
    colour: what colour the thing has, if that is said.
  """

  en: str
  de: str
  gender: str
  fr: str
  genre: str
  colour: Colour | None = None

  def subject(self) -> Phrase:
    """Definite, in the nominative: the ..., der rote ..., le ... rouge."""
    return self._with("the", _DER[self.gender], "e", self._le())

  def object(self) -> Phrase:
    """Definite, in the accusative: the ..., den roten ..., le ... rouge."""
    ending = "en" if self.gender == "m" else "e"
    return self._with("the", _DEN[self.gender], ending, self._le())

  def any(self) -> Phrase:
    """Indefinite, in the accusative: a ..., einen roten ..., un ... rouge."""
    article = "une " if self.genre == "f" else "un "
    ending = {"m": "en", "f": "e", "n": "es"}[self.gender]
    return self._with("a", _EINEN[self.gender], ending, article)

  def towards(self) -> Phrase:
    """Where one goes: to the ..., zum ..., à le ... (which becomes au)."""
    german = "zur" if self.gender == "f" else "zum"
    return self._with("to the", german, "en", f"à {self._le()}")

  def pronoun(self) -> str:
    """The German pronoun in the accusative."""
    return {"m": "ihn", "f": "sie", "n": "es"}[self.gender]

  def _le(self) -> str:
    """The French article, with the space that follows it."""
    if self.fr[0] in "aeiouéh":
      return "l'"
    return "la " if self.genre == "f" else "le "

  def _with(self, the: str, der: str, ending: str, le: str) -> Phrase:
    if self.colour is None:
      return Phrase(f"{the} {self.en}", f"{der} {self.de}", f"{le}{self.fr}")
    c = self.colour
    french = c.feminine if self.genre == "f" else c.masculine
    return Phrase(
      f"{the} {c.en} {self.en}",
      f"{der} {c.de}{ending} {self.de}",
      f"{le}{self.fr} {french}",
    )


_DER = {"m": "der", "f": "die", "n": "das"}
_DEN = {"m": "den", "f": "die", "n": "das"}
_EINEN = {"m": "einen", "f": "eine", "n": "ein"}
