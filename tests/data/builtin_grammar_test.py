"""The words of the built-in corpus: numbers, clocks, CLDR, case and gender."""

import dataclasses
import datetime
import random
import re

import pytest

from mesh_tf2.data.builtin import (
  cldr,
  clock,
  drawing,
  grammar,
  lexicon,
  numbers,
)
from mesh_tf2.data.builtin.templates import TEMPLATES

# Written by hand.
NUMBERS = [
  (0, "zero", "null", "zéro"),
  (1, "one", "ein", "un"),
  (7, "seven", "sieben", "sept"),
  (12, "twelve", "zwölf", "douze"),
  (16, "sixteen", "sechzehn", "seize"),
  (17, "seventeen", "siebzehn", "dix-sept"),
  (21, "twenty-one", "einundzwanzig", "vingt et un"),
  (22, "twenty-two", "zweiundzwanzig", "vingt-deux"),
  (30, "thirty", "dreißig", "trente"),
  (40, "forty", "vierzig", "quarante"),
  (66, "sixty-six", "sechsundsechzig", "soixante-six"),
  (70, "seventy", "siebzig", "soixante-dix"),
  (71, "seventy-one", "einundsiebzig", "soixante et onze"),
  (77, "seventy-seven", "siebenundsiebzig", "soixante-dix-sept"),
  (80, "eighty", "achtzig", "quatre-vingts"),
  (81, "eighty-one", "einundachtzig", "quatre-vingt-un"),
  (90, "ninety", "neunzig", "quatre-vingt-dix"),
  (91, "ninety-one", "einundneunzig", "quatre-vingt-onze"),
  (97, "ninety-seven", "siebenundneunzig", "quatre-vingt-dix-sept"),
  (100, "one hundred", "einhundert", "cent"),
  (101, "one hundred one", "einhundertein", "cent un"),
  (200, "two hundred", "zweihundert", "deux cents"),
  (203, "two hundred three", "zweihundertdrei", "deux cent trois"),
  (280, "two hundred eighty", "zweihundertachtzig", "deux cent quatre-vingts"),
  (
    999,
    "nine hundred ninety-nine",
    "neunhundertneunundneunzig",
    "neuf cent quatre-vingt-dix-neuf",
  ),
  (1000, "one thousand", "eintausend", "mille"),
  (2016, "two thousand sixteen", "zweitausendsechzehn", "deux mille seize"),
  (21_000, "twenty-one thousand", "einundzwanzigtausend", "vingt et un mille"),
  (80_000, "eighty thousand", "achtzigtausend", "quatre-vingt mille"),
  (200_000, "two hundred thousand", "zweihunderttausend", "deux cent mille"),
]


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: str(row[0]))
def test_numbers_are_spelled_as_by_hand(row):
  n, *words = row
  got = [numbers.english(n), numbers.german(n), numbers.french(n)]
  assert got == words


def read_french(words):
  """The number that French words say; works from the words, not the digits."""
  values = dict(zip(numbers._FRENCH, range(20), strict=True))
  values |= {"vingt": 20, "vingts": 20, "trente": 30, "quarante": 40}
  values |= {"cinquante": 50, "soixante": 60, "une": 1}
  total = group = 0
  previous = None
  for word in re.split(r"[ -]", words):
    if word == "et":
      continue
    if word in ("cent", "cents"):
      group = 100 * max(group, 1)
    elif word == "mille":
      total, group = 1000 * max(group, 1), 0
    elif word in ("vingt", "vingts") and previous == "quatre":
      group += 76
    else:
      group += values[word]
    previous = word
  return total + group


