"""One of several processes that train a tiny model; started by a test.

    python -m tests.support.worker FOLDER STEPS [DIE_AT]

Its place among the others is in TF_CONFIG. With DIE_AT it is killed there.
"""

import json
import os
import pathlib
import signal
import sys

import tensorflow as tf


def main(folder, steps, die_at=None):
  strategy = tf.distribute.MultiWorkerMirroredStrategy()
  from mesh_tf2.transformer.run import loop, train

  from tests.support import several

  losses = []
  run = loop.StepLoop.run

  def noted(self, iterator, step, stops):
    if die_at is not None and step >= int(die_at):
      os.kill(os.getpid(), signal.SIGKILL)
    metrics = run(self, iterator, step, stops)
    losses.extend(map(float, metrics["loss"]))
    return metrics

  loop.StepLoop.run = noted
  train.train(several.settings(folder, int(steps), strategy=strategy))
  task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
  path = pathlib.Path(folder, f"losses-{steps}-{task}.json")
  path.write_text(json.dumps(losses))


if __name__ == "__main__":
  main(*sys.argv[1:])
