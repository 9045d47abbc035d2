"""Layers: parameters and the operations that use them. No gin here."""

from .clip_gradient import clip_activation_gradient
from .dense import (
  DenseInitializer,
  VarianceScalingInitializer,
  dense,
  dense_product,
  get_dense_kernel_weights,
)
from .dense_relu_dense import dense_relu_dense
from .embedding import embedding, embedding_weights
from .losses import (
  sigmoid_cross_entropy_with_logits,
  softmax_cross_entropy_with_logits,
  weights_nonzero,
)
from .norms import layer_norm, rms_norm, rms_normalize
from .precision import at_least_float32

__all__ = [
  "DenseInitializer",
  "VarianceScalingInitializer",
  "at_least_float32",
  "clip_activation_gradient",
  "dense",
  "dense_product",
  "dense_relu_dense",
  "embedding",
  "embedding_weights",
  "get_dense_kernel_weights",
  "layer_norm",
  "rms_norm",
  "rms_normalize",
  "sigmoid_cross_entropy_with_logits",
  "softmax_cross_entropy_with_logits",
  "weights_nonzero",
]
