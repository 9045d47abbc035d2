"""The model of a type, in the sizes that gin files bind."""

from __future__ import annotations

from typing import Any

import mesh_tf2 as mtf

from ..model.builder import make_bitransformer, make_layer_stack
from ..model.unitransformer import Unitransformer

MODEL_TYPES = ("bitransformer", "lm", "delimited_lm", "aligned")


def build_model(
  model_type: str,
  input_vocab_size: int,
  output_vocab_size: int,
  layout_rules: mtf.LayoutRules | str | None = None,
  mesh_shape: mtf.Shape | str | None = None,
) -> Any:
  """A model without variables: they are made where it is called.

  Args:
    model_type: `"bitransformer"` translates inputs to targets; `"lm"` predicts
      targets one after another; so does `"delimited_lm"`, of which the
      beginning are inputs; `"aligned"` predicts a target for each input.
    input_vocab_size: how many ids it reads.
    output_vocab_size: how many ids it predicts.
    layout_rules: for layers that look at them.
    mesh_shape: for layers that look at it.

  Returns:
    A `Bitransformer` or a `Unitransformer`.

  Raises:
    ValueError: there is no such type.
  """
  if model_type not in MODEL_TYPES:
    raise ValueError(
      f"run.model_type: there is no model type {model_type!r}; take one of "
      f"{', '.join(MODEL_TYPES)}"
    )
  if model_type == "bitransformer":
    return make_bitransformer(
      input_vocab_size=input_vocab_size,
      output_vocab_size=output_vocab_size,
      layout=layout_rules,
      mesh_shape=mesh_shape,
    )
  return Unitransformer(
    make_layer_stack(),
    input_vocab_size=input_vocab_size,
    output_vocab_size=output_vocab_size,
    autoregressive=model_type != "aligned",
    layout=layout_rules,
    mesh_shape=mesh_shape,
  )
