"""One of several processes that train a tiny model; started by a test.

    python -m tests.support.worker FOLDER STEPS MESH TIMEOUT [DIE_AT]

Its place among the others is in TF_CONFIG. It waits for them for TIMEOUT
seconds. With DIE_AT it is killed at that step.
"""

import json
import os
import pathlib
import signal
import sys

import tensorflow as tf

from mesh_tf2.transformer.run import mistakes, strategies


def main(folder, steps, mesh, timeout, die_at=None):
  config = os.environ["TF_CONFIG"]
  try:
    strategies.join_cluster(config, float(timeout))
  except TimeoutError as error:
    sys.exit(mistakes.mistake(error))
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
  try:
    train.train(several.settings(folder, int(steps), mesh, strategy="joined"))
  except tf.errors.OpError as error:
    sys.exit(mistakes.mistake(error))
  finally:
    task = json.loads(config)["task"]["index"]
    path = pathlib.Path(folder, f"losses-{steps}-{task}.json")
    path.write_text(json.dumps(losses))


if __name__ == "__main__":
  main(*sys.argv[1:])
