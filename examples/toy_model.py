"""A linear auto-encoder of any depth, on any mesh.

Its layers have the dimensions `hidden_even` and `hidden_odd` in turn, so that
the layout `hidden_odd:all` splits every other one: each processor holds a part
of all weights, and the activations are summed up once for each two layers.

    python examples/toy_model.py
    python examples/toy_model.py --mesh_shape="rows:2;cols:4" \
      --layout="batch:rows;hidden_odd:cols" --optimizer=Adafactor --lr=0.01

Run again with the same `--model_dir`, it goes on from its checkpoint, whatever
the mesh and the layout are then.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.checkpoint import CheckpointDirectory

OPTIMIZERS = {
  "SGD": mtf.optimize.SgdOptimizer,
  "Adafactor": mtf.optimize.AdafactorOptimizer,
}


def toy_model(
  features: mtf.Tensor, hidden_size: int, layers: int, dtype: mtf.VariableDType
) -> tuple[mtf.Tensor, mtf.Tensor]:
  """Maps features to themselves, through linear layers.

  Args:
    features: (batch, io).
    hidden_size: the size of every layer between.
    layers: how many there are between.
    dtype: of variables, when saved, when kept, and when used.

  Returns:
    What comes out, (batch, io), and the mean squared difference, a scalar.
  """
  io = features.shape[-1]
  x = mtf.cast(features, dtype.activation_dtype)
  for number in range(layers):
    parity = "odd" if number % 2 else "even"
    hidden = mtf.Dimension(f"hidden_{parity}", hidden_size)
    x = mtf.layers.dense(
      x,
      hidden,
      reduced_dims=x.shape[-1:],
      use_bias=False,
      variable_dtype=dtype,
      name=f"layer_{number}",
    )
  y = mtf.layers.dense(
    x,
    io,
    reduced_dims=x.shape[-1:],
    use_bias=False,
    variable_dtype=dtype,
    name="out",
  )
  return y, mtf.reduce_mean(mtf.square(mtf.to_float(y) - features))


def make_step(
  program: mtf.Program, options: argparse.Namespace
) -> mtf.ProgramFunction:
  """A training step of `program`: from features to the loss before it."""
  batch = mtf.Dimension("batch", options.batch_size)
  io = mtf.Dimension("io", options.io_size)
  dtype = mtf.VariableDType(
    *(
      tf.as_dtype(name)
      for name in (
        options.master_dtype,
        options.slice_dtype,
        options.activation_dtype,
      )
    )
  )

  @program.function
  def step(mesh: mtf.Mesh, values: tf.Tensor) -> mtf.Tensor:
    features = mtf.import_tf_tensor(mesh, values, [batch, io])
    _, loss = toy_model(
      features, options.hidden_size, options.num_hidden_layers, dtype
    )
    variables = mesh.graph.trainable_variables
    grads = mtf.gradients([loss], [v.value for v in variables])
    optimizer = OPTIMIZERS[options.optimizer](learning_rate=options.lr)
    optimizer.apply_grads(grads, variables)
    return loss

  return step


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  add = parser.add_argument
  add("--batch_size", type=int, default=64)
  add("--io_size", type=int, default=16)
  add("--hidden_size", type=int, default=16)
  add("--num_hidden_layers", type=int, default=2)
  add("--master_dtype", default="float32")
  add("--slice_dtype", default="float32")
  add("--activation_dtype", default="float32")
  add("--optimizer", choices=sorted(OPTIMIZERS), default="SGD")
  add("--lr", type=float, default=0.1)
  add("--mesh_shape", default="all:8")
  add("--layout", default="hidden_odd:all")
  add("--train_steps", type=int, default=200)
  add("--steps_per_checkpoint", type=int, default=100)
  add("--model_dir", help="where checkpoints are kept")
  return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> float:
  """Trains, and prints the loss now and then.

  Args:
    arguments: of the command line.

  Returns:
    The last loss.
  """
  options = _options(arguments)
  program = mtf.Program(options.mesh_shape, options.layout)
  step = make_step(program, options)
  checkpoints = None
  if options.model_dir is not None:
    checkpoints = CheckpointDirectory(options.model_dir)
    if found := checkpoints.latest():
      program.restore(found)
      print(f"going on from {found}")
  loss = float("nan")
  for number in range(int(program.step), options.train_steps):
    rng = np.random.default_rng(number)  # the same features for every mesh
    features = rng.normal(size=(options.batch_size, options.io_size))
    loss = float(step(features.astype(np.float32)))
    done = number + 1
    if done % options.steps_per_checkpoint and done != options.train_steps:
      continue
    print(f"step {done}: loss {loss:.6f}")
    if checkpoints is not None:
      with checkpoints.saving(done) as path:
        program.save(path)
  return loss


if __name__ == "__main__":
  main()
