"""The words of the built-in corpus, each in English, German and French."""

import dataclasses

from .cldr import Phrase
from .noun import Colour, Noun


@dataclasses.dataclass(frozen=True)
class Counted:
  """Things that are counted, in the plural, and their gender in French."""

  en: str
  de: str
  fr: str
  genre: str


@dataclasses.dataclass(frozen=True)
class Verb:
  """He does, he did, to do; in French also: he will do."""

  en: tuple[str, str, str]
  de: tuple[str, str, str]
  fr: tuple[str, str, str, str]


def _cells(text: str) -> list[list[str]]:
  lines = text.strip().splitlines()
  return [[cell.strip() for cell in line.split(",")] for line in lines]


def _nouns(text: str) -> list[Noun]:
  return [Noun(*row) for row in _cells(text)]  # type: ignore[arg-type]


def _phrases(text: str) -> list[Phrase]:
  return [Phrase(*row) for row in _cells(text)]


PERSONS = (
  "Anna Paul Marie Thomas Julia Peter Clara Lucas Emma Martin Sophie David"
).split()

EVENTS = _nouns("""
  meeting, Treffen, n, réunion, f
  concert, Konzert, n, concert, m
  course, Kurs, m, cours, m
  exam, Prüfung, f, examen, m
  wedding, Hochzeit, f, mariage, m
  lecture, Vorlesung, f, conférence, f
  party, Feier, f, fête, f
  exhibition, Ausstellung, f, exposition, f
  film, Film, m, film, m
  interview, Interview, n, entretien, m
""")
VEHICLES = _nouns("""
  train, Zug, m, train, m
  bus, Bus, m, bus, m
  regional train, Regionalbahn, f, train régional, m
  night train, Nachtzug, m, train de nuit, m
  express train, Schnellzug, m, train express, m
""")
SHOPS = _nouns("""
  museum, Museum, n, musée, m
  library, Bibliothek, f, bibliothèque, f
  bakery, Bäckerei, f, boulangerie, f
  pharmacy, Apotheke, f, pharmacie, f
  market, Markt, m, marché, m
  swimming pool, Schwimmbad, n, piscine, f
  bank, Bank, f, banque, f
  office, Büro, n, bureau, m
""")
ITEMS = _nouns("""
  book, Buch, n, livre, m
  bicycle, Fahrrad, n, vélo, m
  lamp, Lampe, f, lampe, f
  table, Tisch, m, table, f
  coat, Mantel, m, manteau, m
  clock, Uhr, f, horloge, f
  guitar, Gitarre, f, guitare, f
  chair, Stuhl, m, chaise, f
  carpet, Teppich, m, tapis, m
  bag, Tasche, f, sac, m
  camera, Kamera, f, appareil photo, m
  suitcase, Koffer, m, valise, f
  shirt, Hemd, n, chemise, f
  knife, Messer, n, couteau, m
""")
COLOURS = [
  Colour(*row)
  for row in _cells("""
  red, rot, rouge, rouge
  blue, blau, bleu, bleue
  green, grün, vert, verte
  yellow, gelb, jaune, jaune
  black, schwarz, noir, noire
  white, weiß, blanc, blanche
""")
]
COUNTED = [
  Counted(*row)
  for row in _cells("""
  books, Bücher, livres, m
  letters, Briefe, lettres, f
  tickets, Fahrkarten, billets, m
  apples, Äpfel, pommes, f
  chairs, Stühle, chaises, f
  flowers, Blumen, fleurs, f
  pictures, Bilder, tableaux, m
  bottles, Flaschen, bouteilles, f
  eggs, Eier, œufs, m
  lamps, Lampen, lampes, f
""")
]
VERBS = [
  Verb(
    ("buys", "bought", "buy"),
    ("kauft", "gekauft", "kaufen"),
    ("achète", "acheté", "acheter", "achètera"),
  ),
  Verb(
    ("sells", "sold", "sell"),
    ("verkauft", "verkauft", "verkaufen"),
    ("vend", "vendu", "vendre", "vendra"),
  ),
  Verb(
    ("shows", "showed", "show"),
    ("zeigt", "gezeigt", "zeigen"),
    ("montre", "montré", "montrer", "montrera"),
  ),
  Verb(
    ("orders", "ordered", "order"),
    ("bestellt", "bestellt", "bestellen"),
    ("commande", "commandé", "commander", "commandera"),
  ),
  Verb(
    ("counts", "counted", "count"),
    ("zählt", "gezählt", "zählen"),
    ("compte", "compté", "compter", "comptera"),
  ),
  Verb(
    ("looks for", "looked for", "look for"),
    ("sucht", "gesucht", "suchen"),
    ("cherche", "cherché", "chercher", "cherchera"),
  ),
]
FOODS = _phrases("""
  apples, Äpfel, pommes
  potatoes, Kartoffeln, pommes de terre
  oranges, Orangen, oranges
  tomatoes, Tomaten, tomates
  onions, Zwiebeln, oignons
  cherries, Kirschen, cerises
  carrots, Karotten, carottes
  nuts, Nüsse, noix
""")
PLACES = _phrases("""
  at the station, am Bahnhof, à la gare
  in the library, in der Bibliothek, à la bibliothèque
  at the museum, im Museum, au musée
  at the market, auf dem Markt, au marché
  at school, in der Schule, à l'école
  in the garden, im Garten, dans le jardin
  at the airport, am Flughafen, à l'aéroport
  at the town hall, im Rathaus, à la mairie
  in the park, im Park, dans le parc
""")
CITIES = _phrases("""
  Berlin, Berlin, Berlin
  Munich, München, Munich
  Cologne, Köln, Cologne
  Vienna, Wien, Vienne
  Paris, Paris, Paris
  Geneva, Genf, Genève
  Brussels, Brüssel, Bruxelles
  Rome, Rom, Rome
  Milan, Mailand, Milan
  Warsaw, Warschau, Varsovie
  Lisbon, Lissabon, Lisbonne
  Hamburg, Hamburg, Hambourg
""")
# The German ones are in the dative.
ORDINALS = _phrases("""
  first, ersten, premier
  second, zweiten, deuxième
  third, dritten, troisième
  fourth, vierten, quatrième
  last, letzten, dernier
""")
CURRENCIES = ("EUR", "USD", "GBP", "CHF")
