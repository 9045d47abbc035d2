"""The configurable `run`: from what gin files bind to one of the modes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gin
from absl import logging

import mesh_tf2 as mtf
from mesh_tf2.data.dataset_fn import DatasetFn
from mesh_tf2.data.vocabulary import Vocabularies

from ..schedules import Schedule
from .batch_sizes import BatchSize, auto_train_steps, compute_batch_size
from .compile_ahead import compile_step
from .devices import Kind, Wanted, choose
from .evaluate import evaluate_checkpoints
from .infer import infer_checkpoints
from .mesh_shapes import MODULE
from .perplexity import perplexity_of_checkpoints
from .settings import (
  Evaluation,
  Machine,
  Mode,
  Settings,
  Training,
  lengths,
  required,
  schedule,
)
from .strategies import devices_here, strategy_of
from .train import train
from .train_evaluate import train_and_evaluate
from .variable_filter import VariableFilter

MODES: Mapping[Mode, Callable[[Settings], None]] = {
  Mode.TRAIN: train,
  Mode.EVALUATE: evaluate_checkpoints,
  Mode.PERPLEXITY: perplexity_of_checkpoints,
  Mode.INFER: infer_checkpoints,
  Mode.TRAIN_EVALUATE: train_and_evaluate,
  Mode.COMPILE: compile_step,
}

# Parameters of the original without a use here: their values that say nothing,
# and why the others do nothing.
NO_EFFECT = {
  "tpu_job_name": (None, "TensorFlow names the jobs of a TPU"),
  "gcp_project": (None, "a TPU is looked for in this machine's project"),
  "tpu_zone": (None, "a TPU is looked for in this machine's zone"),
  "autostack": (True, "variables are kept one by one"),
  "export_checkpoint_step": (None, "models are not exported"),
  "export_path": ("", "models are not exported"),
  "train_model_fn": (None, "there is one training loop"),
  "skip_seen_data": (False, "a resumed run goes on exactly where it stopped"),
  "seen_data_init_step": (
    0,
    "a resumed run goes on exactly where it stopped",
  ),
  "checkpoint_input_pipeline": (
    True,
    "checkpoints always hold the position in the data",
  ),
}


@gin.configurable(module=MODULE)
def run(  # noqa: PLR0913  names of the original, and their order
  tpu_job_name: str | None = None,
  tpu: str | None = None,
  gcp_project: str | None = None,
  tpu_zone: str | None = None,
  model_dir: str = gin.REQUIRED,
  model_type: str = "bitransformer",
  vocabulary: Vocabularies | None = None,
  train_dataset_fn: DatasetFn | None = None,
  eval_dataset_fn: DatasetFn | None = None,
  dataset_split: str = "train",
  autostack: bool = True,
  eval_checkpoint_step: int | str | Sequence[int] | None = -1,
  export_checkpoint_step: int | None = None,
  export_path: str = "",
  mode: str = "train",
  iterations_per_loop: int = 100,
  save_checkpoints_steps: int = 5000,
  keep_checkpoint_max: int | None = None,
  eval_summary_dir: str | None = None,
  batch_size: BatchSize = ("tokens_per_replica", 2048),
  train_steps: int | Callable[..., int] = auto_train_steps,
  total_run_steps: int | None = None,
  sequence_length: int | Mapping[str, int] | None = None,
  mesh_shape: mtf.Shape | str = gin.REQUIRED,
  mesh_devices: Sequence[str] | None = None,
  layout_rules: mtf.LayoutRules | str = gin.REQUIRED,
  learning_rate_schedule: float | Schedule | Sequence[Any] | None = None,
  optimizer: Callable[..., Any] | None = None,
  predict_fn: Callable[..., mtf.Tensor] | None = None,
  variable_filter: VariableFilter | None = None,
  perplexity_eval_steps: int | None = None,
  init_checkpoint: str | None = None,
  ensemble_inputs: int | None = None,
  train_model_fn: Callable[..., Any] | None = None,
  skip_seen_data: bool = False,
  seen_data_init_step: int = 0,
  output_eval_examples: bool = True,
  checkpoint_input_pipeline: bool = True,
  eval_dir_suffix: str | None = None,
  seed: int = 0,
  log_steps: int = 100,
  skip_nonfinite_steps: bool = False,
  strategy: str | None = None,
) -> None:
  """Trains, evaluates or applies a model; its parameters are set in gin files.

  Args:
    tpu_job_name: without effect.
    tpu: "local", the name of a TPU, or its address, "grpc://10.0.0.2:8470".
    gcp_project: without effect.
    tpu_zone: without effect.
    model_dir: where checkpoints and results are.
    model_type: "bitransformer", "lm", "delimited_lm" or "aligned".
    vocabulary: one, or a pair for inputs and targets.
    train_dataset_fn: makes the training data; see `data.dataset_fn.DatasetFn`.
    eval_dataset_fn: makes the data of an evaluation; None for the same.
    dataset_split: the split to evaluate on; "train" stands for "validation",
      since training always reads "train", and nothing else does.
    autostack: without effect.
    eval_checkpoint_step: which checkpoints: see `get_checkpoint_iterator`.
    export_checkpoint_step: without effect.
    export_path: without effect.
    mode: "train", "eval", "perplexity_eval", "infer", "train_eval" or
      "compile".
    iterations_per_loop: the most steps between two looks at the clock.
    save_checkpoints_steps: steps between checkpoints.
    keep_checkpoint_max: how many of the newest to keep; None for all.
    eval_summary_dir: where results are written; None for a folder of
      `model_dir`.
    batch_size: sequences, or a pair of a method and a number; see
      `compute_batch_size`.
    train_steps: steps, or a function of batch size and sequence length.
    total_run_steps: the length of the run that the learning rate is planned
      for; None for `train_steps`.
    sequence_length: tokens per row, for all features or for each.
    mesh_shape: mesh dimensions, `"batch:2;model:4"`; none for one processor.
    mesh_devices: a device for each processor; None for a virtual mesh.
    layout_rules: `"batch:batch;d_ff:model"`.
    learning_rate_schedule: a rate, a schedule, or the factors of one.
    optimizer: a class of optimizers.
    predict_fn: replaces the model's own decoding: from the model, ids (batch,
      length) and the types of variables to ids.
    variable_filter: which variables are trained: a pattern for the start of the
      name, or a function of the variable.
    perplexity_eval_steps: evaluate on so many batches; None for the split.
    init_checkpoint: a checkpoint to begin with.
    ensemble_inputs: not supported.
    train_model_fn: without effect.
    skip_seen_data: without effect.
    seen_data_init_step: without effect.
    output_eval_examples: whether evaluation writes its examples.
    checkpoint_input_pipeline: without effect.
    eval_dir_suffix: is put behind the name of that folder, after an underscore.
    seed: of initial values, dropout and the order of the data.
    log_steps: steps between points of the curves, and lines of a log.
    skip_nonfinite_steps: leave out, and count, the steps whose loss or gradient
      is infinite or not a number, instead of stopping.
    strategy: "virtual", "placement", "mirrored", "multi_worker" or "tpu"; None
      to choose by what there is. See `devices.choose`.

  Raises:
    ValueError: a value makes no sense.
    LayoutError: mesh, layout and sizes do not fit each other.
  """
  given = locals()
  _note_parameters_without_effect(given)
  if ensemble_inputs:
    raise ValueError("run.ensemble_inputs: there are no ensembles yet")
  mesh = mtf.convert_to_shape(mesh_shape or "")
  tf_config = os.environ.get("TF_CONFIG")
  here = devices_here(tf_config)
  choice = choose(Wanted(mesh, here, mesh_devices, strategy, tpu, tf_config))
  machine = Machine(
    mesh_shape=mesh,
    layout_rules=mtf.convert_to_layout_rules(layout_rules or ""),
    devices=choice.devices if choice.kind is Kind.PLACEMENT else None,
    seed=seed,
    strategy=strategy_of(choice, mesh),
    line=choice.line,
  )
  row = lengths(sequence_length)
  size = compute_batch_size(
    row, machine.mesh_shape, machine.layout_rules, batch_size
  )
  steps = train_steps(size, row) if callable(train_steps) else train_steps
  rate = learning_rate_schedule
  training = Training(
    dataset_fn=train_dataset_fn,
    optimizer=optimizer,
    learning_rate=None if rate is None else schedule(rate),
    steps=steps,
    total_steps=steps if total_run_steps is None else total_run_steps,
    iterations_per_loop=iterations_per_loop,
    save_steps=save_checkpoints_steps,
    keep_checkpoints=keep_checkpoint_max,
    log_steps=log_steps,
    skip_nonfinite=skip_nonfinite_steps,
    variable_filter=variable_filter,
    init_checkpoint=init_checkpoint,
  )
  split = "validation" if dataset_split == "train" else dataset_split
  suffix = f"_{eval_dir_suffix}" if eval_dir_suffix else ""
  evaluation = Evaluation(
    dataset_fn=eval_dataset_fn or train_dataset_fn,
    split=split,
    checkpoint_step=eval_checkpoint_step,
    directory=eval_summary_dir or f"{model_dir}/{split}_eval{suffix}",
    max_batches=perplexity_eval_steps,
    write_examples=output_eval_examples,
    predict_fn=predict_fn,
  )
  settings = Settings(
    model_dir=model_dir,
    mode=Mode.from_name(mode),
    model_type=model_type,
    vocabulary=required(vocabulary),
    batch_size=size,
    sequence_length=row,
    machine=machine,
    training=training,
    evaluation=evaluation,
  )
  MODES[settings.mode](settings)


def _note_parameters_without_effect(given: Mapping[str, Any]) -> None:
  for name, (silent, reason) in NO_EFFECT.items():
    if given[name] not in (silent, None):
      logging.info("run.%s is without effect: %s.", name, reason)