def read_german(word):
  """The number that a German word says."""
  if "tausend" in word:
    head, tail = word.split("tausend")
    return 1000 * read_german(head) + (read_german(tail) if tail else 0)
  if "hundert" in word:
    head, tail = word.split("hundert")
    return 100 * read_german(head) + (read_german(tail) if tail else 0)
  names = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
  ones = {name: n for n, name in enumerate(names.split())}
  ones |= {"eins": 1, "sech": 6, "sieb": 7, "zwan": 2, "": 0}
  if "und" in word:
    one, ten = word.split("und")
    return ones[one] + read_german(ten)
  if word.endswith(("zig", "ßig")):
    return 10 * ones[word[:-3]]
  if word.endswith("zehn") and word != "zehn":
    return 10 + ones[word[:-4]]
  return ones[word]


def test_numbers_that_are_read_back_are_the_same():
  for n in [*range(1000), *random.Random(0).sample(range(1000, 10**6), 300)]:
    assert read_german(numbers.german(n)) == n
    assert read_german(numbers.german_alone(n)) == n
    assert read_french(numbers.french(n)) == n
    assert read_french(numbers.french(n, feminine=True)) == n


def test_numbers_agree_with_what_they_count():
  assert numbers.french(21, feminine=True) == "vingt et une"
  assert numbers.french(81, feminine=True) == "quatre-vingt-une"
  assert numbers.french(71, feminine=True) == "soixante et onze"
  assert numbers.french(21_000, feminine=True) == "vingt et un mille"
  assert numbers.german_alone(1) == "eins"
  assert numbers.german_alone(101) == "einhunderteins"
  assert numbers.german_alone(21) == "einundzwanzig"


@pytest.mark.parametrize("n", [-1, 1_000_000])
def test_a_number_too_large_to_spell_is_named(n):
  for spell in (numbers.english, numbers.german, numbers.french):
    with pytest.raises(ValueError, match=f"from 0 to 999,999, got {n}"):
      spell(n)


# Written by hand.
CLOCKS = [
  (clock.past(1, 0), "one o'clock", "ein Uhr", "une heure"),
  (clock.past(3, 0), "three o'clock", "drei Uhr", "trois heures"),
  (clock.past(1, 15), "a quarter past one", "Viertel nach eins",
   "une heure et quart"),
  (clock.past(1, 30), "half past one", "halb zwei", "une heure et demie"),
  (clock.past(11, 30), "half past eleven", "halb zwölf",
   "onze heures et demie"),
  (clock.past(7, 20), "twenty past seven", "zwanzig nach sieben",
   "sept heures vingt"),
  (clock.before(1, 15), "a quarter to one", "Viertel vor eins",
   "une heure moins le quart"),
  (clock.before(4, 5), "five to four", "fünf vor vier",
   "quatre heures moins cinq"),
]  # fmt: skip


@pytest.mark.parametrize("row", CLOCKS, ids=lambda row: row[1])
def test_the_clock_is_said_as_by_hand(row):
  got, *words = row
  assert [got.en, got.de, got.fr] == words


def test_the_clock_says_no_time_in_two_ways():
  said = [clock.past(h, m) for h in range(1, 12) for m in clock.PAST]
  said += [clock.before(h, m) for h in range(1, 12) for m in clock.BEFORE]
  for language in ("en", "de", "fr"):
    assert len({getattr(s, language) for s in said}) == len(said) == 110


def test_dates_are_written_as_each_language_does():
  may = cldr.day_of_month(5, 1)
  assert (may.en, may.de, may.fr) == ("May 1", "1. Mai", "1er mai")
  day = cldr.date(datetime.date(2021, 6, 6))
  assert day.en == "Sunday, June 6, 2021"
  assert day.de == "Sonntag, dem 6. Juni 2021"
  assert day.fr == "dimanche 6 juin 2021"
  first = cldr.date(datetime.date(2021, 8, 1))
  assert first.fr == "dimanche 1er août 2021"
  assert cldr.weekday(2) == cldr.Phrase("Wednesday", "Mittwoch", "mercredi")
  assert cldr.month(3) == cldr.Phrase("March", "März", "mars")


def test_times_are_written_as_each_language_does():
  assert cldr.time(datetime.time(0, 5)).en == "12:05 AM"
  noon = cldr.time(datetime.time(12, 0))
  assert (noon.en, noon.de, noon.fr) == ("12:00 PM", "12:00 Uhr", "12:00")
  late = cldr.time(datetime.time(21, 45))
  assert (late.en, late.de, late.fr) == ("9:45 PM", "21:45 Uhr", "21:45")


