"""How long it takes to build and trace a training step on virtual meshes.

    python benchmarks/trace_time.py [--mesh batch:2,model:4 ...] [--layers 6]

The model is the base one of Vaswani et al. (2017) as for WMT14, encoder and
decoder of six layers each, with its 32,000 words; nothing is downloaded. Each
mesh gets a program of its own in this process. A row of the table says

* trace: seconds to build the graph of a training step, to lower it onto the
  mesh and to make the TensorFlow function of it, where the variables exist;
* busy: seconds of processor time that this takes, whatever else is running;
* first: seconds that it takes the first time, when initial values are drawn;
* nodes: of the TensorFlow function, those inside of its functions included;
* ratio: of the busy seconds to those of the first mesh.

`--profile FILE` writes the profile of the last trace, for `python -m pstats`.
"""

from __future__ import annotations

import argparse
import cProfile
import dataclasses
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.data.byte_vocabulary import ByteVocabulary
from mesh_tf2.transformer import gin_files, schedules
from mesh_tf2.transformer.run import settings
from mesh_tf2.transformer.run.context import Context
from mesh_tf2.transformer.run.dtypes import get_variable_dtype
from mesh_tf2.transformer.run.models import build_model
from mesh_tf2.transformer.run.train_step import make_train_step

MESHES = ("batch:2,model:4", "batch:64,model:8")
LAYOUT = "batch:batch;d_ff:model;heads:model;vocab:model"
WORDS = 32000
LENGTH = 256
ROWS_PER_REPLICA = 8  # as many as one micro-batch takes


def _parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--mesh", nargs="+", default=MESHES, help="mesh shapes")
  parser.add_argument("--layers", type=int, default=6)
  parser.add_argument("--repeat", type=int, default=3, help="the best counts")
  parser.add_argument("--profile", help="a file to write a profile to")
  return parser.parse_args()


def new_context(mesh: str) -> Context:
  """The model, its optimizer and its schedule, on a virtual mesh."""
  mesh_shape = mtf.convert_to_shape(mesh.replace(",", ";"))
  layout = mtf.convert_to_layout_rules(LAYOUT)
  replicas = mtf.tensor_dim_to_mesh_dim_size(
    layout, mesh_shape, mtf.Dimension("batch", 1)
  )
  machine = settings.Machine(mesh_shape, layout, devices=None, seed=0)
  chosen = settings.Settings(
    model_dir="unused",
    mode=settings.Mode.TRAIN,
    model_type="bitransformer",
    vocabulary=ByteVocabulary(),
    batch_size=ROWS_PER_REPLICA * replicas,
    sequence_length={"inputs": LENGTH, "targets": LENGTH},
    machine=machine,
    training=settings.Training(
      dataset_fn=None,
      optimizer=mtf.optimize.AdafactorOptimizer,
      learning_rate=schedules.learning_rate_schedule_noam,
      steps=1,
      total_steps=100_000,
    ),
    evaluation=settings.Evaluation(None, "", ""),
  )
  model = build_model("bitransformer", WORDS, WORDS, layout, mesh_shape)
  program = mtf.Program(mesh_shape, layout)
  return Context(chosen, program, model, get_variable_dtype())


@dataclasses.dataclass(frozen=True)
class Trace:
  """What a trace took.

  Attributes:
    seconds: by the clock on the wall.
    busy: of processor time, which other programs do not change.
    nodes: of the TensorFlow function.
  """

  seconds: float
  busy: float
  nodes: int


def trace(context: Context) -> Trace:
  """Traces a new training step, and makes the variables if there are none."""
  size = context.settings.batch_size
  row = tf.TensorSpec([size, LENGTH], tf.int32)
  names = [
    f"{side}{what}"
    for side in ("inputs", "targets")
    for what in ("", "_position", "_segmentation")
  ]
  features = dict.fromkeys(names, row)
  begin, busy = time.perf_counter(), time.process_time()
  function = make_train_step(context).tf_function
  traced = function.get_concrete_function(features)
  seconds, busy = time.perf_counter() - begin, time.process_time() - busy
  graph = traced.graph.as_graph_def()
  inner = sum(len(f.node_def) for f in graph.library.function)
  return Trace(seconds, busy, len(graph.node) + inner)


def _busy(trace: Trace) -> float:
  return trace.busy


def main() -> None:
  """Prints the table."""
  args = _parse()
  gin_files.parse_gin_defaults_and_flags(
    gin_files=["models/aiayn_base.gin"],
    gin_params=[f"num_layers = {args.layers}"],
    finalize_config=False,
  )
  columns = (
    "mesh", "processors", "trace", "busy", "first", "nodes", "ratio",
  )  # fmt: skip
  print("{:24}{:>12}{:>10}{:>10}{:>12}{:>10}{:>8}".format(*columns))
  base = None
  for mesh in args.mesh:
    context = new_context(mesh)
    first = trace(context)
    best = min((trace(context) for _ in range(args.repeat)), key=_busy)
    base = base or best.busy
    print(
      f"{mesh:24}{context.program.mesh_impl.size:12}{best.seconds:10.2f}"
      f"{best.busy:10.2f}{first.seconds:12.2f}{best.nodes:10}"
      f"{best.busy / base:8.2f}"
    )
  if args.profile:
    profile = cProfile.Profile()
    profile.runcall(trace, context)
    profile.dump_stats(args.profile)


if __name__ == "__main__":
  main()
