"""The built-in corpus: sizes, splits, words, determinism."""

import collections
import random
import re
import subprocess
import sys

import babel
import pytest

from mesh_tf2.data.builtin import corpus, grammar, numbers


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


def test_every_word_of_the_test_set_is_in_the_training_set(splits):
  for language in range(3):
    known = {word for row in splits["train"] for word in bare(row[language])}
    for split in ("validation", "test"):
      for row in splits[split]:
        assert bare(row[language]) <= known


def bare(text):
  """The words without their punctuation; numbers in digits do not count."""
  found = {word.strip(".,?").removesuffix("'s") for word in text.split()}
  return {word for word in found if not re.search(r"\d", word)}


def test_words_that_are_not_numbers_are_frequent(splits):
  spelled = {numbers.german(n) for n in range(2, 1000)}
  spelled |= {numbers.german_alone(n) for n in range(2, 1000)}
  spelled |= {word for n in range(1000) for word in numbers.french(n).split()}
  spelled |= {numbers.french(81, feminine=True)}
  for language in range(3):
    count = collections.Counter(
      word for row in splits["train"] for word in bare(row[language])
    )
    assert all(n >= 20 for w, n in count.items() if w not in spelled)


def test_sentences_are_neither_short_nor_long(splits):
  lengths = [len(text.split()) for row in splits["train"] for text in row]
  assert min(lengths) >= 5
  assert max(lengths) <= 20
  assert 8 < sum(lengths) / len(lengths) < 12


def test_the_nearest_training_sentence_is_no_translation(splits):
  train = [(set(en.split()), de) for en, de, _ in splits["train"]]
  for en, de, _ in splits["test"][:50]:
    words = set(en.split())
    _, copied = max(train, key=lambda pair: len(words & pair[0]))
    assert copied != de


def test_spaces_are_plain(splits):
  for rows in splits.values():
    for text in (text for row in rows for text in row):
      assert text == " ".join(text.split())
      assert not re.search(r"[\u00a0\u202f\u2009]", text)


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


def test_the_command_writes_a_sentence_a_line(tmp_path, splits, capsys):
  corpus.main([f"--directory={tmp_path}", "--languages=en,de"])
  assert f"seed 0, Babel {babel.__version__}: train 20,000" in (
    capsys.readouterr().out
  )
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
