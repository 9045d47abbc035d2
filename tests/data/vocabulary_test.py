"""Vocabularies: bytes, SentencePiece trained here or brought along."""

import io
import random

import gin
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from mesh_tf2.data.byte_vocabulary import ByteVocabulary
from mesh_tf2.data.sentencepiece_vocabulary import (
  SentencePieceVocabulary,
  get_sentencepiece_vocabulary,
)
from mesh_tf2.data.vocabulary import (
  Vocabulary,
  inputs_vocabulary,
  separate_vocabularies,
  targets_vocabulary,
  vocabulary_of,
)


def sentences(count=400):
  rng = random.Random(0)
  words = [
    "das",
    "ein",
    "Haus",
    "Baum",
    "the",
    "a",
    "house",
    "tree",
    "grün",
    "größer",
    "café",
    "12",
    "7,50",
  ]
  words += ["".join(rng.choices("aeioubdfgnrst", k=5)) for _ in range(100)]
  return [" ".join(rng.choices(words, k=6)) for _ in range(count)]


def train(path, **overrides):
  """A model made by sentencepiece itself, with its defaults for ids."""
  model = io.BytesIO()
  options = {"vocab_size": 60, "character_coverage": 1.0, "minloglevel": 2}
  sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(sentences()),
    model_writer=model,
    **{**options, **overrides},
  )
  path.write_bytes(model.getvalue())
  return str(path)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
  path = tmp_path_factory.mktemp("model") / "ours.model"
  return train(path, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)


@pytest.fixture(scope="module")
def defaults(tmp_path_factory):
  return train(tmp_path_factory.mktemp("model") / "defaults.model")


def test_bytes_are_ids_from_3_to_258():
  vocabulary = ByteVocabulary()
  assert vocabulary.vocab_size == 259
  assert vocabulary.encode("aé") == [97 + 3, 0xC3 + 3, 0xA9 + 3]
  assert vocabulary.decode([100, 0xC3 + 3, 0xA9 + 3, 1, 100]) == "aé"
  assert vocabulary.encode("") == []


def test_bytes_that_are_no_utf8_decode_to_the_replacement_character():
  vocabulary = ByteVocabulary()
  assert vocabulary.decode([0xFF + 3, 97 + 3, 2, 0]) == "\ufffda"


def test_bytes_encode_in_a_graph_whatever_they_are():
  ids = ByteVocabulary().encode_tf(tf.constant(b"a\xff\x00"))
  np.testing.assert_array_equal(ids, [97 + 3, 255 + 3, 3])
  assert ids.dtype == tf.int32


def test_an_id_outside_the_vocabulary_is_an_error_with_its_range():
  with pytest.raises(ValueError, match=r"id 259 is not in .* 0 to 258"):
    ByteVocabulary().decode([100, 259])


def test_pieces_of_a_model_with_our_ids_are_the_ids_of_sentencepiece(ours):
  vocabulary = SentencePieceVocabulary(ours)
  processor = sentencepiece.SentencePieceProcessor(model_file=ours)
  text = "the größer Haus 7,50"
  assert vocabulary.vocab_size == 60
  assert vocabulary.encode(text) == processor.encode(text)
  assert vocabulary.decode([*vocabulary.encode(text), 1, 5, 0]) == text
  assert (vocabulary.pad_id, vocabulary.eos_id, vocabulary.unk_id) == (0, 1, 2)
  assert vocabulary.model_file in repr(vocabulary)


def test_a_model_with_other_ids_is_renumbered_to_padding_eos_unknown(defaults):
  vocabulary = SentencePieceVocabulary(defaults)
  processor = sentencepiece.SentencePieceProcessor(model_file=defaults)
  assert (processor.pad_id(), processor.unk_id(), processor.eos_id()) == (
    -1,
    0,
    2,
  )
  text = "the größer Haus 7,50"
  ids = vocabulary.encode(text)
  assert vocabulary.vocab_size == 61  # and padding
  assert len(ids) == len(processor.encode(text))
  assert min(ids) > 2
  assert vocabulary.decode([*ids, 1, 9]) == text
  assert vocabulary.encode("ß漢")[-1] == vocabulary.unk_id
  every = {vocabulary.encode(s)[0] for s in sentences()}
  assert len(every) == len({processor.encode(s)[0] for s in sentences()})


