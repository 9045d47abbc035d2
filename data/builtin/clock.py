"""The time as one says it: half past three, halb vier, trois heures et demie.

German names the hour that comes, English and French the one that has gone; the
quarter before an hour counts towards it in all three.
"""

from . import numbers
from .cldr import Phrase

PAST = (0, 5, 10, 15, 20, 30)
BEFORE = (5, 10, 15, 20)


def past(hour: int, minute: int) -> Phrase:
  """The full hour, or some minutes past it.

  Args:
    hour: 1 to 11: noon and midnight have names of their own in French.
    minute: one of `PAST`.
  """
  english, german = numbers.english(hour), numbers.german_alone(hour)
  heures = _heures(hour)
  if minute == 0:
    return Phrase(f"{english} o'clock", f"{numbers.german(hour)} Uhr", heures)
  if minute == 30:
    coming = numbers.german_alone(hour + 1)
    return Phrase(
      f"half past {english}", f"halb {coming}", f"{heures} et demie"
    )
  if minute == 15:
    return Phrase(
      f"a quarter past {english}",
      f"Viertel nach {german}",
      f"{heures} et quart",
    )
  return Phrase(
    f"{numbers.english(minute)} past {english}",
    f"{numbers.german(minute)} nach {german}",
    f"{heures} {numbers.french(minute)}",
  )


def before(hour: int, minute: int) -> Phrase:
  """A `minute` of `BEFORE`, before an hour from 1 to 11."""
  english, german = numbers.english(hour), numbers.german_alone(hour)
  heures = _heures(hour)
  if minute == 15:
    return Phrase(
      f"a quarter to {english}",
      f"Viertel vor {german}",
      f"{heures} moins le quart",
    )
  return Phrase(
    f"{numbers.english(minute)} to {english}",
    f"{numbers.german(minute)} vor {german}",
    f"{heures} moins {numbers.french(minute)}",
  )


def _heures(hour: int) -> str:
  words = numbers.french(hour, feminine=True)
  return f"{words} heure" + ("s" if hour > 1 else "")
