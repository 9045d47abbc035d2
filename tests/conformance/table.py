"""The conformance table, and what stands outside of it."""

from tests.conformance import (
  rows_convolution,
  rows_cumulative,
  rows_elementwise,
  rows_indexing,
  rows_linear,
  rows_order,
  rows_segments,
  rows_sources,
  rows_users_miss,
)

ROWS = [
  *rows_elementwise.ROWS,
  *rows_linear.ROWS,
  *rows_convolution.ROWS,
  *rows_indexing.ROWS,
  *rows_order.ROWS,
  *rows_segments.ROWS,
  *rows_cumulative.ROWS,
  *rows_sources.ROWS,
  *rows_users_miss.ROWS,
]

# Functions that make tensors, and are tested in a file of their own.
ELSEWHERE = {
  "assign": "tests/conformance/variables_test.py",
  "assign_add": "tests/conformance/variables_test.py",
  "assign_add_slice": "tests/conformance/variables_test.py",
  "assign_slice": "tests/conformance/variables_test.py",
  "assign_sub": "tests/conformance/variables_test.py",
  "assign_sub_slice": "tests/conformance/variables_test.py",
  "cond": "tests/autodiff/cond_test.py",
  "copy_to_mesh": "tests/ops/between_meshes_test.py",
  "custom_gradient": "tests/autodiff/custom_gradient_test.py",
  "gradients": "tests/autodiff/gradients_test.py",
  "import_laid_out_tensor": "tests/ops/source_test.py",
  "Print": "tests/ops/effects_test.py",
  "print_tensors": "tests/ops/effects_test.py",
  "read_variable": "tests/conformance/variables_test.py",
  "recompute_grad": "tests/autodiff/custom_gradient_test.py",
  "scan": "tests/autodiff/loop_gradient_test.py",
  "serialize_training_step": "tests/passes/microbatches_test.py",
  "while_loop": "tests/autodiff/while_loop_test.py",
}

# Functions of names, shapes, layouts and numbers.
NO_TENSORS = {
  "anonymous_shape",
  "binary_arguments_to_tensors",
  "binary_reduction_fn",
  "combined_dimension",
  "compatible_lazy_allreduce_sums",
  "convert_args_to_laid_out_tensors",
  "convert_to_dimension",
  "convert_to_layout_rules",
  "convert_to_shape",
  "is_subsequence",
  "list_product",
  "log_variable_sizes",
  "parallel",
  "pnum_to_group",
  "pnum_to_processor_coordinates",
  "pnum_to_processor_coordinates_nd",
  "pool_fn",
  "pretty_print_counters",
  "processor_coordinates_to_pnum",
  "processor_coordinates_to_pnum_map_nd",
  "processor_groups",
  "reduction_fn",
  "tensor_dim_to_mesh_dim_size",
  "tensor_dim_to_size_per_split",
  "transpose_list_of_lists",
  "verify_no_new_dims",
}