def test_numbers_are_written_as_each_language_does():
  price = cldr.price(1234.5, "EUR")
  assert (price.en, price.de) == ("€1,234.50", "1.234,50 €")
  assert price.fr == "1 234,50 €"
  share = cldr.percent(0.125)
  assert (share.en, share.de, share.fr) == ("12.5%", "12,5 %", "12,5 %")
  assert cldr.percent(0.11).de == "11 %"
  people = cldr.decimal(65432)
  assert (people.en, people.de, people.fr) == ("65,432", "65.432", "65 432")


def test_units_are_in_the_plural_where_each_language_has_it():
  assert cldr.unit(1, "duration-hour") == cldr.Phrase(
    "1 hour", "1 Stunde", "1 heure"
  )
  assert cldr.unit(1.5, "mass-kilogram") == cldr.Phrase(
    "1.5 kilograms", "1,5 Kilogramm", "1,5 kilogramme"
  )
  assert cldr.unit(2, "duration-year") == cldr.Phrase(
    "2 years", "2 Jahre", "2 ans"
  )


NOUNS = lexicon.EVENTS + lexicon.VEHICLES + lexicon.SHOPS + lexicon.ITEMS


def of(words, english):
  """The one of some words that is this in English."""
  return next(word for word in words if word.en == english)


def coloured(item, colour):
  colour = of(lexicon.COLOURS, colour)
  return dataclasses.replace(of(lexicon.ITEMS, item), colour=colour)


# Written by hand: an article, a colour and a noun in German and French.
ARTICLES = [
  ("table", "der rote Tisch", "den roten Tisch", "einen roten Tisch", "zum",
   "la table rouge", "une table rouge"),
  ("lamp", "die rote Lampe", "die rote Lampe", "eine rote Lampe", "zur",
   "la lampe rouge", "une lampe rouge"),
  ("bicycle", "das rote Fahrrad", "das rote Fahrrad", "ein rotes Fahrrad",
   "zum", "le vélo rouge", "un vélo rouge"),
  ("clock", "die rote Uhr", "die rote Uhr", "eine rote Uhr", "zur",
   "l'horloge rouge", "une horloge rouge"),
  ("camera", "die rote Kamera", "die rote Kamera", "eine rote Kamera", "zur",
   "l'appareil photo rouge", "un appareil photo rouge"),
]  # fmt: skip


@pytest.mark.parametrize("row", ARTICLES, ids=lambda row: row[0])
def test_articles_and_colours_agree_with_the_noun(row):
  english, der, den, einen, zum, le, un = row
  red = coloured(english, "red")
  assert red.subject() == cldr.Phrase(f"the red {english}", der, le)
  assert red.object() == cldr.Phrase(f"the red {english}", den, le)
  assert red.any() == cldr.Phrase(f"a red {english}", einen, un)
  assert red.towards().de.split()[0] == zum


def test_colours_agree_in_french():
  assert coloured("bag", "blue").any().fr == "un sac bleu"
  assert coloured("lamp", "blue").any().fr == "une lampe bleue"
  assert coloured("lamp", "white").any().fr == "une lampe blanche"


def test_nouns_in_the_lexicon_are_what_the_grammar_can_inflect():
  for n in NOUNS:
    assert n.gender in "mfn"
    assert n.genre in "mf"
  assert all(n.en[0] not in "aeiou" for n in lexicon.ITEMS)


def test_french_elides_and_contracts():
  assert grammar.elide("est-ce que Anna") == "est-ce qu'Anna"
  assert grammar.elide("2 kilos de oranges") == "2 kilos d'oranges"
  assert grammar.elide("le premier lundi de août") == "le premier lundi d'août"
  assert grammar.elide("que le film") == "que le film"
  assert grammar.elide("le prix de le sac") == "le prix du sac"
  assert grammar.elide("le prix de la lampe") == "le prix de la lampe"
  assert grammar.elide("va à le musée") == "va au musée"
  assert grammar.elide("va à la gare") == "va à la gare"


