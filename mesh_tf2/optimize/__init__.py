"""Optimizers: from gradients to assignments. All arithmetic is float32."""

from .adafactor import (
  AdafactorOptimizer,
  adafactor_decay_rate_adam,
  adafactor_decay_rate_pow,
  reduce_rms,
)
from .adam import AdamWeightDecayOptimizer
from .base import Optimizer
from .momentum import MomentumOptimizer
from .sgd import SgdOptimizer

__all__ = [
  "AdafactorOptimizer",
  "AdamWeightDecayOptimizer",
  "MomentumOptimizer",
  "Optimizer",
  "SgdOptimizer",
  "adafactor_decay_rate_adam",
  "adafactor_decay_rate_pow",
  "reduce_rms",
]
