"""Aligned text files and files with tabs."""

import gzip

import pytest

from mesh_tf2.data.text_pair import TextPairFiles
from mesh_tf2.data.text_source import MemoryText, plain_text


@pytest.fixture
def folder(tmp_path):
  (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"one\r\n\ntwo\rand\x0c"))
  (tmp_path / "a.de").write_text("eins\nleer\nzwei\u2028und\n", "utf-8")
  (tmp_path / "both.tsv").write_text("x\ty\n\tz\n")
  return tmp_path


def texts(source, split="train", **arguments):
  return [
    (e["inputs"].decode(), e["targets"].decode())
    for e in source.examples(split, **arguments).as_numpy_iterator()
  ]


def test_lines_of_two_files_are_pairs(folder):
  source = TextPairFiles({"train": ("a.en.gz", "a.de")}, str(folder))
  wanted = [("one", "eins"), ("", "leer"), ("two\rand\x0c", "zwei\u2028und")]
  assert texts(source) == wanted
  assert plain_text(source, "train") == wanted
  assert texts(source, shard=(2, 1)) == wanted[1:2]


def test_patterns_stand_for_files_in_pairs(folder):
  for i in range(3):
    (folder / f"p{i}.x").write_text(f"x{i}\n" * i)
    (folder / f"p{i}.y").write_text(f"y{i}\n" * i)
  source = TextPairFiles({"train": ("p*.x", "p*.y")}, str(folder))
  assert texts(source) == [("x1", "y1"), ("x2", "y2"), ("x2", "y2")]


def test_a_line_with_a_tab_is_a_pair(folder):
  source = TextPairFiles({"train": "both.tsv"}, str(folder))
  assert texts(source) == [("x", "y"), ("", "z")]


def test_two_files_of_different_length_are_named_with_both_counts(folder):
  (folder / "short.de").write_text("eins\x0czwei\u2028\rdrei\n", "utf-8")
  source = TextPairFiles({"train": ("a.en.gz", "short.de")}, str(folder))
  with pytest.raises(
    ValueError, match=r"a\.en\.gz has 3 and .*short\.de has 1"
  ):
    source.examples("train")


def test_patterns_for_different_numbers_of_files_are_an_error(folder):
  (folder / "b.de").write_text("")
  source = TextPairFiles({"train": ("a.en.gz", "*.de")}, str(folder))
  with pytest.raises(ValueError, match=r"stands for 1 files and \*\.de for 2"):
    source.examples("train")


@pytest.mark.parametrize("line", ["none", "a\tb\tc"])
def test_a_line_without_exactly_one_tab_is_named_with_its_number(folder, line):
  (folder / "bad.tsv").write_text(f"a\tb\n{line}\n")
  source = TextPairFiles({"train": "bad.tsv"}, str(folder))
  with pytest.raises(ValueError, match=r"bad\.tsv, line 2: wanted .* one tab"):
    source.examples("train")


def test_a_missing_file_is_named(folder):
  source = TextPairFiles({"train": ("a.en.gz", "no.de")}, str(folder))
  with pytest.raises(FileNotFoundError, match=r"no\.de: no such file"):
    source.examples("train")


def test_three_names_are_not_a_pair(folder):
  source = TextPairFiles({"train": ("a", "b", "c")}, str(folder))
  with pytest.raises(ValueError, match="wanted a pair of names"):
    source.examples("train")


def test_text_in_memory_is_a_source_too():
  rows = [{"inputs": "a", "targets": "ä"}, {"inputs": "", "targets": "b"}]
  source = MemoryText({"train": rows, "test": []})
  assert texts(source) == [("a", "ä"), ("", "b")]
  assert plain_text(MemoryText({"x": [{"targets": "t"}]}), "x") == [("", "t")]
  with pytest.raises(ValueError, match="split 'test' has no example"):
    plain_text(source, "test")
