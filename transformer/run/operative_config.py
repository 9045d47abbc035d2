"""Leaves in the model's folder what gin really used."""

from __future__ import annotations

import gin
import tensorflow as tf

NAME = "operative_config.gin"


def save_operative_config(model_dir: str) -> None:
  """Writes the parameters that have been used so far, as a gin file."""
  tf.io.gfile.makedirs(model_dir)
  with tf.io.gfile.GFile(f"{model_dir}/{NAME}", "w") as file:
    file.write(gin.operative_config_str())
