"""Mesh-TensorFlow: named dimensions and layouts, on TensorFlow 2.

    import mesh_tf2 as mtf

Every public name is exported here by hand. See ARCHITECTURE.md for the rooms
behind them.
"""

from .core import quiet as _quiet

try:
  with _quiet.native_messages_hidden():
    import tensorflow as _tf
except ImportError as _e:
  raise ImportError(
    "mesh_tf2 needs TensorFlow, whose wheel differs by machine. Install one of "
    "mesh_tf2[cpu], mesh_tf2[gpu] or mesh_tf2[tpu], for example with "
    "pip install 'mesh_tf2[cpu]'"
  ) from _e

# isort: off
# Floor 1: names, shapes, layouts, the graph.
from .core.errors import (
  LayoutError as LayoutError,
  LayoutWarning as LayoutWarning,
  ShapeError as ShapeError,
  VariableError as VariableError,
)
from .core.graph import (
  Graph as Graph,
  Mesh as Mesh,
  Operation as Operation,
  Tensor as Tensor,
)
from .core.layout import (
  LayoutRules as LayoutRules,
  TensorLayout as TensorLayout,
  convert_to_layout_rules as convert_to_layout_rules,
  pnum_to_group as pnum_to_group,
  pnum_to_processor_coordinates as pnum_to_processor_coordinates,
  processor_coordinates_to_pnum as processor_coordinates_to_pnum,
  processor_groups as processor_groups,
  tensor_dim_to_mesh_dim_size as tensor_dim_to_mesh_dim_size,
  tensor_dim_to_size_per_split as tensor_dim_to_size_per_split,
)
from .core.shape import (
  Dimension as Dimension,
  Shape as Shape,
  anonymous_shape as anonymous_shape,
  combined_dimension as combined_dimension,
  convert_to_dimension as convert_to_dimension,
  convert_to_shape as convert_to_shape,
  is_subsequence as is_subsequence,
  list_product as list_product,
  verify_no_new_dims as verify_no_new_dims,
)

# Floor 2: meshes and lowering.
from .spmd import (
  placement as _placement,
  placing as _placing,
  simd_mesh_impl as _simd_mesh_impl,
  virtual as _virtual,
)
from .spmd.cost_report import Cost as Cost
from .spmd.lazy import (
  LazyAllreduceSum as LazyAllreduceSum,
  LazyLaidOutTensor as LazyLaidOutTensor,
  compatible_lazy_allreduce_sums as compatible_lazy_allreduce_sums,
  convert_args_to_laid_out_tensors as convert_args_to_laid_out_tensors,
)
from .spmd.log import (
  log_variable_sizes as log_variable_sizes,
  pretty_print_counters as pretty_print_counters,
)
from .spmd.lowering import Lowering as Lowering
from .spmd.topology import (
  pnum_to_processor_coordinates_nd as pnum_to_processor_coordinates_nd,
  processor_coordinates_to_pnum_map_nd as processor_coordinates_to_pnum_map_nd,
)
from .spmd.mesh import MeshImpl as MeshImpl
from .spmd.parallel import (
  binary_reduction_fn as binary_reduction_fn,
  parallel as parallel,
  reduction_fn as reduction_fn,
  transpose_list_of_lists as transpose_list_of_lists,
)

