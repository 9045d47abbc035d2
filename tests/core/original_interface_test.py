"""Names, parameters and members of the original's language are here, too.

Helpers, classes and optimizers; operations and layers are in `api_test.py`.
"""

import inspect

import pytest

import mesh_tf2 as mtf
from mesh_tf2.transformer import bindings  # noqa: F401  all of it imports

# A name and its parameters, in order; `*` and `**` before those of any number.
PARAMETERS = """
  Assign                      variables new_values assign_fn name
  Dimension                   name size
  Graph
  LayoutRules                 pairs
  LazyAllreduceSum            mesh_impl laid_out_input mesh_axes add_counter_fn
  LazyLaidOutTensor           to_laid_out_tensor_fn slice_shape
  Lowering                    graph mesh_to_impl autostack log_file
  Mesh                        graph name variable_placer
  MeshImpl                    shape layout_rules
  Operation                   inputs mesh name
  Shape                       dims
  SlicewiseOperation          tf_fn inputs output_shapes output_dtypes
                              splittable_dims grad_function name
  StackedVariable             vs
  Tensor                      operation shape dtype name index
  TensorLayout                tensor_axis_to_mesh_axis
  Variable                    mesh name shape dtype initializer trainable
  VariableDType               master_dtype slice_dtype activation_dtype

  Print                       x data message **kwargs
  anonymous_shape             shape
  assign                      var new_val assign_fn name
  assign_add                  var new_val
  assign_add_slice            variable slice_var val
  assign_slice                variable slice_var val
  assign_sub                  var new_val
  assign_sub_slice            variable slice_var val
  binary_reduction_fn         reduction_fn_string
  combined_dimension          dims name
  compatible_lazy_allreduce_sums  xs
  convert_args_to_laid_out_tensors  xs
  convert_to_dimension        d
  convert_to_layout_rules     x
  convert_to_shape            x
  custom_gradient             fn grad_fn explicit_inputs
  cwise                       tf_fn xs output_dtype grad_function name
  depend                      x dependencies
  get_variable                mesh name shape dtype master_dtype slice_dtype
                              activation_dtype initializer trainable **kwargs
  gradients                   ys xs grad_ys operations
  is_subsequence              short_seq long_seq
  list_product                l
  log_variable_sizes          var_list tag verbose mesh_to_impl log_file
  parallel                    devices fn *args **kwargs
  pnum_to_group               mesh_shape group_dims pnum
  pnum_to_processor_coordinates  mesh_shape pnum
  pretty_print_counters       counters
  processor_coordinates_to_pnum  mesh_shape coord
  processor_groups            mesh_shape group_dims
  read_variable               var
  recompute_grad              fn explicit_inputs control_dependencies
  reduction_fn                reduction_fn_string
  replace_dimensions          tensor_or_shape old_dim_or_dims new_dim_or_dims
  scalar_summary              name x
  serialize_training_step     features model_fn batch_dim num_splits
  slicewise                   tf_fn xs output_shape output_dtype
                              splittable_dims grad_function name
  stop_gradient               x
  tensor_dim_to_mesh_dim_size   layout mesh_shape tensor_dim
  tensor_dim_to_size_per_split  layout mesh_shape tensor_dim
  transpose_list_of_lists     lol
  verify_no_new_dims          input_shapes output_shape
  while_loop                  cond_fn body_fn inputs num_loop_vars
                              has_accumulators **kwargs

  optimize.AdafactorOptimizer  multiply_by_parameter_scale learning_rate
                              decay_rate beta1 clipping_threshold factored
                              epsilon1 epsilon2 min_dim_size_to_factor
                              stacked_dim_names exclude_from_parameter_scale
  optimize.AdafactorWithMultiLRSchedule  variable_search alt_lr_schedules
                              **kwargs
  optimize.AdamWeightDecayOptimizer  learning_rate weight_decay_rate beta_1
                              beta_2 epsilon exclude_from_weight_decay
  optimize.AdamWithMultiLRSchedule  variable_search alt_lr_schedules **kwargs
  optimize.MomentumOptimizer  learning_rate momentum
  optimize.SgdOptimizer       learning_rate
  optimize.adafactor_decay_rate_adam  beta2
  optimize.adafactor_decay_rate_pow  exponent offset
  optimize.adafactor_optimizer_from_hparams  hparams lr
  optimize.compute_lr_for_step  schedules learning_rate train_steps
  optimize.make_optimizer     hparams lr
  optimize.product_learning_rate  step total_train_steps factors offset
  optimize.reduce_rms         x **kwargs

  placement_mesh_impl.PlacementMeshImpl  shape layout devices
  placement_mesh_impl.allconcat_ring  xs devices concat_axis
  placement_mesh_impl.allreduce_ring  xs devices reduction_fn_string
  placement_mesh_impl.allreduce_ring_single_shard  xs devices
                              reduction_fn_string
  placement_mesh_impl.alltoall_pointtwise  xs devices split_axis concat_axis
  placement_mesh_impl.alltoall_ring  xs devices split_axis concat_axis

  utils.BalancedVariablePlacer  devices init_usage
  utils.topology_rank         topology
  test_utils.NumpyConverter
"""