def test_german_durations_take_the_dative():
  for nominative, dative in [
    ("2 Tage und 3 Stunden", "2 Tagen und 3 Stunden"),
    ("1 Monat", "1 Monat"),
    ("5 Monate", "5 Monaten"),
    ("2 Jahre", "2 Jahren"),
    ("1 Jahr", "1 Jahr"),
    ("3 Wochen", "3 Wochen"),
  ]:
    assert grammar.dative(cldr.phrase("", nominative, "")).de == dative


def test_every_template_has_a_line_and_the_same_things_for_each_language():
  # Languages differ in the forms that they need, not in what is said.
  forms = {"base", "past", "future"}
  for row in TEMPLATES:
    assert len(row) == 3, row
    things = [
      {slot.partition("_")[0] for slot in set(slots) - forms}
      for slots in (re.findall(r"{(\w+)}", line) for line in row)
    ]
    assert things[0] == things[1] == things[2], row


def weight(n):
  return cldr.unit(n, "mass-kilogram")


def minutes(n):
  return cldr.unit(n, "duration-minute")


def counted(n, thing):
  thing = of(lexicon.COUNTED, thing)
  return cldr.Phrase(
    f"{numbers.english(n)} {thing.en}",
    f"{numbers.german(n)} {thing.de}",
    f"{numbers.french(n, feminine=thing.genre == 'f')} {thing.fr}",
  )


def verb(base):
  v = next(v for v in lexicon.VERBS if v.en[2] == base)
  present, past, base = map(cldr.Phrase, v.en, v.de, v.fr)
  future = dataclasses.replace(base, fr=v.fr[3])
  return {"present": present, "past": past, "base": base, "future": future}


def place(english):
  return of(lexicon.PLACES, english)


def city(english):
  return of(lexicon.CITIES, english)


ANNA, PAUL = cldr.same("Anna"), cldr.same("Paul")
THREE_PM = cldr.time(datetime.time(15, 5))

