"""The built-in corpus: sizes, splits, grammar, determinism."""

import collections
import random
import subprocess
import sys

import pytest

from mesh_tf2.data.builtin import cldr, corpus, grammar, numbers
from mesh_tf2.data.builtin.templates import TEMPLATES


@pytest.fixture(scope="module")
def splits():
  return {
    s: corpus.pairs(s, languages=("en", "de", "fr")) for s in corpus.SIZES
  }


def test_the_splits_have_their_sizes(splits):
  assert {s: len(rows) for s, rows in splits.items()} == {
    "train": 20_000,
    "validation": 500,
    "test": 500,
  }


def test_no_sentence_of_any_language_stands_twice(splits):
  rows = [row for split in splits.values() for row in split]
  for column in zip(*rows, strict=True):
    assert len(set(column)) == len(rows)


def test_a_translation_is_a_function_of_the_sentence():
  rng, known = random.Random(7), collections.defaultdict(set)
  for _ in range(20_000):
    s = grammar.sentence(rng)
    known[s.en].add((s.de, s.fr))
  assert all(len(translations) == 1 for translations in known.values())


def test_hardly_any_translation_is_a_copy(splits):
  for en, de, fr in splits["test"]:
    assert en not in (de, fr)
  words = [(set(en.split()), set(de.split())) for en, de, _ in splits["test"]]
  shared = sum(len(e & d) / len(d) for e, d in words) / len(words)
  assert shared < 0.35


def test_words_of_the_test_set_are_known_but_for_numbers(splits):
  known = {w for _, de, _ in splits["train"] for w in de.split()}
  unknown = {
    w
    for _, de, _ in splits["test"]
    for w in de.split()
    if w not in known and not any(c.isdigit() for c in w)
  }
  assert len(unknown) < 15
  spelled = {numbers.german(n) for n in range(100, 1000)}
  assert unknown <= spelled


def test_another_process_makes_the_same_corpus(splits):
  code = (
    "from mesh_tf2.data.builtin import corpus\n"
    "import hashlib\n"
    "rows = repr(corpus.pairs('test', languages=('en', 'de', 'fr')))\n"
    "print(hashlib.sha256(rows.encode()).hexdigest())\n"
  )
  out = [
    subprocess.run(
      [sys.executable, "-c", code],
      capture_output=True,
      text=True,
      check=True,
      env={"PYTHONHASHSEED": str(i), "TF_CPP_MIN_LOG_LEVEL": "3"},
    ).stdout
    for i in (1, 2)
  ]
  assert out[0] == out[1]


def test_another_seed_makes_another_corpus(splits):
  other = corpus.pairs("test", seed=1, languages=("en", "de", "fr"))
  assert len(set(other) & set(splits["test"])) < 50


def test_an_unknown_split_or_language_is_named():
  with pytest.raises(ValueError, match="no split 'dev'; it has train"):
    corpus.pairs("dev")
  with pytest.raises(ValueError, match="no language 'it'; it has en, de, fr"):
    corpus.pairs("test", languages=("it",))


def test_every_template_has_one_line_for_each_language():
  for row in TEMPLATES:
    assert len(row) == 3, row


def test_the_command_writes_a_sentence_a_line(tmp_path, splits):
  corpus.main([f"--directory={tmp_path}", "--languages=en,de"])
  lines = (tmp_path / "test.de").read_text(encoding="utf-8").splitlines()
  assert lines == [de for _, de, _ in splits["test"]]
  assert not (tmp_path / "test.fr").exists()


def test_the_source_gives_pairs_or_targets_alone(splits):
  pair = next(iter(corpus.builtin_text().examples("test")))
  assert pair["inputs"].numpy().decode() == splits["test"][0][0]
  assert pair["targets"].numpy().decode() == splits["test"][0][1]
  alone = next(iter(corpus.builtin_text(None, "fr").examples("test")))
  assert alone["targets"].numpy().decode() == splits["test"][0][2]
  assert set(alone) == {"targets"}


# Written by hand.
NUMBERS = [
  (0, "zero", "null", "zéro"),
  (1, "one", "ein", "un"),
  (16, "sixteen", "sechzehn", "seize"),
  (17, "seventeen", "siebzehn", "dix-sept"),
  (21, "twenty-one", "einundzwanzig", "vingt et un"),
  (30, "thirty", "dreißig", "trente"),
  (66, "sixty-six", "sechsundsechzig", "soixante-six"),
  (70, "seventy", "siebzig", "soixante-dix"),
  (71, "seventy-one", "einundsiebzig", "soixante et onze"),
  (77, "seventy-seven", "siebenundsiebzig", "soixante-dix-sept"),
  (80, "eighty", "achtzig", "quatre-vingts"),
  (81, "eighty-one", "einundachtzig", "quatre-vingt-un"),
  (97, "ninety-seven", "siebenundneunzig", "quatre-vingt-dix-sept"),
  (100, "one hundred", "einhundert", "cent"),
  (101, "one hundred one", "einhundertein", "cent un"),
  (200, "two hundred", "zweihundert", "deux cents"),
  (203, "two hundred three", "zweihundertdrei", "deux cent trois"),
  (280, "two hundred eighty", "zweihundertachtzig", "deux cent quatre-vingts"),
  (1000, "one thousand", "eintausend", "mille"),
  (2016, "two thousand sixteen", "zweitausendsechzehn", "deux mille seize"),
  (80_000, "eighty thousand", "achtzigtausend", "quatre-vingt mille"),
  (200_000, "two hundred thousand", "zweihunderttausend", "deux cent mille"),
]


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: str(row[0]))
def test_numbers_are_spelled_as_by_hand(row):
  n, *words = row
  got = [numbers.english(n), numbers.german(n), numbers.french(n)]
  assert got == words


def test_numbers_agree_with_what_they_count():
  assert numbers.french(21, feminine=True) == "vingt et une"
  assert numbers.french(81, feminine=True) == "quatre-vingt-une"
  assert numbers.french(71, feminine=True) == "soixante et onze"
  assert numbers.german_alone(101) == "einhunderteins"
  with pytest.raises(ValueError, match="from 0 to 999,999"):
    numbers.english(-1)


def test_french_elides():
  assert grammar.elide("est-ce que Anna") == "est-ce qu'Anna"
  assert grammar.elide("2 kilos de oranges") == "2 kilos d'oranges"
  assert grammar.elide("que le film") == "que le film"


def test_german_durations_take_the_dative():
  duration = cldr.phrase("2 days", "2 Tage", "2 jours")
  assert grammar.dative(duration).de == "2 Tagen"


def test_the_first_of_a_month_is_an_ordinal_in_french():
  import datetime

  may = cldr.day_of_month(datetime.date(2020, 5, 1))
  assert (may.en, may.de, may.fr) == ("May 1", "1. Mai", "1er mai")
  day = cldr.date(datetime.date(2021, 6, 6))
  assert day.en == "Sunday, June 6, 2021"
  assert day.de == "Sonntag, dem 6. Juni 2021"
  assert day.fr == "dimanche 6 juin 2021"


def test_numbers_are_written_as_each_language_does():
  price = cldr.price(1234.5, "EUR")
  assert price.en == "€1,234.50"
  assert price.de == "1.234,50 €"
  assert price.fr == "1 234,50 €"
