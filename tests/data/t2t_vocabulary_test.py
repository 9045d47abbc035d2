"""Subword vocabularies of Tensor2Tensor."""

import gin
import pytest

from mesh_tf2.data.t2t_vocabulary import T2tVocabulary, get_t2t_vocabulary

CHARACTERS = list("abcdehlorstuw0123456789\\;_ ,'é")
SUBWORDS = ["hello_", "wor", "ld_", "hell", "the", ", _", *CHARACTERS]


@pytest.fixture
def vocabulary(tmp_path):
  lines = ["'<pad>'", "'<EOS>'"]
  lines += [f'"{s}"' if "'" in s else f"'{s}'" for s in SUBWORDS]
  (tmp_path / "vocab").write_text("\n".join(lines) + "\n", "utf-8")
  return get_t2t_vocabulary(str(tmp_path), "vocab")


def pieces(vocabulary, text):
  return [SUBWORDS[i - 2] for i in vocabulary.encode(text)]


@pytest.mark.parametrize(
  ("text", "wanted"),
  [
    ("hello world", ["hello_", "wor", "ld_"]),  # the longest first
    ("hello, world", ["hello_", ", _", "wor", "ld_"]),
    ("hell", ["hell", "_"]),
    ("a_b", ["a", "_", "\\", "u", "_", "b", "_"]),
    ("\\", ["\\", "\\", "_"]),
    ("é", ["é", "_"]),
    ("ß", ["\\", "2", "2", "3", ";", "_"]),
    ("\n", ["\\", "1", "0", ";", "_"]),
    ("a  b", ["a", "_", " ", " ", "_", "b", "_"]),
    (" a ", [" ", "_", "a", "_", " ", "_"]),
    ("", []),
  ],
)
def test_text_becomes_the_longest_subwords(vocabulary, text, wanted):
  assert pieces(vocabulary, text) == wanted
  assert vocabulary.decode([*vocabulary.encode(text), 1, 2]) == text


def test_ids_are_line_numbers(vocabulary):
  assert vocabulary.encode("hello") == [2]
  assert vocabulary.vocab_size == len(SUBWORDS) + 2
  assert vocabulary.unk_id is None


def test_a_code_point_that_is_none_decodes_to_a_mark(vocabulary):
  ids = [SUBWORDS.index(c) + 2 for c in "\\9999999;_"]
  assert vocabulary.decode(ids) == "\N{GETA MARK}"


def test_a_character_that_cannot_be_escaped_is_an_error(tmp_path):
  (tmp_path / "v").write_text("'<pad>'\n'<EOS>'\n'a_'\n")
  with pytest.raises(ValueError, match="no subword for"):
    T2tVocabulary(str(tmp_path / "v")).encode("b")


def test_a_missing_file_and_an_empty_one_are_named(tmp_path):
  with pytest.raises(FileNotFoundError, match=r"vocabulary .*none"):
    get_t2t_vocabulary(str(tmp_path), "none")
  (tmp_path / "empty").write_text("")
  with pytest.raises(ValueError, match=r"empty: wanted .* got 1 lines"):
    get_t2t_vocabulary(str(tmp_path), "empty")


def test_it_has_the_original_name_in_gin_files():
  name = "mesh_tf2.transformer.t2t_vocabulary.get_t2t_vocabulary"
  assert gin.get_configurable(name) is not None