# Floor 3: operations.
from .ops import initializers as initializers
from .ops import numpy_converter as _numpy_converter
from .ops import operators as _operators
from .ops.arg_extremes import (
  argmax as argmax,
  argmin as argmin,
  top_1 as top_1,
)
from .ops.binary import (
  add as add,
  add_n as add_n,
  binary_arguments_to_tensors as binary_arguments_to_tensors,
  binary_op_with_broadcasting as binary_op_with_broadcasting,
  divide as divide,
  equal as equal,
  floordiv as floordiv,
  greater as greater,
  greater_equal as greater_equal,
  less as less,
  less_equal as less_equal,
  logical_and as logical_and,
  logical_or as logical_or,
  logical_xor as logical_xor,
  maximum as maximum,
  minimum as minimum,
  mod as mod,
  multiply as multiply,
  not_equal as not_equal,
  squared_difference as squared_difference,
  sub as sub,
  where as where,
)
from .ops.bitwise import (
  bitwise_and as bitwise_and,
  bitwise_not as bitwise_not,
  bitwise_or as bitwise_or,
  bitwise_xor as bitwise_xor,
  left_shift as left_shift,
  right_shift as right_shift,
)
from .ops.between_meshes import copy_to_mesh as copy_to_mesh
from .ops.clip import clip as clip
from .ops.cumulative import cumprod as cumprod, cumsum as cumsum
from .ops.dynamic_shift import dynamic_shift as dynamic_shift
from .ops.diagonal import diagonal as diagonal
from .ops.effects import (
  barrier as barrier,
  depend as depend,
  print_tensors as print_tensors,
  scalar_summary as scalar_summary,
  stop_gradient as stop_gradient,
)
from .ops.elementwise import cast as cast
from .ops.extremes import (
  reduce_all as reduce_all,
  reduce_any as reduce_any,
  reduce_max as reduce_max,
  reduce_min as reduce_min,
)
from .ops.gather import gather as gather, scatter_add as scatter_add
from .ops.halo import (
  halo_exchange as halo_exchange,
  left_halo_exchange as left_halo_exchange,
)
from .ops.linear.concat_split import (
  concat as concat,
  split as split,
  stack as stack,
  unstack as unstack,
)
from .ops.linear.convolution.by_rank import (
  conv2d_backprop_filter as conv2d_backprop_filter,
  conv2d_backprop_input as conv2d_backprop_input,
  conv2d_transpose_backprop_filter as conv2d_transpose_backprop_filter,
  conv2d_transpose_backprop_input as conv2d_transpose_backprop_input,
  conv3d_backprop_filter as conv3d_backprop_filter,
  conv3d_backprop_input as conv3d_backprop_input,
  conv3d_transpose_backprop_filter as conv3d_transpose_backprop_filter,
  conv3d_transpose_backprop_input as conv3d_transpose_backprop_input,
)
from .ops.linear.convolution.conv import (
  conv as conv,
  conv_backprop_filter as conv_backprop_filter,
  conv_backprop_input as conv_backprop_input,
  conv_transpose as conv_transpose,
)
from .ops.linear.einsum import (
  einsum as einsum,
  matmul as matmul,
  transpose as transpose,
)
from .ops.linear.reshape import (
  anonymize as anonymize,
  rename_dimension as rename_dimension,
  replace_dimensions as replace_dimensions,
  reshape as reshape,
)
from .ops.linear.shift import shift as shift
from .ops.linear.slice_pad import (
  mtf_slice as mtf_slice,
  pad as pad,
)
from .ops.linear.sum_broadcast import (
  broadcast as broadcast,
  reduce_sum as reduce_sum,
)
from .ops.pool import (
  avg_pool as avg_pool,
  max_pool as max_pool,
  pool_backprop as pool_backprop,
  pool_fn as pool_fn,
)
from .ops.power import mtf_pow as mtf_pow
from .ops.products import reduce_prod as reduce_prod
from .ops.random import (
  dropout as dropout,
  random_normal as random_normal,
  random_uniform as random_uniform,
)
from .ops.reductions import (
  norm as norm,
  pool_tensor_1d as pool_tensor_1d,
  reduce_first as reduce_first,
  reduce_mean as reduce_mean,
  reduce_std as reduce_std,
  reduce_variance as reduce_variance,
  stride_tensor_1d as stride_tensor_1d,
)
from .ops.sampling import (
  categorical as categorical,
  sample_with_temperature as sample_with_temperature,
)
from .ops.segment import (
  segment_max as segment_max,
  segment_min as segment_min,
  segment_sum as segment_sum,
)
from .ops.slicewise import (
  SlicewiseOperation as SlicewiseOperation,
  cwise as cwise,
  slicewise as slicewise,
)
from .ops.softmax import (
  log_softmax as log_softmax,
  reduce_logsumexp as reduce_logsumexp,
  softmax as softmax,
)
from .ops.sort import argsort as argsort, sort as sort
from .ops.source import (
  constant as constant,
  import_fully_replicated as import_fully_replicated,
  import_laid_out_tensor as import_laid_out_tensor,
  import_tf_tensor as import_tf_tensor,
  mtf_range as mtf_range,
  one_hot as one_hot,
  ones as ones,
  ones_like as ones_like,
  zeros as zeros,
  zeros_like as zeros_like,
)
from .ops.top_k import (
  nth_largest_element as nth_largest_element,
  nth_smallest_element as nth_smallest_element,
  top_k as top_k,
)
from .ops.trigonometry import (
  acos as acos,
  acosh as acosh,
  asin as asin,
  asinh as asinh,
  atan as atan,
  atan2 as atan2,
  atanh as atanh,
  cosh as cosh,
  sinh as sinh,
  tan as tan,
)
from .ops.unary import (
  ceil as ceil,
  cos as cos,
  elu as elu,
  erf as erf,
  exp as exp,
  expm1 as expm1,
  floor as floor,
  gelu as gelu,
  identity as identity,
  isfinite as isfinite,
  isinf as isinf,
  isnan as isnan,
  leaky_relu as leaky_relu,
  log as log,
  log1p as log1p,
  logical_not as logical_not,
  mtf_abs as mtf_abs,
  negative as negative,
  reciprocal as reciprocal,
  relu as relu,
  round as round,
  rsqrt as rsqrt,
  selu as selu,
  sigmoid as sigmoid,
  sign as sign,
  sin as sin,
  softplus as softplus,
  sqrt as sqrt,
  square as square,
  squared_relu as squared_relu,
  swish as swish,
  tanh as tanh,
  to_bfloat16 as to_bfloat16,
  to_float as to_float,
  to_int32 as to_int32,
)
from .ops.stacked_variable import StackedVariable as StackedVariable
from .ops.variables import (
  Assign as Assign,
  Variable as Variable,
  VariableDType as VariableDType,
  assign as assign,
  assign_add as assign_add,
  assign_add_slice as assign_add_slice,
  assign_slice as assign_slice,
  assign_sub as assign_sub,
  assign_sub_slice as assign_sub_slice,
  get_variable as get_variable,
  read_variable as read_variable,
)

# Floor 4: gradients.
from .autodiff.cond import cond as cond
from .autodiff.custom_gradient import (
  custom_gradient as custom_gradient,
  recompute_grad as recompute_grad,
)
from .autodiff.gradients import gradients as gradients
from .autodiff.scan import scan as scan
from .autodiff.while_loop import while_loop as while_loop

# Floor 6: layers.
from . import layers as layers

# Floor 5: from graphs to graphs.
from .passes import rewrites as _rewrites
from .passes.microbatches import (
  serialize_training_step as serialize_training_step,
)

# Floor 7: programs.
from . import decode as _decode
from . import optimize as optimize
from .program import Program as Program, ProgramFunction as ProgramFunction
from . import tpu as tpu

# The original's names of these; some hide a builtin, as they do there.
abs = mtf_abs
clip_by_value = clip
pow = mtf_pow
prod = reduce_prod
range = mtf_range
slice = mtf_slice
Print = print_tensors
beam_search = _decode
placement_mesh_impl = _placement
simd_mesh_impl = _simd_mesh_impl
test_utils = _numpy_converter
utils = _placing
virtual_mesh_impl = _virtual