# Of a class: methods with their parameters, then properties and attributes.
MEMBERS = """
  Shape           rename_dimension(old_name new_name)
                  resize_dimension(name new_size)
                  get_dim_by_name(name) cumprod_to_tensor_axis(cumprod)
                  dims ndims to_integer_list size to_string cumprod
                  dimension_names
  LayoutRules     tensor_dimension_to_mesh_axis(tensor_dimension mesh_shape)
                  tensor_layout(tensor_shape mesh_shape)
                  mesh_dimension_name_to_tensor_dimension_names(
                  mesh_dimension_name)
  TensorLayout    mesh_axis_to_tensor_axis(mesh_ndims)
                  tensor_axis_to_mesh_axis is_fully_replicated
  Graph           unique_name(name mark_as_used)
                  rewrite_stack_variables(max_combined_variable_size
                  max_combined_slice_size mesh_to_impl)
                  combine_assignments(assignments)
                  make_variables_untrainable(variables)
                  clone_operations(ops input_mapping) capture_operations(fn)
                  operations trainable_variables all_variables to_string
                  name_to_variable captured_variable_scope
  Lowering        mesh_impl(m) export_to_tf_tensor(x) lowered_operation(op)
                  copy_masters_to_slices() copy_slices_to_masters()
                  add_counter(key value) laid_out_size(tensor)
                  set_tensor_lowering(tensor laid_out_tensor)
                  verify_slice_shapes(tensor laid_out_tensor) autostack()
                  counters graph mesh_to_impl tensors variables
  Mesh            graph variable_placer_fn
  MeshImpl        tensor_dimension_to_mesh_axis(tensor_dimension)
                  tensor_layout(arg) mesh_axis_to_cumprod(tensor_shape)
                  slice_shape(tensor_shape) slice_begin(tensor_shape pnum)
                  slice_size(tensor_shape) laid_out_size(tensor_shape)
                  slicewise(fn *inputs) slicewise_delay_allreduce(fn *inputs)
                  Print(x data message **kwargs)
                  allreduce(x mesh_axes reduction_fn_string)
                  allsplit(x mesh_axis split_axis which)
                  allconcat(x mesh_axis concat_axis)
                  alltoall(x mesh_axis split_axis concat_axis)
                  receive(x mesh_axis source_pcoord)
                  shift_by_n_processors(x mesh_axis offset wrap)
                  laid_out_pnum() laid_out_pcoord(mesh_axis)
                  laid_out_slice_num(tensor_shape)
                  broadcast_impl(old_slices old_shape new_shape)
                  make_slices(tf_tensor tensor_shape)
                  combine_slices(slices tensor_shape device)
                  export_to_tf_tensor(x laid_out_x) import_tf_tensor(x tf_x)
                  einsum(equation *slices) LaidOutTensor LaidOutVariable
                  shape ndims layout_rules size supports_control_dependencies
  LazyAllreduceSum  to_laid_out_tensor() laid_out_input mesh_axes slice_shape
  LazyLaidOutTensor to_laid_out_tensor() slice_shape
  Tensor          shape size mesh graph operation dtype name to_string
  Operation       graph mesh name inputs outputs splittable_dims
                  unsplittable_dims to_string has_gradient gradient(grad_ys)
                  lower(lowering)
  Variable        value shape size dtype master_dtype slice_dtype
                  activation_dtype trainable
  StackedVariable value shape size dtype master_dtype slice_dtype
                  activation_dtype trainable original_names
  VariableDType   master_dtype slice_dtype activation_dtype
  Assign          assign_fn variables
  optimize.Optimizer  apply_grads(grads variables) apply_grad(grad var)
  optimize.SgdOptimizer  lr
  optimize.MomentumOptimizer  lr momentum
  test_utils.NumpyConverter  convert_np_array_to_mtf_tensor(x dim_names dtype)
                  convert_mtf_tensor_to_np_array(mtf_tensor)
                  convert_mtf_tensor_to_tf_tensor(mtf_tensor) graph mesh
  utils.BalancedVariablePlacer  device_function(var)
"""