def test_text_that_names_special_pieces_does_not_encode_to_them(ours):
  ids = SentencePieceVocabulary(ours).encode("</s> <pad> <unk>")
  assert not {0, 1} & set(ids)


def test_encoding_in_a_pipeline_equals_encoding_outside(ours):
  for vocabulary in (ByteVocabulary(), SentencePieceVocabulary(ours)):
    texts = ["ein Haus", "", "größer \udcff?"]
    clean = [t.encode("utf-8", "replace").decode() for t in texts]
    dataset = tf.data.Dataset.from_tensor_slices(clean)
    dataset = dataset.map(vocabulary.encode_tf)
    assert dataset.element_spec == tf.TensorSpec([None], tf.int32)
    found = [ids.tolist() for ids in dataset.as_numpy_iterator()]
    assert found == [vocabulary.encode(t) for t in texts]
    assert found == vocabulary.encode_batch(texts)


def test_decoding_in_a_graph_gives_the_text_of_every_row(ours):
  vocabulary = SentencePieceVocabulary(ours)
  rows = [vocabulary.encode("ein Haus"), vocabulary.encode("the tree")]
  width = max(map(len, rows)) + 2
  padded = [[*row, 1] + [0] * (width - len(row) - 1) for row in rows]
  decode = tf.function(vocabulary.decode_tf)
  texts = decode(tf.constant([padded, padded[::-1]]))
  assert texts.shape == [2, 2]
  assert [t.decode() for t in texts.numpy().ravel()] == [
    "ein Haus",
    "the tree",
    "the tree",
    "ein Haus",
  ]
  assert vocabulary.decode_tf(tf.zeros([2, 0], tf.int32)).numpy().tolist() == [
    b"",
    b"",
  ]


def test_a_subclass_needs_no_more_than_encode_and_decode():
  class Letters(Vocabulary):
    vocab_size = 30

    def encode(self, text):
      return [ord(c) - ord("a") + 3 for c in text]

    def decode(self, ids):
      return "".join(chr(i + ord("a") - 3) for i in self.until_eos(ids))

  assert Letters().encode_tf(tf.constant("abc")).numpy().tolist() == [3, 4, 5]
  assert Letters().decode_tf(tf.constant([3, 4, 1, 5])).numpy() == b"ab"


def test_a_pair_of_vocabularies_has_one_for_inputs_and_one_for_targets(ours):
  pair = separate_vocabularies(ByteVocabulary(), SentencePieceVocabulary(ours))
  assert inputs_vocabulary(pair) is pair[0]
  assert targets_vocabulary(pair) is pair[1]
  assert vocabulary_of("inputs", pair) is pair[0]
  assert vocabulary_of("targets", pair) is pair[1]
  assert inputs_vocabulary(pair[1]) is targets_vocabulary(pair[1]) is pair[1]


def test_vocabularies_are_named_in_gin_files_as_the_original_names_them(ours):
  with gin.unlock_config():
    gin.parse_config(f"""
      get_sentencepiece_vocabulary.model_file = "{ours}"
      separate_vocabularies.inputs = @vocabulary.ByteVocabulary()
      separate_vocabularies.targets = @get_sentencepiece_vocabulary()
    """)
  try:
    pair = separate_vocabularies()
    assert isinstance(pair[0], ByteVocabulary)
    assert pair[1].vocab_size == 60
    selector = "mesh_tf2.transformer.utils.separate_vocabularies"
    assert gin.get_configurable(selector)() is not None
  finally:
    gin.clear_config()


def test_a_missing_model_is_named_with_the_command_that_makes_it(tmp_path):
  with pytest.raises(
    FileNotFoundError, match=r"no\.model: no such file; train"
  ):
    get_sentencepiece_vocabulary(str(tmp_path / "no.model"))


def test_a_file_that_is_no_model_is_named(tmp_path):
  path = tmp_path / "text.model"
  path.write_text("no model")
  with pytest.raises(ValueError, match=r"text\.model cannot be read as a Sent"):
    SentencePieceVocabulary(str(path))


def test_a_model_without_an_end_of_sequence_is_refused(tmp_path):
  path = train(tmp_path / "endless.model", eos_id=-1)
  with pytest.raises(ValueError, match="no end-of-sequence piece; train it"):
    SentencePieceVocabulary(path)
