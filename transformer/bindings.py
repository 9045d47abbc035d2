"""Registers with gin everything that gin files can name.

Importing this module is enough. The language knows nothing of gin: what gin
files may name of it is registered here. Everything else registers itself when
it is imported, so that here it only has to be imported.
"""

from __future__ import annotations

from typing import Any

import gin

import mesh_tf2 as mtf
from mesh_tf2.data import configurables  # noqa: F401  registers
from mesh_tf2.passes.rewrites import rewrite_stack_variables

from . import schedules  # noqa: F401  registers
from .layers import (  # noqa: F401  registers
  enc_dec_attention,
  feed_forward,
  self_attention,
  span_positions,
  sublayers,
)
from .model import (  # noqa: F401  registers
  bitransformer,
  builder,
  layer_stack,
  sampling,
  search,
  unitransformer,
)
from .run import entry  # noqa: F401  registers, with all that it runs
from .vocab import embedding  # noqa: F401  registers

OPTIMIZE = "mesh_tf2.optimize"
LAYERS = "mesh_tf2.layers"
OPS = "mesh_tf2.ops"

adafactor_decay_rate_pow = gin.external_configurable(
  mtf.optimize.adafactor_decay_rate_pow, module=OPTIMIZE
)
adafactor_decay_rate_adam = gin.external_configurable(
  mtf.optimize.adafactor_decay_rate_adam, module=OPTIMIZE
)
setattr(  # noqa: B010  mypy does not know the method
  mtf.Graph,
  "rewrite_stack_variables",
  gin.external_configurable(rewrite_stack_variables, module=OPS),
)
compute_lr_for_step = gin.external_configurable(
  mtf.optimize.compute_lr_for_step, module=OPTIMIZE
)
for _optimizer in (
  mtf.optimize.AdamOptimizer,
  mtf.optimize.AdamWOptimizer,
  mtf.optimize.AdamWeightDecayOptimizer,
  mtf.optimize.ExponentialMovingAverage,
  mtf.optimize.LossScaling,
  mtf.optimize.MomentumOptimizer,
  mtf.optimize.SgdOptimizer,
):
  gin.external_configurable(_optimizer, module=OPTIMIZE)
gin.external_configurable(mtf.layers.clip_activation_gradient, module=LAYERS)
# The language asks these two whenever it makes a kernel, so that what gin files
# bind to them holds for every layer.
mtf.layers.set_default_kernel_initializer(
  gin.external_configurable(
    mtf.layers.VarianceScalingInitializer, module=LAYERS
  )
)
mtf.layers.set_unit_scaling(
  gin.external_configurable(mtf.layers.unit_scaling_convention, module=LAYERS)
)


@gin.configurable(module=OPTIMIZE)
class AdafactorOptimizer(mtf.optimize.AdafactorOptimizer):
  """Adafactor, whose default decay rate has what gin files bind to it."""

  def default_decay_rate(self) -> Any:
    """The rate that is used where none is given."""
    return adafactor_decay_rate_pow()


@gin.configurable(module=OPTIMIZE)
class AdafactorWithMultiLRSchedule(mtf.optimize.AdafactorWithMultiLRSchedule):
  """The same, whose rates have what gin files bind to them."""

  def default_decay_rate(self) -> Any:
    """The rate that is used where none is given."""
    return adafactor_decay_rate_pow()

  def rates_of(self, alt_lr_schedules: Any, learning_rate: Any) -> Any:
    """What `compute_lr_for_step` returns."""
    return compute_lr_for_step(alt_lr_schedules, learning_rate)


@gin.configurable(module=OPTIMIZE)
class AdamWithMultiLRSchedule(mtf.optimize.AdamWithMultiLRSchedule):
  """The same, whose rates have what gin files bind to them."""

  def rates_of(self, alt_lr_schedules: Any, learning_rate: Any) -> Any:
    """What `compute_lr_for_step` returns."""
    return compute_lr_for_step(alt_lr_schedules, learning_rate)