def rows(text):
  """From a name that begins a line of two spaces to what follows."""
  found = {}
  for line in text.splitlines():
    words = line.replace("(", " ( ").replace(")", " ) ").split()
    if line.startswith("  ") and not line.startswith("   "):
      name = words.pop(0)
      found[name] = []
    if words:
      found[name] += words
  return found


def find(path):
  value = mtf
  for part in path.split("."):
    value = getattr(value, part)
  return value


def parameters(function):
  marks = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
  }
  try:
    found = inspect.signature(function).parameters.values()
  except (TypeError, ValueError):
    return []
  return [marks.get(p.kind, "") + p.name for p in found]


@pytest.mark.parametrize(("name", "wanted"), rows(PARAMETERS).items())
def test_parameters_come_in_the_order_of_the_original(name, wanted):
  own = parameters(find(name))
  if wanted[-1:] == ["**kwargs"] and "**kwargs" not in own:
    wanted = wanted[:-1]  # all that anyone gives is named here
  named = [p for p in own if p in wanted]
  assert named == wanted
  assert own[: len(wanted)] == wanted or own[-1].startswith("*")


def members(words):
  """Each member, and its parameters if it is a method."""
  found = {}
  name, inside = None, False
  for word in words:
    if word == "(":
      found[name], inside = [], True
    elif word == ")":
      inside = False
    elif inside:
      found[name].append(word)
    else:
      name = word
      found[name] = None
  return found


def example(name):
  """A class, or an object where members are made by the constructor."""
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  impl = mtf.placement_mesh_impl.PlacementMeshImpl("", "", [""])
  w, v = (mtf.get_variable(mesh, n, "a:2") for n in "wv")
  makers = {
    "Graph": lambda: mesh.graph,
    "Lowering": lambda: mtf.Lowering(mesh.graph, {mesh: impl}),
    "MeshImpl": lambda: impl,
    "LazyAllreduceSum": lambda: mtf.LazyAllreduceSum(
      impl, impl.import_tensor(0.0, mtf.Shape([])), [0]
    ),
    "Tensor": lambda: w,
    "Operation": lambda: w.operation,
    "Variable": lambda: w.operation,
    "StackedVariable": lambda: mtf.StackedVariable([w.operation, v.operation]),
    "VariableDType": mtf.VariableDType,
    "Assign": lambda: mtf.assign(w, v),
    "test_utils.NumpyConverter": mtf.test_utils.NumpyConverter,
    "optimize.SgdOptimizer": lambda: mtf.optimize.SgdOptimizer(0.1),
  }
  return makers[name]() if name in makers else find(name)


