"""Positions in data: saved, restored, in another process."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from mesh_tf2.data.batch import training_batches
from mesh_tf2.data.byte_vocabulary import ByteVocabulary
from mesh_tf2.data.iterator import CheckpointableIterator
from mesh_tf2.data.text_dataset import text_dataset
from mesh_tf2.data.text_pair import TextPairFiles

NUM_LINES = 230


def write_text(folder):
  rng = np.random.default_rng(0)
  for name in ("a.x", "a.y"):
    lines = ["z" * n for n in rng.integers(0, 30, NUM_LINES)]
    (folder / name).write_text("\n".join(lines))


def make_batches(folder, reports):
  """Shuffled with a buffer smaller than a pass, packed, batched."""
  examples = text_dataset(
    "train",
    {"inputs": 32, "targets": 24},
    ByteVocabulary(),
    seed=5,
    source=TextPairFiles({"train": ("a.x", "a.y")}, str(folder)),
    shuffle_buffer_size=50,
    window=40,
    on_pass=reports.append,
  )
  return CheckpointableIterator(training_batches(examples, 4), "seed 5")


def listed(batch):
  return {key: rows.numpy().tolist() for key, rows in batch.items()}


def test_a_second_process_goes_on_with_the_next_batch(tmp_path):
  """In the third pass: the passes after it, and their counts, go on as well."""
  write_text(tmp_path)
  reports = []
  with make_batches(tmp_path, reports) as batches:
    for _ in range(90):
      next(batches)
    path = batches.save(str(tmp_path / "new" / "position"))
    del reports[:]
    wanted = [listed(next(batches)) for _ in range(60)]
  script = (
    "import json, sys\n"
    f"sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
    "from iterator_test import listed, make_batches\n"
    "reports = []\n"
    f"with make_batches({str(tmp_path)!r}, reports) as batches:\n"
    f"  batches.restore({path!r})\n"
    "  found = [listed(next(batches)) for _ in range(60)]\n"
    "print(json.dumps([found, [r.truncated for r in reports]]))\n"
  )
  done = subprocess.run(
    [sys.executable, "-c", script], capture_output=True, text=True, check=True
  )
  found, truncated = json.loads(done.stdout)
  assert found == wanted
  # How far the iterators have read ahead may differ; what they counted not.
  assert truncated
  assert reports
  assert {*truncated} == {r.truncated for r in reports}


@pytest.mark.parametrize("step", [1, 37])
def test_another_iterator_goes_on_with_the_next_batch(tmp_path, step):
  write_text(tmp_path)
  with make_batches(tmp_path, []) as batches:
    for _ in range(step):
      next(batches)
    path = batches.save(str(tmp_path / "position"))
    wanted = [listed(next(batches)) for _ in range(80)]
    batches.restore(path)  # this one, too, can go back
    assert [listed(next(batches)) for _ in range(5)] == wanted[:5]
  with make_batches(tmp_path, []) as batches:
    batches.restore(path)
    assert [listed(next(batches)) for _ in range(80)] == wanted


def test_a_position_of_another_pipeline_is_refused(tmp_path):
  numbers = tf.data.Dataset.range(5)
  path = CheckpointableIterator(numbers, "seed 1").save(str(tmp_path / "p"))
  other = CheckpointableIterator(numbers, "seed 2")
  with pytest.raises(
    ValueError, match=r"saved for another input .*seed 1.*seed 2"
  ):
    other.restore(path)
  batched = CheckpointableIterator(numbers.batch(2), "seed 1")
  with pytest.raises(ValueError, match="saved for another input pipeline"):
    batched.restore(path)


def test_a_missing_position_is_named(tmp_path):
  batches = CheckpointableIterator(tf.data.Dataset.range(5))
  with pytest.raises(FileNotFoundError, match=r"none\.index: no saved data"):
    batches.restore(str(tmp_path / "none"))


def test_a_checkpoint_of_something_else_is_named(tmp_path):
  path = tf.train.Checkpoint(x=tf.Variable(1)).write(str(tmp_path / "x"))
  batches = CheckpointableIterator(tf.data.Dataset.range(5))
  with pytest.raises(ValueError, match="x holds no data position"):
    batches.restore(path)


def test_a_closed_iterator_says_so():
  batches = CheckpointableIterator(tf.data.Dataset.range(5))
  assert int(next(batches)) == 0
  assert [int(n) for n in batches] == [1, 2, 3, 4]
  batches.close()
  with pytest.raises(ValueError, match="the iterator was closed"):
    next(batches)


def test_an_interpreter_exits_with_iterators_left_open():
  script = (
    "import tensorflow as tf\n"
    "from mesh_tf2.data.iterator import CheckpointableIterator\n"
    "f = lambda x: x + sum(range(20000))\n"
    "numbers = tf.data.Dataset.range(10**6).map(\n"
    "  lambda x: tf.numpy_function(f, [x], tf.int64, stateful=False))\n"
    "open = [CheckpointableIterator(numbers.prefetch(8)) for _ in range(8)]\n"
    "for each in open: next(each)\n"
  )
  subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
