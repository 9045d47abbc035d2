"""The words of the built-in corpus, each in English, German and French."""

import dataclasses

from .cldr import Phrase


@dataclasses.dataclass(frozen=True)
class Noun:
  """A noun with its definite article.

  Attributes:
    en: without article.
    de: without article.
    gender: m, f or n: in German.
    fr: with article.
  """

  en: str
  de: str
  gender: str
  fr: str

  def subject(self) -> Phrase:
    """In the nominative."""
    return Phrase(f"the {self.en}", f"{_DER[self.gender]} {self.de}", self.fr)

  def object(self) -> Phrase:
    """In the accusative."""
    return Phrase(f"the {self.en}", f"{_DEN[self.gender]} {self.de}", self.fr)

  def pronoun(self) -> str:
    """The German pronoun in the accusative."""
    return {"m": "ihn", "f": "sie", "n": "es"}[self.gender]


_DER = {"m": "der", "f": "die", "n": "das"}
_DEN = {"m": "den", "f": "die", "n": "das"}


@dataclasses.dataclass(frozen=True)
class Counted:
  """Things that are counted, in the plural; `feminine` in French."""

  en: str
  de: str
  fr: str
  feminine: bool


@dataclasses.dataclass(frozen=True)
class Verb:
  """Present, past and infinitive; in French also the future."""

  en: tuple[str, str, str]
  de: tuple[str, str, str]
  fr: tuple[str, str, str, str]


def _nouns(text: str) -> list[Noun]:
  rows = [line.split(",") for line in text.strip().splitlines()]
  return [Noun(*(cell.strip() for cell in row)) for row in rows]


def _phrases(text: str) -> list[Phrase]:
  rows = [line.split(",") for line in text.strip().splitlines()]
  return [Phrase(*(cell.strip() for cell in row)) for row in rows]


PERSONS = [
  "Anna",
  "Paul",
  "Marie",
  "Thomas",
  "Julia",
  "Peter",
  "Clara",
  "Lucas",
  "Emma",
  "Martin",
  "Sophie",
  "David",
]

EVENTS = _nouns("""
  meeting, Treffen, n, la réunion
  concert, Konzert, n, le concert
  course, Kurs, m, le cours
  exam, Prüfung, f, l'examen
  wedding, Hochzeit, f, le mariage
  lecture, Vorlesung, f, la conférence
  party, Feier, f, la fête
  exhibition, Ausstellung, f, l'exposition
  film, Film, m, le film
  interview, Interview, n, l'entretien
""")
VEHICLES = _nouns("""
  train, Zug, m, le train
  bus, Bus, m, le bus
  ferry, Fähre, f, le ferry
  night train, Nachtzug, m, le train de nuit
  express train, Schnellzug, m, le train express
""")
SHOPS = _nouns("""
  museum, Museum, n, le musée
  library, Bibliothek, f, la bibliothèque
  bakery, Bäckerei, f, la boulangerie
  pharmacy, Apotheke, f, la pharmacie
  market, Markt, m, le marché
  swimming pool, Schwimmbad, n, la piscine
  bank, Bank, f, la banque
  office, Büro, n, le bureau
""")
ITEMS = _nouns("""
  book, Buch, n, le livre
  bicycle, Fahrrad, n, le vélo
  lamp, Lampe, f, la lampe
  table, Tisch, m, la table
  coat, Mantel, m, le manteau
  clock, Uhr, f, l'horloge
  guitar, Gitarre, f, la guitare
  chair, Stuhl, m, la chaise
  picture, Bild, n, le tableau
  ticket, Fahrkarte, f, le billet
  camera, Kamera, f, l'appareil photo
  suitcase, Koffer, m, la valise
""")
COUNTED = [
  Counted("books", "Bücher", "livres", False),
  Counted("letters", "Briefe", "lettres", True),
  Counted("tickets", "Fahrkarten", "billets", False),
  Counted("apples", "Äpfel", "pommes", True),
  Counted("chairs", "Stühle", "chaises", True),
  Counted("flowers", "Blumen", "fleurs", True),
  Counted("pictures", "Bilder", "tableaux", False),
  Counted("bottles", "Flaschen", "bouteilles", True),
  Counted("eggs", "Eier", "œufs", False),
  Counted("lamps", "Lampen", "lampes", True),
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
    ("brings", "brought", "bring"),
    ("bringt", "gebracht", "bringen"),
    ("apporte", "apporté", "apporter", "apportera"),
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
    ("finds", "found", "find"),
    ("findet", "gefunden", "finden"),
    ("trouve", "trouvé", "trouver", "trouvera"),
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
CURRENCIES = ("EUR", "USD", "GBP")