@pytest.mark.parametrize(("name", "words"), rows(MEMBERS).items())
def test_classes_have_the_members_of_the_original(name, words):
  owner = example(name)
  for member, wanted in members(words).items():
    assert hasattr(owner, member), member
    if wanted is not None:
      own = [p for p in parameters(getattr(owner, member)) if p != "self"]
      assert len(own) >= len(wanted), (member, own)


# What an argument means.


def test_an_assignment_is_told_of_its_variable():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  w = mtf.get_variable(mesh, "w", "a:4", initializer=2.0)
  seen = []

  def double_if_trainable(variable, slice_var, val):
    seen.append(variable)
    return slice_var * 2 + val if variable.trainable else val

  op = mtf.assign(w, mtf.ones_like(w), double_if_trainable)
  impl = mtf.virtual_mesh_impl.VirtualMeshImpl("x:2", "a:x")
  mtf.Lowering(mesh.graph, {mesh: impl}).lowered_operation(op)
  assert set(seen) == {w.operation}
  assert impl.variable_store["w"].read().value.numpy().tolist() == [[5, 5]] * 2


def test_what_tensorflow_takes_of_a_variable_is_taken_and_typing_errors_not():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  mtf.get_variable(mesh, "w", "a:4", use_resource=True, collections=None)
  with pytest.raises(
    TypeError, match=r"no argument 'initialiser' \(did you mean \"initializer\""
  ):
    mtf.get_variable(mesh, "v", "a:4", initialiser=0.0)


def test_a_slicewise_operation_is_one_that_users_can_construct():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  x = mtf.ones(mesh, "a:4 b:2")
  a = x.shape[0]
  op = mtf.SlicewiseOperation(
    lambda x: (x + 1, x[:, 0]), [x], [x.shape, [a]], [x.dtype, x.dtype], [a]
  )
  assert op.splittable_dims == {"a"}
  assert op.unsplittable_dims == {"b"}
  impl = mtf.placement_mesh_impl.PlacementMeshImpl("x:2", "a:x", [""] * 2)
  lowering = mtf.Lowering(mesh.graph, {mesh: impl})
  whole = [lowering.export_to_tf_tensor(y).numpy() for y in op.outputs]
  assert whole[0].tolist() == [[2, 2]] * 4
  assert whole[1].tolist() == [1] * 4
  with pytest.raises(mtf.LayoutError, match="along 'b'"):
    mtf.Lowering(
      mesh.graph,
      {mesh: mtf.virtual_mesh_impl.VirtualMeshImpl("x:2", "b:x")},
    )


def test_a_scalar_summary_is_a_tensor():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  x = mtf.ones(mesh, [])
  assert isinstance(mtf.scalar_summary("x", x), mtf.Tensor)


@pytest.mark.parametrize(
  "changed",
  [{"shape": "a:8"}, {"dtype": "bfloat16"}, {"trainable": False}],
)
def test_a_variable_that_is_asked_for_otherwise_is_an_error(changed):
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  asked = {"shape": "a:4", "dtype": "float32", "trainable": True}
  mtf.get_variable(mesh, "w", **asked)
  with pytest.raises(mtf.VariableError, match="variable w exists as"):
    mtf.get_variable(mesh, "w", **{**asked, **changed})


def test_a_graph_with_split_variables_is_lowered_twice():
  mesh = mtf.Mesh(mtf.Graph(), "mesh")
  w = mtf.get_variable(mesh, "w", "a:4", initializer=2.0)
  for devices in (None, None, [""] * 2, [""] * 2):
    impl = (
      mtf.virtual_mesh_impl.VirtualMeshImpl("x:2", "a:x")
      if devices is None
      else mtf.placement_mesh_impl.PlacementMeshImpl("x:2", "a:x", devices)
    )
    for _ in range(2):
      lowering = mtf.Lowering(mesh.graph, {mesh: impl})
      assert lowering.export_to_tf_tensor(w).numpy().tolist() == [2] * 4
