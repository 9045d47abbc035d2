"""A file of lines in, a file of lines out."""

import dataclasses

import gin
import numpy as np
import pytest

from mesh_tf2.transformer.run import context, decoding, infer

from tests.support import small_runs


class Shouter:
  """In the place of a model: shouts, and notes what it was given."""

  is_first = True

  def __init__(self):
    self.given = []

  def encode(self, texts):
    return texts

  def decode(self, texts):
    self.given += texts
    return [text.upper() for text in texts]


@pytest.mark.parametrize(
  ("text", "answer"),
  [
    (b"one\ntwo\n", "ONE\nTWO\n"),
    (b"one\n\n  \ntwo", "ONE\n\n\nTWO\n"),
    (b"one\r\n\r\ntwo\r\n", "ONE\n\nTWO\n"),
    (b"a\x0cb\n\xe2\x80\xa8c\n", "A\x0cB\n\u2028C\n"),
    (b"", ""),
    (b"\n", "\n"),
  ],
)
def test_there_are_as_many_lines_in_the_same_order(tmp_path, text, answer):
  (tmp_path / "in").write_bytes(text)
  model = Shouter()
  infer.decode_from_file(model, 7, f"{tmp_path}/in", f"{tmp_path}/out")
  assert (tmp_path / "out-7").read_bytes().decode() == answer
  assert all(line.strip() for line in model.given)


def test_a_line_may_be_decoded_several_times(tmp_path):
  (tmp_path / "in").write_text("one\ntwo\n")
  infer.decode_from_file(
    Shouter(), 7, f"{tmp_path}/in", f"{tmp_path}/out", repeats=2
  )
  assert (tmp_path / "out-7").read_text() == "ONE\nONE\nTWO\nTWO\n"


def test_a_missing_file_is_named(tmp_path):
  with pytest.raises(FileNotFoundError, match=f"{tmp_path}/absent"):
    infer.decode_from_file(Shouter(), 7, f"{tmp_path}/absent", "out")


def test_a_line_that_comes_out_as_several_stays_one_line(tmp_path):
  infer.write_lines(f"{tmp_path}/out", ["a\nb\r\nc", ""])
  assert (tmp_path / "out").read_bytes() == b"a b  c\n\n"


@pytest.fixture
def tiny_model():
  small_runs.bind()
  yield
  gin.clear_config()


TEXTS = ["one two", "three", "one", "four five six", "seven"]


def test_a_decoded_text_depends_neither_on_its_batch_nor_on_its_place(
  tmp_path, tiny_model
):
  """The model is not trained, so that its texts are wild."""
  decoded = []
  for size, mesh, layout in (
    (4, small_runs.MESH, small_runs.LAYOUT),
    (3, "", ""),
  ):
    made = small_runs.make_context(
      tmp_path,
      model_type="bitransformer",
      batch_size=size,
      mesh=mesh,
      layout=layout,
    )
    decoder = decoding.Decoder(made)
    decoder.build()
    table = made.program.variables["shared/embedding"]
    table.assign(np.random.default_rng(0).normal(size=[384, 16]))
    decoded.append(decoder.decode(decoder.encode(TEXTS)))
    decoded.append(decoder.decode(decoder.encode(TEXTS[::-1]))[::-1])
  assert decoded[0] == decoded[1] == decoded[2] == decoded[3]
  assert len(set(decoded[0])) > 1


def test_a_language_model_continues_its_prompt(tmp_path, tiny_model):
  made = small_runs.make_context(tmp_path)
  decoder = decoding.Decoder(made)
  rows = decoder.encode(["one", "x" * 100])
  assert rows[0] == [b + 3 for b in b"one"]
  assert len(rows[1]) == 31  # there is room for one token more
  texts = decoder.decode(rows)
  assert texts[0].startswith("one")
  assert texts[1].startswith("x" * 31)


def test_targets_that_follow_inputs_are_decoded_without_them(
  tmp_path, tiny_model
):
  settings = small_runs.make_settings(
    tmp_path, model_type="bitransformer", mesh="", layout=""
  )
  settings = dataclasses.replace(settings, model_type="delimited_lm")
  decoder = decoding.Decoder(context.prepare(settings))
  rows = decoder.encode(["one", "x" * 100])
  assert [len(row) for row in rows] == [4, 32]
  assert all(row[-1] == 1 for row in rows)
  texts = decoder.decode(rows)
  assert not texts[0].startswith("one")
  assert "x" * 31 not in texts[1]


def test_decoding_can_be_replaced(tmp_path, tiny_model):
  made = small_runs.make_context(
    tmp_path, model_type="bitransformer", mesh="", layout=""
  )
  settings = made.settings
  evaluation = dataclasses.replace(
    settings.evaluation, predict_fn=lambda model, ids, dtype: ids
  )
  decoder = decoding.Decoder(
    dataclasses.replace(
      made, settings=dataclasses.replace(settings, evaluation=evaluation)
    )
  )
  assert decoder.decode(decoder.encode(TEXTS)) == TEXTS


def test_inputs_that_are_too_long_still_end(tmp_path, tiny_model):
  made = small_runs.make_context(tmp_path, model_type="bitransformer")
  (row,) = decoding.Decoder(made).encode(["x" * 100])
  assert len(row) == 32
  assert row[-1] == 1


def test_a_model_that_does_not_decode_says_so(tmp_path, tiny_model):
  made = small_runs.make_context(tmp_path, model_type="aligned")
  with pytest.raises(ValueError, match="'aligned' does not decode"):
    decoding.Decoder(made)
