"""The smallest whole program: a two-layer network, trained on four processors.

It is the first program of most users of Mesh TensorFlow, in the original's
words: a graph, a mesh, variables, gradients, assignments, and a lowering that
carries it all out. Only the import line is new, and that TensorFlow 2 runs it
at once. The shorter way is `mtf.Program`; see `toy_model.py`.

    python examples/two_layers.py
    python examples/two_layers.py --layout="hidden:all_processors" --function

The losses that it prints are the same for every layout.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

import mesh_tf2 as mtf

BATCH = mtf.Dimension("batch", 100)
ROWS = mtf.Dimension("rows", 28)
COLS = mtf.Dimension("cols", 28)
HIDDEN = mtf.Dimension("hidden", 256)
CLASSES = mtf.Dimension("classes", 10)


def build(
  mesh: mtf.Mesh, tf_images: tf.Tensor, tf_labels: tf.Tensor, rate: float
) -> tuple[mtf.Tensor, list[mtf.Operation]]:
  """The loss of the network, and the assignments of one training step.

  Args:
    mesh: where it runs.
    tf_images: (batch, rows, cols), float32.
    tf_labels: (batch), int32.
    rate: the learning rate.
  """
  images = mtf.import_tf_tensor(mesh, tf_images, [BATCH, ROWS, COLS])
  labels = mtf.import_tf_tensor(mesh, tf_labels, [BATCH])
  w1 = mtf.get_variable(mesh, "w1", [ROWS, COLS, HIDDEN])
  w2 = mtf.get_variable(mesh, "w2", [HIDDEN, CLASSES])
  hidden = mtf.relu(mtf.einsum([images, w1], output_shape=[BATCH, HIDDEN]))
  logits = mtf.einsum([hidden, w2], output_shape=[BATCH, CLASSES])
  loss = mtf.reduce_mean(
    mtf.layers.softmax_cross_entropy_with_logits(
      logits, mtf.one_hot(labels, CLASSES), CLASSES
    )
  )
  dw1, dw2 = mtf.gradients([loss], [w1, w2])
  return loss, [
    mtf.assign(w1, w1 - dw1 * rate),
    mtf.assign(w2, w2 - dw2 * rate),
  ]


def training_step(
  impl: mtf.MeshImpl, images: tf.Tensor, labels: tf.Tensor, rate: float
) -> tf.Tensor:
  """Takes one step, and returns the loss before it."""
  graph = mtf.Graph()
  mesh = mtf.Mesh(graph, "my_mesh")
  loss, updates = build(mesh, images, labels, rate)
  lowering = mtf.Lowering(graph, {mesh: impl})
  value = lowering.export_to_tf_tensor(loss)
  for update in updates:
    lowering.lowered_operation(update)
  return value


def blots(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
  """Noise with a bright square, whose place is the class.

  Returns:
    Images (batch, rows, cols), float32, and labels (batch), int32.
  """
  rng = np.random.default_rng(seed)
  labels = rng.integers(0, CLASSES.size, BATCH.size, np.int32)
  images = rng.normal(0, 0.3, (BATCH.size, ROWS.size, COLS.size))
  for image, label in zip(images, labels, strict=True):
    row, col = 14 * (label // 5), 5 * (label % 5)
    image[row : row + 5, col : col + 5] += 1.0
  return images.astype(np.float32), labels


def main(arguments: Sequence[str] | None = None) -> list[float]:
  """Trains, and prints the losses.

  Args:
    arguments: of the command line.

  Returns:
    The losses.
  """
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--layout", default="batch:all_processors")
  parser.add_argument("--processors", type=int, default=4)
  parser.add_argument("--steps", type=int, default=10)
  parser.add_argument("--rate", type=float, default=0.1)
  parser.add_argument(
    "--function", action="store_true", help="compile the step"
  )
  options = parser.parse_args(arguments)
  # Any devices will do, the same one several times, too.
  impl = mtf.placement_mesh_impl.PlacementMeshImpl(
    [("all_processors", options.processors)],
    options.layout,
    ["cpu:0"] * options.processors,
  )

  def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return training_step(impl, images, labels, options.rate)

  if options.function:
    step = tf.function(step, autograph=False)
  images, labels = map(tf.constant, blots())
  losses = []
  for number in range(options.steps):
    losses.append(float(step(images, labels)))
    print(f"step {number}: loss {losses[-1]:.4f}")
  return losses


if __name__ == "__main__":
  main()
