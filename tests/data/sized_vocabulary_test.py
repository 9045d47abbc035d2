"""A vocabulary of which only the size is known."""

import pytest

from mesh_tf2.data.sized_vocabulary import SizedVocabulary


def test_it_has_a_size_and_no_text():
  vocabulary = SizedVocabulary(32)
  assert vocabulary.vocab_size == 32
  for use in (lambda: vocabulary.encode("a"), lambda: vocabulary.decode([3])):
    with pytest.raises(ValueError, match=r"32 ids.*set run\.vocabulary"):
      use()


def test_a_size_without_an_id_for_text_is_refused():
  with pytest.raises(ValueError, match="make it 3 or more"):
    SizedVocabulary(2)
