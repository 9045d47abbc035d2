"""A process that is killed while it writes leaves the old checkpoints whole.

Processes are forked from one that has imported TensorFlow but not used it.
"""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import tensorflow as tf

from mesh_tf2.checkpoint import CheckpointDirectory, Reader, staging, write

from tests.checkpoint import slicing

# Each scenario: the step that is saved, and before which renaming the process
# ends. A save renames two data files, the index, and the file `checkpoint`.
SCENARIOS = {
  "before the first file": (2, 0),
  "between the data files": (2, 1),
  "before the index": (2, 2),
  "after the index": (2, 3),
  "replaced, before the first file": (1, 0),
  "replaced, between the data files": (1, 1),
  "replaced, before the index": (1, 2),
  "replaced, after the index": (1, 3),
}

PROGRAM = """
import json, os, sys
import tensorflow as tf
from mesh_tf2.checkpoint import CheckpointDirectory, Slice, bundle, files

def save(folder, step, value, parts_bytes):
  bundle.PART_BYTES = parts_bytes
  checkpoints = CheckpointDirectory(folder, keep=1)
  with checkpoints.saving(step) as prefix:
    with open(f"{prefix}.input", "w") as file:
      file.write(str(value))
    rows = [Slice("w", (2, 4), (i, 0), tf.fill((1, 4), value)) for i in (0, 1)]
    bundle.write(prefix, rows)

def save_and_die(folder, step, renames):
  real, left = files.rename, [renames]
  def rename(source, target):
    if not left[0]:
      os._exit(9)
    left[0] -= 1
    real(source, target)
  files.rename = rename
  save(folder, step, 2.0, 16)

def in_a_process(function, *args):
  pid = os.fork()
  if not pid:
    function(*args)
    os._exit(0)
  return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

root = sys.argv[1]
for name, (step, renames) in json.loads(sys.argv[2]).items():
  folder = os.path.join(root, name)
  assert in_a_process(save, folder, 1, 1.0, 1000) == 0
  assert in_a_process(save_and_die, folder, step, renames) == 9
"""


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
  root = tmp_path_factory.mktemp("crashed")
  subprocess.run(
    [
      sys.executable,
      "-W",
      "ignore",  # of forking a process that has threads
      "-c",
      textwrap.dedent(PROGRAM),
      str(root),
      json.dumps(SCENARIOS),
    ],
    check=True,
    timeout=120,
  )
  return root


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_killed_process_leaves_the_newest_whole(
  crashed, scenario, monkeypatch
):
  folder = crashed / scenario
  step, renames = SCENARIOS[scenario]
  is_new = renames == 3
  checkpoints = CheckpointDirectory(folder, keep=1)
  latest = checkpoints.latest()
  assert latest == checkpoints.path(step if is_new else 1)
  value = 2.0 if is_new else 1.0
  reader = Reader(latest)
  assert reader.read("w", (2, 4), (1, 2), (1, 1), tf.float32) == value
  if is_new or step == 2:
    belongs = pathlib.Path(f"{latest}.input").read_text()
    assert belongs == str(value)
  assert tf.train.load_variable(latest, "w")[0, 0] == value

  # The next process tidies up. This one is older than the killed one.
  left = [n for n in slicing.names(folder) if staging.is_temporary(n)]
  assert left
  write(folder / "other", [slicing.whole("w", 1.0)])
  assert set(left) <= set(slicing.names(folder))
  monkeypatch.setattr(staging, "STARTED", staging.STARTED + 1e6)
  with checkpoints.saving(3) as prefix:
    write(prefix, [slicing.whole("w", 3.0)])
  assert slicing.names(folder) == [
    "checkpoint",
    "model.ckpt-3.data-00000-of-00001",
    "model.ckpt-3.index",
    "other.data-00000-of-00001",
    "other.index",
  ]


def test_what_another_living_process_or_host_writes_is_left(
  tmp_path, monkeypatch
):
  monkeypatch.setattr(staging, "STARTED", staging.STARTED + 1e6)
  ours = staging.temporary("x").split("temp-")[1]
  host, pid, token = ours.rsplit("-", 2)
  left = [
    f"model.ckpt-1.temp-{host}-{os.getppid()}-{token}",
    f"model.ckpt-1.temp-{host}-1-{token}",
    f"model.ckpt-1.temp-other-host-7-{token}",
    f"model.ckpt-1.temp-{ours}",
  ]
  gone = [
    f"model.ckpt-1.temp-{host}-{pid}-00000000",
    f"checkpoint.temp-{host}-{pid}-00000000",
    f"model.ckpt-1.temp-old-host-7-{token}",
  ]
  for name in left + gone:
    (tmp_path / name).mkdir()
    (tmp_path / name / "part-0.index").write_text("")
  day_before_yesterday = staging.STARTED - 1e6 - 2 * 24 * 60 * 60
  os.utime(tmp_path / gone[2], (day_before_yesterday, day_before_yesterday))
  write(tmp_path / "model.ckpt-2", [slicing.whole("w", 1.0)])
  names = {n for n in slicing.names(tmp_path) if staging.is_temporary(n)}
  assert names == set(left)
