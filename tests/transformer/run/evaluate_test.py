"""Translations against references."""

import gin
import numpy as np
import pytest
import sacrebleu

from mesh_tf2.data import eval_dataset
from mesh_tf2.transformer.run import evaluate, evaluation_data

from tests.support import small_runs
from tests.transformer.run.events_test import scalars


@pytest.fixture(autouse=True)
def tiny_model():
  small_runs.bind()
  yield
  gin.clear_config()


class Backwards:
  """In the place of a model: right, but for texts of four words."""

  def encode(self, texts):
    return list(texts)

  def decode(self, texts):
    words = [text.split() for text in texts]
    return [" ".join(w if len(w) == 4 else w[::-1]) for w in words]


def expected():
  texts = small_runs.sentences(11, seed=1)
  references = [" ".join(reversed(text.split())) for text in texts]
  return texts, references, Backwards().decode(texts)


def evaluator(tmp_path, task=None):
  context = small_runs.make_context(tmp_path, model_type="bitransformer")
  if task is None:
    (task,) = evaluation_data.evaluation_tasks(context.settings)
  return evaluate.Evaluator(context, Backwards(), task)


def test_a_split_is_translated_scored_and_written(tmp_path, capsys):
  gin.bind_parameter("eval_model.source", small_runs.source(with_inputs=True))
  found = evaluator(tmp_path).evaluate(7)
  texts, references, predictions = expected()
  bleu = sacrebleu.corpus_bleu(predictions, [references]).score
  assert found.bleu == pytest.approx(bleu)
  exact = sum(map(str.__eq__, predictions, references))
  assert 0 < exact < 11
  told = capsys.readouterr().out
  assert f"BLEU {bleu:.2f} (nrefs:1|case:mixed" in told
  assert f"({exact} of 11)" in told
  folder = tmp_path / "validation_eval"
  for name, lines in (
    ("inputs", texts),
    ("targets", references),
    ("7_predictions", predictions),
  ):
    assert (folder / f"eval_{name}").read_text().splitlines() == lines
  points = scalars(folder)
  assert points[7, "eval/eval/bleu"] == pytest.approx(bleu)
  assert points[7, "eval/eval/exact_match"] == pytest.approx(exact / 11)


def test_without_text_references_are_made_of_ids(tmp_path):
  found = evaluate.eval_model(
    small_runs.make_settings(tmp_path, model_type="bitransformer"),
    evaluation_data.evaluation_tasks(
      small_runs.make_settings(tmp_path, model_type="bitransformer")
    )[0],
  )
  texts, references, _ = expected()
  assert found.inputs == texts
  assert found.references == references
  ids = [[b + 3 for b in text.encode()] + [1] for text in texts]
  assert [row.tolist() for row in found.ids] == ids


def test_a_data_set_may_bring_its_text_and_its_metrics(tmp_path, capsys):
  task = eval_dataset.EvalDataset(
    "mine",
    dataset_fn=None,
    postprocess_fn=lambda text, example=None, is_target=False: len(text),
    metric_fns=[lambda t, p: {"longer": float(np.mean(np.greater(p, t)))}],
    text_fn=lambda: [("a b", "b a"), ("c d", "d")],
  )
  found = evaluator(tmp_path, task).evaluate(3)
  assert found.exact == 1
  assert "longer 0.5" in capsys.readouterr().out
  points = scalars(tmp_path / "validation_eval")
  assert points[3, "eval/mine/longer"] == 0.5


def test_examples_come_from_all_over_the_split():
  texts = [str(i) for i in range(21)]
  found = evaluate.Translations(
    evaluate.Pairs(texts, texts), [f"<{t}>" for t in texts], 0.0, "", 0
  )
  assert found.examples(3) == "0\n  -> <0>\n10\n  -> <10>\n20\n  -> <20>"
  assert len(found.examples(100).splitlines()) == 42
