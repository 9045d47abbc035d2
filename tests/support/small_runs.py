"""Runs that take a second: a tiny model, a few sentences, a few steps."""

import random

import gin
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.data import byte_vocabulary, text_dataset, text_source
from mesh_tf2.transformer import gin_files
from mesh_tf2.transformer.run import context, settings

TINY = [
  "num_layers = 1",
  "d_model = 16",
  "d_ff = 32",
  "num_heads = 4",
  "d_kv = 4",
  "transformer.Unitransformer.max_length = 64",
]
MESH = "batch:2;model:4"
LAYOUT = "batch:batch;vocab:model;d_ff:model;heads:model"
WORDS = ["one", "two", "three", "four", "five", "six", "seven"]


def sentences(count, seed=0):
  rng = random.Random(seed)
  return [
    " ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(count)
  ]


def source(with_inputs=False):
  """Sentences to model, or to write backwards."""

  def example(text):
    if not with_inputs:
      return {"targets": text}
    return {"inputs": text, "targets": " ".join(reversed(text.split()))}

  splits = {"train": sentences(50), "validation": sentences(11, seed=1)}
  return text_source.MemoryText(
    {name: [example(text) for text in texts] for name, texts in splits.items()}
  )


def bind(*params):
  """Binds the tiny model; call `gin.clear_config` afterwards."""
  gin.clear_config()
  gin_files.parse_gin_defaults_and_flags(
    gin_params=[*TINY, *params], finalize_config=False
  )


def make_settings(  # noqa: PLR0913  all have defaults
  model_dir,
  model_type="lm",
  mesh=MESH,
  layout=LAYOUT,
  devices=None,
  strategy=None,
  batch_size=4,
  seed=0,
  dataset_fn=None,
  split="validation",
  **training,
):
  """Settings of a run; further arguments are those of `Training`."""
  with_inputs = model_type == "bitransformer"

  def dataset(**kwargs):
    return text_dataset.text_dataset(
      **kwargs, source=source(with_inputs), shuffle_buffer_size=20, window=16
    )

  dataset_fn = dataset_fn or dataset
  row = {"inputs": 32, "targets": 32} if with_inputs else {"targets": 32}
  chosen = {
    "dataset_fn": dataset_fn,
    "optimizer": mtf.optimize.SgdOptimizer,
    "learning_rate": lambda step, total: tf.constant(0.05),
    "steps": 4,
    "total_steps": 4,
    **training,
  }
  return settings.Settings(
    model_dir=str(model_dir),
    mode=settings.Mode.TRAIN,
    model_type=model_type,
    vocabulary=byte_vocabulary.ByteVocabulary(),
    batch_size=batch_size,
    sequence_length=row,
    machine=settings.Machine(
      mtf.convert_to_shape(mesh),
      mtf.convert_to_layout_rules(layout),
      devices,
      seed,
      strategy,
    ),
    training=settings.Training(**chosen),
    evaluation=settings.Evaluation(
      dataset_fn, split, f"{model_dir}/{split}_eval"
    ),
  )


def make_context(model_dir, **kwargs):
  """A program and a model; see `make_settings`."""
  return context.prepare(make_settings(model_dir, **kwargs))
