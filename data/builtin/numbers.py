"""Numbers in words: English, German and French, from 0 to 999,999."""

_ENGLISH = [
  "zero",
  "one",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve",
  "thirteen",
  "fourteen",
  "fifteen",
  "sixteen",
  "seventeen",
  "eighteen",
  "nineteen",
]
_ENGLISH_TENS = [
  "_",
  "_",
  "twenty",
  "thirty",
  "forty",
  "fifty",
  "sixty",
  "seventy",
  "eighty",
  "ninety",
]

_GERMAN = [
  "null",
  "ein",
  "zwei",
  "drei",
  "vier",
  "fünf",
  "sechs",
  "sieben",
  "acht",
  "neun",
  "zehn",
  "elf",
  "zwölf",
  "dreizehn",
  "vierzehn",
  "fünfzehn",
  "sechzehn",
  "siebzehn",
  "achtzehn",
  "neunzehn",
]
_GERMAN_TENS = [
  "_",
  "_",
  "zwanzig",
  "dreißig",
  "vierzig",
  "fünfzig",
  "sechzig",
  "siebzig",
  "achtzig",
  "neunzig",
]

_FRENCH = [
  "zéro",
  "un",
  "deux",
  "trois",
  "quatre",
  "cinq",
  "six",
  "sept",
  "huit",
  "neuf",
  "dix",
  "onze",
  "douze",
  "treize",
  "quatorze",
  "quinze",
  "seize",
  "dix-sept",
  "dix-huit",
  "dix-neuf",
]
_FRENCH_TENS = [
  "_",
  "_",
  "vingt",
  "trente",
  "quarante",
  "cinquante",
  "soixante",
]


def english(n: int) -> str:
  """`n` in English words, without "and": one hundred five."""
  _check(n)
  if n < 20:
    return _ENGLISH[n]
  if n < 100:
    ten, one = divmod(n, 10)
    return _ENGLISH_TENS[ten] + (f"-{_ENGLISH[one]}" if one else "")
  size, name = (1000, "thousand") if n >= 1000 else (100, "hundred")
  head, rest = divmod(n, size)
  return f"{english(head)} {name}" + (f" {english(rest)}" if rest else "")


def german(n: int) -> str:
  """`n` as a German word, as it stands before a noun in the plural.

  Alone, or counting, a number that ends in 1 ends in "eins": see
  `german_alone`.
  """
  _check(n)
  if n < 20:
    return _GERMAN[n]
  if n < 100:
    ten, one = divmod(n, 10)
    return (f"{_GERMAN[one]}und" if one else "") + _GERMAN_TENS[ten]
  size, name = (1000, "tausend") if n >= 1000 else (100, "hundert")
  head, rest = divmod(n, size)
  return german(head) + name + (german(rest) if rest else "")


def german_alone(n: int) -> str:
  """`n` as a German word that stands alone: eins, einhunderteins."""
  ends_in_one = n % 100 == 1
  return german(n) + ("s" if ends_in_one else "")


def french(n: int, feminine: bool = False) -> str:
  """`n` in French words, in the spelling before 1990.

  Args:
    n: the number.
    feminine: whether it counts feminine things: vingt et une tables.
  """
  _check(n)
  if n >= 1000:
    head, rest = divmod(n, 1000)
    thousands = "" if head == 1 else f"{_before_mille(head)} "
    tail = f" {french(rest, feminine)}" if rest else ""
    return f"{thousands}mille{tail}"
  if n >= 100:
    head, rest = divmod(n, 100)
    hundreds = "cent" if head == 1 else f"{_FRENCH[head]} cent"
    if rest:
      return f"{hundreds} {french(rest, feminine)}"
    return hundreds + ("s" if head > 1 else "")
  return _french_below_100(n, feminine)


def _french_below_100(n: int, feminine: bool) -> str:
  one = "une" if feminine else "un"
  if n < 20:
    return one if n == 1 else _FRENCH[n]
  if n >= 80:
    rest = _french_below_100(n - 80, feminine)
    return "quatre-vingts" if n == 80 else f"quatre-vingt-{rest}"
  if n >= 70:
    return "soixante et onze" if n == 71 else f"soixante-{_FRENCH[n - 60]}"
  ten, rest_of_ten = divmod(n, 10)
  if rest_of_ten == 1:
    return f"{_FRENCH_TENS[ten]} et {one}"
  return _FRENCH_TENS[ten] + (f"-{_FRENCH[rest_of_ten]}" if rest_of_ten else "")


def _before_mille(n: int) -> str:
  """Before "mille", cents and vingts lose their s."""
  words = french(n)
  if words.endswith(("cents", "vingts")):
    return words[:-1]
  return words


def _check(n: int) -> None:
  if not 0 <= n < 1_000_000:
    raise ValueError(f"numbers in words go from 0 to 999,999, got {n}")