# Translated by hand: what fills the slots; English, German, French.
TRIPLES = [
  ({"event": of(NOUNS, "exam"), "day": cldr.day_of_month(8, 1),
    "place": place("at school")},
   "The exam on August 1 takes place at school.",
   "Die Prüfung am 1. August findet in der Schule statt.",
   "L'examen du 1er août a lieu à l'école."),
  ({"event": of(NOUNS, "course"),
    "date": cldr.date(datetime.date(2024, 2, 29))},
   "The course begins on Thursday, February 29, 2024.",
   "Der Kurs beginnt am Donnerstag, dem 29. Februar 2024.",
   "Le cours commence le jeudi 29 février 2024."),
  ({"event": of(NOUNS, "interview"), "late": THREE_PM, "person": ANNA,
    "early": cldr.time(datetime.time(8, 30))},
   "Because the interview begins at 3:05 PM, Anna leaves at 8:30 AM.",
   "Weil das Interview um 15:05 Uhr beginnt, geht Anna um 08:30 Uhr los.",
   "Comme l'entretien commence à 15:05, Anna part à 08:30."),
  ({"event": of(NOUNS, "party"), "person": PAUL, "time": THREE_PM,
    "weekday": cldr.weekday(6)},
   "Paul says that the party begins on Sunday at 3:05 PM.",
   "Paul sagt, dass die Feier am Sonntag um 15:05 Uhr beginnt.",
   "Paul dit que la fête commence dimanche à 15:05."),
  ({"vehicle": of(NOUNS, "regional train"), "city": city("Cologne"),
    "clock": clock.before(8, 15)},
   "Could you tell me whether the regional train to Cologne leaves at a "
   "quarter to eight?",
   "Könnten Sie mir sagen, ob die Regionalbahn nach Köln um Viertel vor acht "
   "abfährt?",
   "Pourriez-vous me dire si le train régional pour Cologne part à huit "
   "heures moins le quart ?"),
  ({"vehicle": of(NOUNS, "night train"), "city": city("Rome"),
    "weekday": cldr.weekday(0), "clock": clock.past(6, 30)},
   "The night train from Rome arrives at half past six on Monday.",
   "Der Nachtzug aus Rom kommt am Montag um halb sieben an.",
   "Le train de nuit de Rome arrive lundi à six heures et demie."),
  ({"person": ANNA, "shop": of(NOUNS, "market"), "clock": clock.past(1, 0)},
   "Anna goes to the market at one o'clock.",
   "Anna geht um ein Uhr zum Markt.",
   "Anna va au marché à une heure."),
  ({"person": PAUL, "shop": of(NOUNS, "bakery"), "clock": clock.past(9, 10)},
   "Paul goes to the bakery at ten past nine.",
   "Paul geht um zehn nach neun zur Bäckerei.",
   "Paul va à la boulangerie à neuf heures dix."),
  ({"place": place("at the airport"), "hours": minutes(1)},
   "Please wait at the airport for 1 minute.",
   "Bitte warten Sie am Flughafen 1 Minute.",
   "Veuillez attendre 1 minute à l'aéroport."),
  ({"duration": cldr.unit(12, "duration-day"), "person": ANNA,
    "item": coloured("coat", "blue"), "place": place("in the park")},
   "After 12 days, Anna found the blue coat in the park.",
   "Nach 12 Tagen hat Anna den blauen Mantel im Park gefunden.",
   "Après 12 jours, Anna a trouvé le manteau bleu dans le parc."),
  ({"person": PAUL, "city": city("Geneva"),
    "years": cldr.unit(2, "duration-year")},
   "Paul has lived in Geneva for 2 years.",
   "Paul wohnt seit 2 Jahren in Genf.",
   "Paul habite à Genève depuis 2 ans."),
  ({"item": coloured("clock", "green"), "price": cldr.price(19.95, "EUR"),
    "item2": of(NOUNS, "table")},
   "The green clock is €19.95 cheaper than the table.",
   "Die grüne Uhr ist 19,95 € billiger als der Tisch.",
   "L'horloge verte coûte 19,95 € de moins que la table."),
  ({"item": coloured("carpet", "black"), "price": cldr.price(50, "EUR"),
    "person": ANNA},
   "If the black carpet costs less than €50.00, Anna will buy it.",
   "Wenn der schwarze Teppich weniger als 50,00 € kostet, kauft Anna ihn.",
   "Si le tapis noir coûte moins de 50,00 €, Anna l'achètera."),
  ({"item": coloured("bicycle", "white"), "price": cldr.price(1200, "EUR")},
   "I would like to buy a white bicycle for €1,200.00.",
   "Ich möchte ein weißes Fahrrad für 1.200,00 € kaufen.",
   "Je voudrais acheter un vélo blanc pour 1 200,00 €."),
  ({"item": coloured("suitcase", "yellow"), "percent": cldr.percent(0.072)},
   "The price of the yellow suitcase rose by 7.2%.",
   "Der Preis für den gelben Koffer ist um 7,2 % gestiegen.",
   "Le prix de la valise jaune a augmenté de 7,2 %."),
  ({"item": of(NOUNS, "book"), "percent": cldr.percent(0.11)},
   "The price of the book rose by 11%.",
   "Der Preis für das Buch ist um 11 % gestiegen.",
   "Le prix du livre a augmenté de 11 %."),
  ({"person": ANNA, "count": counted(71, "chairs"), **verb("look for"),
    "place": place("in the garden")},
   "Did Anna look for seventy-one chairs in the garden?",
   "Hat Anna im Garten einundsiebzig Stühle gesucht?",
   "Est-ce qu'Anna a cherché soixante et onze chaises dans le jardin ?"),
  ({"day": cldr.day_of_month(3, 1), "person": PAUL, **verb("sell"),
    "count": counted(21, "apples")},
   "On March 1, Paul will sell twenty-one apples.",
   "Am 1. März wird Paul einundzwanzig Äpfel verkaufen.",
   "Le 1er mars, Paul vendra vingt et une pommes."),
  ({"count": counted(80, "eggs"), **verb("count"),
    "place": place("at the market")},
   "Could you please count eighty eggs at the market?",
   "Könnten Sie bitte auf dem Markt achtzig Eier zählen?",
   "Pourriez-vous compter quatre-vingts œufs au marché, s'il vous plaît ?"),
  ({"person": PAUL, "person2": ANNA, **verb("order"),
    "count": counted(300, "letters")},
   "Paul says that Anna ordered three hundred letters.",
   "Paul sagt, dass Anna dreihundert Briefe bestellt hat.",
   "Paul dit qu'Anna a commandé trois cents lettres."),
  ({"weight": weight(2.5), "food": of(lexicon.FOODS, "onions"),
    "price": cldr.price(4, "EUR")},
   "2.5 kilograms of onions cost €4.00 today.",
   "2,5 Kilogramm Zwiebeln kosten heute 4,00 €.",
   "2,5 kilogrammes d'oignons coûtent 4,00 € aujourd'hui."),
  ({"person": ANNA, "weight": weight(12), "event": of(NOUNS, "concert"),
    "food": of(lexicon.FOODS, "potatoes")},
   "Anna needs 12 kilograms of potatoes for the concert.",
   "Anna braucht für das Konzert 12 Kilogramm Kartoffeln.",
   "Anna a besoin de 12 kilogrammes de pommes de terre pour le concert."),
  ({"number": cldr.decimal(32165), "shop": of(NOUNS, "market"),
    "year": cldr.same("1999")},
   "In 1999, 32,165 people visited the market.",
   "Im Jahr 1999 haben 32.165 Menschen den Markt besucht.",
   "En 1999, 32 165 personnes ont visité le marché."),
  ({"weekday": cldr.weekday(4), "city": city("Vienna"),
    "degrees": cldr.unit(21, "temperature-celsius")},
   "On Friday, it was 21 degrees Celsius in Vienna.",
   "Am Freitag waren es in Wien 21 Grad Celsius.",
   "Vendredi, il faisait 21 degrés Celsius à Vienne."),
  ({"person": ANNA, "person2": PAUL, "day": cldr.day_of_month(10, 3),
    "day2": cldr.day_of_month(7, 1)},
   "Anna's birthday is on October 3, and Paul's is on July 1.",
   "Anna hat am 3. Oktober Geburtstag, und Paul hat am 1. Juli Geburtstag.",
   "L'anniversaire d'Anna est le 3 octobre, et celui de Paul est le "
   "1er juillet."),
]  # fmt: skip


@pytest.mark.parametrize("row", TRIPLES, ids=lambda row: row[1])
def test_sentences_are_translated_as_by_hand(row):
  fill, *expected = row
  said = []
  for template in TEMPLATES:
    slots = grammar.Slots(random.Random(0))
    for name, what in fill.items():
      (slots.drawn if isinstance(what, cldr.Phrase) else slots.nouns)[name] = (
        what
      )
    phrase = grammar.render(template, slots)
    if phrase.en == expected[0]:
      said.append([phrase.en, phrase.de, phrase.fr])
  assert said == [expected]


def test_a_number_in_digits_comes_with_its_words():
  rng = random.Random(3)
  for _ in range(200):
    digits, spelled = drawing.number(rng)
    n = int(digits.en)
    assert spelled.de == numbers.german_alone(n)
    assert read_french(spelled.fr) == n
    assert n > 1 and n % 100 != 1


def test_moments_stay_between_their_hours():
  rng = random.Random(0)
  at = [drawing.moment(rng, 6, 13) for _ in range(500)]
  assert {t.hour for t in at} == set(range(6, 14))
  assert max(at) <= datetime.time(13, 0)
  assert {t.minute % 5 for t in at} == {0}
