"""Trains a model up to a step, and keeps what is needed to go on from there."""

from __future__ import annotations

import math

import numpy as np
from absl import logging

import mesh_tf2 as mtf

from .checkpoints import Checkpoints, check_all_used, restore_run
from .context import Context, prepare
from .curves import Curves
from .initialize import initialize
from .loop import Metrics, StepLoop
from .operative_config import save_operative_config
from .progress import Progress, Window
from .settings import Settings
from .stops import StopRequest, non_finite, stop_requests
from .train_step import make_train_step
from .training_data import TrainingData


def train(settings: Settings) -> None:
  """Trains up to `settings.training.steps`, from the newest checkpoint on.

  Ctrl-C and SIGTERM end it after a checkpoint.

  Raises:
    NonFiniteLossError: loss or gradient is infinite or not a number, and such
      steps are not to be left out.
    CheckpointMismatchError: the newest checkpoint is of another model.
  """
  train_to_the_end(prepare(settings))


def train_to_the_end(context: Context) -> bool:
  """Trains; returns whether the last step was reached."""
  settings, program = context.settings, context.program
  checkpoints = Checkpoints(
    settings.model_dir, settings.training.keep_checkpoints
  )
  path = checkpoints.newest()
  if path is not None:
    program.restore(path)
    logging.info("going on from %s", path)
    _compare_seeds(program, settings.machine.seed)
  step, last = int(program.step), settings.training.steps
  if step >= last:
    logging.info(
      "%s: step %d is reached already, run.train_steps is %d; nothing to do",
      settings.model_dir,
      step,
      last,
    )
    return True
  return _Trainer(context, checkpoints, path).run()


def _compare_seeds(program: mtf.Program, wanted: int) -> None:
  if int(program.seed) != wanted:
    logging.warning(
      "run.seed is %d, and the checkpoint is of a run with seed %d, which is "
      "kept",
      wanted,
      int(program.seed),
    )


class _Trainer:
  """The parts of a run, and the loop over them."""

  def __init__(
    self, context: Context, checkpoints: Checkpoints, path: str | None
  ) -> None:
    self._program = program = context.program
    self._model_dir = context.settings.model_dir
    self._training = training = context.settings.training
    self._checkpoints = checkpoints
    self._skipped = 0
    self._data = TrainingData(context.settings, int(program.seed))
    step_fn = make_train_step(context)
    step_fn.build(self._data.batch_spec)
    if path is not None:
      check_all_used(program, path)
      self._skipped = restore_run(path, self._data)
    elif training.init_checkpoint:
      initialize(program, training.init_checkpoint)
    self._loop = StepLoop(
      step_fn,
      training.skip_nonfinite,
      training.iterations_per_loop,
      program.processes,
    )
    logging.info("%s", context.describe())
    writes = program.processes.is_first
    if writes:
      save_operative_config(self._model_dir)
    self._curves = Curves(self._model_dir if writes else None)
    self._progress = Progress(
      int(program.step), training.steps, training.log_steps
    )

  def run(self) -> bool:
    """Trains; returns whether the last step was reached."""
    try:
      with stop_requests() as request:
        step = self._until(request)
    finally:
      self._progress.close()
      self._curves.close()
      self._data.close()
    if step < self._training.steps:
      logging.warning(
        "stopped by %s at step %d; the same command goes on from there.",
        request.name or "another process",
        step,
      )
    return step >= self._training.steps

  def _until(self, request: StopRequest) -> int:
    """Trains to the last step or a stop; returns the step."""
    training, step = self._training, int(self._program.step)
    stops = (training.log_steps, training.save_steps, training.steps)
    while step < training.steps and not self._is_to_stop(request):
      metrics = self._loop.run(self._data.iterator, step, stops)
      step = int(self._program.step)
      self._look_at(step, metrics)
      if step % training.save_steps == 0:
        self._save()
    if step % training.save_steps:
      self._save()
    return step

  def _is_to_stop(self, request: StopRequest) -> bool:
    """Whether this process or another one was asked to stop."""
    return bool(self._program.processes.largest(int(bool(request))))

  def _look_at(self, step: int, metrics: Metrics) -> None:
    """Shows what happened, or stops if it was bad."""
    finite = metrics["finite"]
    skipped = int(np.sum(~finite))
    self._skipped += skipped
    if skipped and not self._training.skip_nonfinite:
      raise non_finite(step, self._checkpoints.newest())
    if skipped:
      logging.warning(
        "left out %d of the steps up to %d: the loss or a gradient was "
        "infinite or not a number (%d in all)",
        skipped,
        step,
        self._skipped,
      )
    loss = float(metrics["loss"][finite].mean()) if finite.any() else math.nan
    self._progress.show(Window(step, loss, int(metrics["tokens"].sum())))
    self._curves.add(metrics)
    if step % self._training.log_steps == 0:
      self._curves.write(step, self._skipped)

  def _save(self) -> None:
    self._curves.flush()
    self._checkpoints.save(self._program, self._data, self._skipped)
