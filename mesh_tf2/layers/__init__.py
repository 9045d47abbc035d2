"""Layers: parameters and the operations that use them. No gin here."""

from .annealed_dropout import annealed_dropout
from .attention import (
  dot_product_attention,
  multihead_attention,
  multihead_attention_params,
  multihead_attention_vars,
)
from .attention_masks import (
  attention_bias_local_2d_block,
  attention_bias_local_block,
  attention_mask_autoregressive,
  attention_mask_ignore_padding,
  attention_mask_same_segment,
  rename_length_to_memory_length,
)
from .batch_norm import batch_norm
from .block_attention import (
  local_1d_halo_exchange,
  local_self_attention_spatial_blocks,
)
from .clip_gradient import (
  clip_activation_gradient,
  summary_for_clip_activation_gradient,
)
from .convolution import (
  conv1d,
  conv2d,
  conv2d_transpose,
  conv3d,
  conv3d_transpose,
)
from .convolution_blocks import (
  conv2d_transpose_with_blocks,
  conv2d_with_blocks,
  conv3d_transpose_with_blocks,
  conv3d_with_blocks,
)
from .correlation import corr
from .dense import dense, dense_product, get_dense_kernel_weights
from .dense_initializers import (
  DenseInitializer,
  VarianceScalingInitializer,
  set_default_kernel_initializer,
)
from .dense_relu_dense import dense_relu_dense
from .embedding import embedding, embedding_weights
from .incremental_attention import (
  multihead_encdec_attention_incremental,
  multihead_self_attention_incremental,
)
from .jitter import multiplicative_jitter
from .local_attention import (
  masked_local_attention_1d,
  masked_local_attention_1d_incremental,
)
from .local_attention_2d import (
  local_2d_halo_exchange,
  local_2d_self_attention_spatial_blocks,
)
from .losses import (
  sigmoid_cross_entropy_with_logits,
  softmax_cross_entropy_with_logits,
  weights_nonzero,
)
from .memory_compressed_attention import (
  compress_mean,
  multihead_self_attention_memory_compressed,
)
from .norms import layer_norm, rms_norm, rms_normalize
from .pooling import avg_pool2d, avg_pool3d, max_pool2d, max_pool3d
from .precision import at_least_float32
from .reversible import reversible_half_residual_and_swap
from .separable_convolution import separable_conv1d
from .unit_scaling import (
  set_unit_scaling,
  unit_scaling,
  unit_scaling_convention,
  us_einsum,
)

__all__ = [
  "DenseInitializer",
  "VarianceScalingInitializer",
  "annealed_dropout",
  "at_least_float32",
  "attention_bias_local_2d_block",
  "attention_bias_local_block",
  "attention_mask_autoregressive",
  "attention_mask_ignore_padding",
  "attention_mask_same_segment",
  "avg_pool2d",
  "avg_pool3d",
  "batch_norm",
  "clip_activation_gradient",
  "compress_mean",
  "conv1d",
  "conv2d",
  "conv2d_transpose",
  "conv2d_transpose_with_blocks",
  "conv2d_with_blocks",
  "conv3d",
  "conv3d_transpose",
  "conv3d_transpose_with_blocks",
  "conv3d_with_blocks",
  "corr",
  "dense",
  "dense_product",
  "dense_relu_dense",
  "dot_product_attention",
  "embedding",
  "embedding_weights",
  "get_dense_kernel_weights",
  "layer_norm",
  "local_1d_halo_exchange",
  "local_2d_halo_exchange",
  "local_2d_self_attention_spatial_blocks",
  "local_self_attention_spatial_blocks",
  "masked_local_attention_1d",
  "masked_local_attention_1d_incremental",
  "max_pool2d",
  "max_pool3d",
  "multihead_attention",
  "multihead_attention_params",
  "multihead_attention_vars",
  "multihead_encdec_attention_incremental",
  "multihead_self_attention_incremental",
  "multihead_self_attention_memory_compressed",
  "multiplicative_jitter",
  "rename_length_to_memory_length",
  "reversible_half_residual_and_swap",
  "rms_norm",
  "rms_normalize",
  "separable_conv1d",
  "set_default_kernel_initializer",
  "set_unit_scaling",
  "sigmoid_cross_entropy_with_logits",
  "softmax_cross_entropy_with_logits",
  "summary_for_clip_activation_gradient",
  "unit_scaling",
  "unit_scaling_convention",
  "us_einsum",
  "weights_nonzero",
]
