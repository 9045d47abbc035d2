"""Training of SentencePiece vocabularies, as a function and as a command."""

import gzip
import pathlib
import random
import subprocess
import sys

import pytest
import sentencepiece

from mesh_tf2.data.sentencepiece_vocabulary import SentencePieceVocabulary
from mesh_tf2.data.train_sentencepiece import main, train_sentencepiece

ENGLISH = [
  "the",
  "a",
  "house",
  "tree",
  "is",
  "bigger",
  "than",
  "green",
  "and",
  "old",
  "twelve",
]
GERMAN = [
  "das",
  "ein",
  "Haus",
  "Baum",
  "ist",
  "größer",
  "als",
  "grün",
  "und",
  "alt",
  "zwölf",
]


def sentences(words, count=500):
  rng = random.Random(0)
  letters = "".join(words)
  words = words * 40 + ["".join(rng.choices(letters, k=5)) for _ in range(100)]
  return [" ".join(rng.choices(words, k=6)) for _ in range(count)]


@pytest.fixture
def files(tmp_path):
  english, german = tmp_path / "a.en.gz", tmp_path / "a.de"
  english.write_bytes(gzip.compress("\n".join(sentences(ENGLISH)).encode()))
  german.write_text("\n".join(sentences(GERMAN)) + "\n", encoding="utf-8")
  return [str(english), str(german)]


def pieces(path):
  model = sentencepiece.SentencePieceProcessor(model_file=str(path))
  return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def test_a_joint_vocabulary_holds_words_of_all_files(files, tmp_path):
  path = train_sentencepiece(files, str(tmp_path / "new" / "joint"), 80)
  assert path == str(tmp_path / "new" / "joint.model")
  found = pieces(path)
  assert found[:3] == ["<pad>", "</s>", "<unk>"]
  assert "<s>" not in found
  assert len(found) == 80
  assert {"▁house", "▁Haus"} <= set(found)
  vocabulary = SentencePieceVocabulary(path)
  assert vocabulary.decode(vocabulary.encode("größer than")) == "größer than"
  listed = (tmp_path / "new" / "joint.vocab").read_text("utf-8").splitlines()
  assert [line.split("\t")[0] for line in listed] == found


def test_training_again_gives_the_same_bytes(files, tmp_path):
  one = train_sentencepiece(files, str(tmp_path / "one.model"), 70)
  two = train_sentencepiece(
    iter(sentences(ENGLISH) + sentences(GERMAN)), str(tmp_path / "two"), 70
  )
  assert pathlib.Path(one).read_bytes() == pathlib.Path(two).read_bytes()
  assert sorted(p.name for p in tmp_path.iterdir()) == [
    "a.de",
    "a.en.gz",
    "one.model",
    "one.vocab",
    "two.model",
    "two.vocab",
  ]


def test_byte_fallback_spells_what_has_no_piece(files, tmp_path):
  path = train_sentencepiece(
    files, str(tmp_path / "bytes"), 350, byte_fallback=True
  )
  vocabulary = SentencePieceVocabulary(path)
  ids = vocabulary.encode("漢")
  assert vocabulary.unk_id not in ids
  assert vocabulary.decode(ids) == "漢"


def test_a_limit_on_sentences_ignores_those_after_it(tmp_path):
  text = sentences(ENGLISH) + sentences(GERMAN)
  path = train_sentencepiece(
    iter(text), str(tmp_path / "english"), 50, max_sentences=500
  )
  assert not any("ö" in piece for piece in pieces(path))


@pytest.mark.parametrize(
  ("size", "message"),
  [
    (5000, r"vocab_size 5000 is too large .* at most \d+ pieces"),
    (8, r"vocab_size 8 is too small .* characters alone need \d+"),
  ],
)
def test_a_size_that_the_text_does_not_fit_is_an_error_with_the_limit(
  files, tmp_path, size, message
):
  with pytest.raises(ValueError, match=message):
    train_sentencepiece(files, str(tmp_path / "no"), size)
  assert not (tmp_path / "no.model").exists()


@pytest.mark.parametrize("text", ["", "\n\n  \n"])
def test_text_without_a_sentence_is_an_error(tmp_path, text):
  path = tmp_path / "empty"
  path.write_text(text)
  with pytest.raises(ValueError, match="the text has no sentence"):
    train_sentencepiece(str(path), str(tmp_path / "no"), 50)


def test_the_command_trains_and_says_where(files, tmp_path):
  command = [sys.executable, "-m", "mesh_tf2.data.train_sentencepiece"]
  model = tmp_path / "command.model"
  done = subprocess.run(
    [
      *command,
      f"--input={','.join(files)}",
      f"--model={model}",
      "--vocab_size=70",
    ],
    capture_output=True,
    text=True,
    check=True,
  )
  assert f"wrote {model}, a vocabulary of 70" in done.stdout
  assert len(pieces(model)) == 70


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("missing.txt", "missing.txt: no such file"),
    ("*.none", "no file matches this pattern"),
    (".", "is a directory, where a file was wanted"),
  ],
)
def test_the_command_fails_in_one_line_without_a_stack_trace(
  tmp_path, capsys, name, message
):
  flags = [f"--input={tmp_path / name}", "--model=x.model", "--vocab_size=9"]
  assert main(flags) == 1
  error = capsys.readouterr().err
  assert message in error
  assert error.count("\n") == 1


def test_ctrl_c_is_not_taken_for_a_mistake(tmp_path):
  def sentences():
    yield "One book."
    raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    train_sentencepiece(sentences(), str(tmp_path / "model"), 20)
  assert not list(tmp_path.iterdir())
