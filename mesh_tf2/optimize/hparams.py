"""Optimizers from the hyperparameters of Tensor2Tensor."""

from __future__ import annotations

from typing import Any

from .adafactor import (
  AdafactorOptimizer,
  adafactor_decay_rate_adam,
  adafactor_decay_rate_pow,
)
from .base import Optimizer, Rate
from .sgd import SgdOptimizer


def make_optimizer(hparams: Any, lr: Rate) -> Optimizer:
  """The optimizer that `hparams.optimizer` names.

  Args:
    hparams: `optimizer` is "SGD" or "Adafactor"; for the latter see
      `adafactor_optimizer_from_hparams`.
    lr: the learning rate.

  Raises:
    ValueError: it has another name.
  """
  if hparams.optimizer == "SGD":
    return SgdOptimizer(lr)
  if hparams.optimizer == "Adafactor":
    return adafactor_optimizer_from_hparams(hparams, lr)
  raise ValueError(
    f"hparams.optimizer is {hparams.optimizer!r}; it can be 'SGD' or "
    "'Adafactor'. Construct any other one by its class in mtf.optimize"
  )


def adafactor_optimizer_from_hparams(
  hparams: Any, lr: Rate
) -> AdafactorOptimizer:
  """Adafactor, as set by the attributes of `hparams`.

  Args:
    hparams: has `optimizer_adafactor_decay_type`, "adam" or "pow";
      `optimizer_adafactor_beta2` for the one and
      `optimizer_adafactor_memory_exponent` for the other; and
      `optimizer_adafactor_multiply_by_parameter_scale`,
      `optimizer_adafactor_beta1`, `optimizer_adafactor_clipping_threshold` and
      `optimizer_adafactor_factored`.
    lr: the learning rate.

  Raises:
    ValueError: the decay is of another type.
  """
  decay_type = hparams.optimizer_adafactor_decay_type
  if decay_type == "adam":
    decay = adafactor_decay_rate_adam(hparams.optimizer_adafactor_beta2)
  elif decay_type == "pow":
    exponent = hparams.optimizer_adafactor_memory_exponent
    decay = adafactor_decay_rate_pow(exponent)
  else:
    raise ValueError(
      f"hparams.optimizer_adafactor_decay_type is {decay_type!r}; it can be "
      "'adam' or 'pow'"
    )
  return AdafactorOptimizer(
    multiply_by_parameter_scale=(
      hparams.optimizer_adafactor_multiply_by_parameter_scale
    ),
    learning_rate=lr,
    decay_rate=decay,
    beta1=hparams.optimizer_adafactor_beta1,
    clipping_threshold=hparams.optimizer_adafactor_clipping_threshold,
    factored=hparams.optimizer_adafactor_factored,
  )
