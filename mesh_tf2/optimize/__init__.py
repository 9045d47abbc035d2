"""Optimizers: from gradients to assignments. All arithmetic is float32."""

from .adafactor import (
  AdafactorOptimizer,
  adafactor_decay_rate_adam,
  adafactor_decay_rate_pow,
  reduce_rms,
)
from .adam import AdamWeightDecayOptimizer
from .base import Optimizer
from .bias_corrected_adam import AdamOptimizer, AdamWOptimizer
from .clip import clip_by_global_norm, global_norm
from .guard import all_finite, only_if
from .hparams import adafactor_optimizer_from_hparams, make_optimizer
from .loss_scaling import LossScaling
from .momentum import MomentumOptimizer
from .moving_average import ExponentialMovingAverage
from .multi_rate import AdafactorWithMultiLRSchedule, AdamWithMultiLRSchedule
from .schedules import compute_lr_for_step, product_learning_rate
from .sgd import SgdOptimizer

__all__ = [
  "AdafactorOptimizer",
  "AdafactorWithMultiLRSchedule",
  "AdamOptimizer",
  "AdamWOptimizer",
  "AdamWeightDecayOptimizer",
  "AdamWithMultiLRSchedule",
  "ExponentialMovingAverage",
  "LossScaling",
  "MomentumOptimizer",
  "Optimizer",
  "SgdOptimizer",
  "adafactor_decay_rate_adam",
  "adafactor_decay_rate_pow",
  "adafactor_optimizer_from_hparams",
  "all_finite",
  "clip_by_global_norm",
  "compute_lr_for_step",
  "global_norm",
  "make_optimizer",
  "only_if",
  "product_learning_rate",
  "reduce_rms",
]
