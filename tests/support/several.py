"""Several processes on this machine that run one program, bounded in time."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import mesh_tf2 as mtf
from mesh_tf2.transformer.run import strategies

from tests.support import small_runs

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESH = "batch:2;model:2"
SAVE_STEPS = 10


def settings(folder, steps, mesh=MESH, **where):
  """A run that is the same on any mesh."""
  if where.get("strategy") == "joined":
    where["strategy"] = strategies.joined()
  small_runs.bind("dropout_rate = 0.1")
  return small_runs.make_settings(
    folder,
    model_type="bitransformer",
    mesh=mesh,
    batch_size=8,
    steps=steps,
    total_steps=100,
    save_steps=SAVE_STEPS,
    iterations_per_loop=5,
    optimizer=mtf.optimize.SgdOptimizer,
    **where,
  )


class Workers:
  """Processes of `tests.support.worker`.

  Args:
    folder: of the model.
    steps: how far to train.
    mesh: one processor for each process.
    die_at: worker number to the step before which it is killed.
    absent: numbers of workers that are never started.
    timeout: how long they wait for each other at the start, in seconds.
  """

  def __init__(
    self, folder, steps, mesh=MESH, die_at=None, absent=(), timeout=120
  ):
    count = mtf.convert_to_shape(mesh).size
    ports = free_ports(count)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    self.processes = {}
    for number in set(range(count)) - set(absent):
      config = {
        "cluster": {"worker": addresses},
        "task": {"type": "worker", "index": number},
      }
      extra = [str(die_at[number])] if number in (die_at or {}) else []
      self.processes[number] = subprocess.Popen(
        [
          sys.executable,
          "-m",
          "tests.support.worker",
          str(folder),
          str(steps),
          mesh,
          str(timeout),
          *extra,
        ],
        cwd=ROOT,
        env={
          **os.environ,
          "TF_CONFIG": json.dumps(config),
          "TF_CPP_MIN_LOG_LEVEL": "3",
          "CUDA_VISIBLE_DEVICES": "-1",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
      )

  def wait(self, seconds=150):
    """Waits for all; returns exit codes and what each wrote to stderr.

    A process that is still there after so many seconds is killed: a hang is a
    failure, and shows as exit code -9.
    """
    end = time.monotonic() + seconds
    codes, errors = {}, {}
    for number, process in self.processes.items():
      try:
        left = max(end - time.monotonic(), 1)
        _, errors[number] = process.communicate(timeout=left)
      except subprocess.TimeoutExpired:
        process.kill()
        _, errors[number] = process.communicate()
      codes[number] = process.returncode
    return codes, errors

  def signal(self, number, which=signal.SIGTERM):
    self.processes[number].send_signal(which)


def free_ports(count):
  sockets = [socket.socket() for _ in range(count)]
  for s in sockets:
    s.bind(("127.0.0.1", 0))
  ports = [s.getsockname()[1] for s in sockets]
  for s in sockets:
    s.close()
  return ports
