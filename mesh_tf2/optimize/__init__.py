"""Optimizers: from gradients to assignments. All arithmetic is float32."""

from .adafactor import (
  AdafactorOptimizer as AdafactorOptimizer,
  adafactor_decay_rate_adam as adafactor_decay_rate_adam,
  adafactor_decay_rate_pow as adafactor_decay_rate_pow,
  reduce_rms as reduce_rms,
)
from .adam import AdamWeightDecayOptimizer as AdamWeightDecayOptimizer
from .base import Optimizer as Optimizer
from .momentum import MomentumOptimizer as MomentumOptimizer
from .sgd import SgdOptimizer as SgdOptimizer
