"""Text files: where lines end, what is cleaned, what is an error."""

import gzip

import pytest

from mesh_tf2.data import text_file
from mesh_tf2.data.files import resolve_files
from mesh_tf2.data.text_file import TextFile, lines_dataset
from mesh_tf2.data.text_lines import TextLineFiles, text_lines

CASES = {
  "no newline at the end": (b"a\nb", ["a", "b"]),
  "newline at the end": (b"a\nb\n", ["a", "b"]),
  "empty lines": (b"\n\na\n\n", ["", "", "a", ""]),
  "CRLF": (b"a\r\n\r\nb\r\n", ["a", "", "b"]),
  "CR within": (b"a\rb\n\rc\n", ["a\rb", "\rc"]),
  "other ends of lines": (
    "a\u2028b\x0cc\x0bd\x1ce\x85f\u2029g\n".encode(),
    ["a\u2028b\x0cc\x0bd\x1ce\x85f\u2029g"],
  ),
  "byte order mark": (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
  "invalid UTF-8": (b"a\xffb\n\xc3\n", ["a\ufffdb", "\ufffd"]),
  "NUL": (b"a\x00\nb\x00\x00\n", ["a\x00", "b\x00\x00"]),
  "empty file": (b"", []),
}


def read(dataset):
  return [line.decode() for line in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("suffix", ["txt", "gz"])
@pytest.mark.parametrize("case", CASES)
def test_lines_end_at_newlines_only(tmp_path, case, suffix):
  text, wanted = CASES[case]
  path = tmp_path / f"text.{suffix}"
  path.write_bytes(gzip.compress(text) if suffix == "gz" else text)
  file = TextFile(str(path))
  assert file.num_lines == len(wanted)
  assert list(file.lines()) == wanted
  assert read(lines_dataset([file])) == wanted


@pytest.mark.parametrize("suffix", ["txt", "gz"])
def test_lines_are_whole_across_blocks(tmp_path, monkeypatch, suffix):
  monkeypatch.setattr(text_file, "_BLOCK_BYTES", 16)
  wanted = ["x" * (7 * i % 50) for i in range(40)]
  text = "\n".join(wanted).encode()
  path = tmp_path / f"text.{suffix}"
  path.write_bytes(gzip.compress(text) if suffix == "gz" else text)
  file = TextFile(str(path))
  assert file.num_blocks > 10
  assert list(file.lines()) == wanted
  dataset = lines_dataset([file, file])
  assert read(dataset) == wanted * 2
  assert read(dataset.skip(35).take(10)) == (wanted * 2)[35:45]


def test_two_iterators_over_one_file_do_not_disturb_each_other(
  tmp_path, monkeypatch
):
  monkeypatch.setattr(text_file, "_BLOCK_BYTES", 16)
  wanted = [f"line {i}" for i in range(30)]
  (tmp_path / "text.gz").write_bytes(gzip.compress("\n".join(wanted).encode()))
  dataset = text_lines(str(tmp_path / "text.gz"))
  pairs = zip(
    dataset.as_numpy_iterator(), dataset.as_numpy_iterator(), strict=True
  )
  assert [a.decode() for a, b in pairs if a == b] == wanted


def test_a_file_that_shrinks_while_it_is_read_is_named(tmp_path):
  path = tmp_path / "text"
  path.write_text("a\nb\n")
  file = TextFile(str(path))
  path.write_text("a\n")
  with pytest.raises(OSError, match="text became shorter while"):
    list(file.lines())


def test_a_gz_file_that_is_not_compressed_is_named(tmp_path):
  (tmp_path / "text.gz").write_text("plain")
  with pytest.raises(ValueError, match=r"text\.gz is named \.gz, and cannot"):
    TextFile(str(tmp_path / "text.gz"))


def test_a_gz_file_that_was_cut_off_is_named(tmp_path):
  whole = gzip.compress(bytes(range(256)) * 100)
  (tmp_path / "text.gz").write_bytes(whole[: len(whole) // 2])
  with pytest.raises(ValueError, match=r"text\.gz .* cannot be decompressed"):
    TextFile(str(tmp_path / "text.gz"))


def test_names_are_paths_patterns_and_lists_in_their_order(tmp_path):
  for name in ("b.txt", "a.txt", "c.log"):
    (tmp_path / name).write_text(f"{name}\n")
  (tmp_path / "d.txt").mkdir()
  paths = {n: str(tmp_path / n) for n in ("a.txt", "b.txt", "c.log")}
  a, b, c = paths.values()
  assert resolve_files("c.log, *.txt", data_dir=str(tmp_path)) == [c, a, b]
  assert resolve_files([b, a]) == [b, a]
  assert read(text_lines("*.txt,c.log", data_dir=str(tmp_path))) == [
    "a.txt",
    "b.txt",
    "c.log",
  ]


@pytest.mark.parametrize(
  ("names", "error", "message"),
  [
    ("no.txt", FileNotFoundError, r"no\.txt: no such file"),
    ("*.txt", FileNotFoundError, r"\*\.txt: no file matches this pattern"),
    ("folder", IsADirectoryError, r"folder is a directory, .* file was wanted"),
    (" , ", ValueError, "no file was named"),
  ],
)
def test_names_without_files_are_errors_that_name_them(
  tmp_path, names, error, message
):
  (tmp_path / "folder").mkdir()
  with pytest.raises(error, match=message):
    resolve_files(names, data_dir=str(tmp_path))


def test_lines_are_targets_of_a_language_model(tmp_path):
  (tmp_path / "a.txt").write_text("one\ntwo\n")
  (tmp_path / "b.txt").write_text("three\n")
  source = TextLineFiles({"train": "*.txt"}, str(tmp_path))
  found = list(source.examples("train").as_numpy_iterator())
  assert found == [{"targets": t} for t in (b"one", b"two", b"three")]
  shards = [source.examples("train", shard=(2, i)) for i in range(2)]
  assert [len(list(shard)) for shard in shards] == [2, 1]
  with pytest.raises(ValueError, match="has no split 'test'; it has 'train'"):
    source.examples("test")
