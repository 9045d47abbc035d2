"""The public names, held against a list under review, and what they promise."""

import functools
import inspect
import json
import pathlib
import subprocess
import sys

import pytest

import mesh_tf2 as mtf
from mesh_tf2.transformer.layers.enc_dec_attention import EncDecAttention
from mesh_tf2.transformer.layers.feed_forward import DenseReluDense
from mesh_tf2.transformer.layers.self_attention import SelfAttention
from mesh_tf2.transformer.model import builder
from mesh_tf2.transformer.model.bitransformer import Bitransformer
from mesh_tf2.transformer.model.layer_stack import LayerStack
from mesh_tf2.transformer.model.unitransformer import Unitransformer
from mesh_tf2.transformer.run import entry

LIST = pathlib.Path(__file__).with_name("api.txt")

# Public modules: their names are listed, too.
MODULES = [
  "beam_search",
  "initializers",
  "layers",
  "optimize",
  "placement_mesh_impl",
  "simd_mesh_impl",
  "test_utils",
  "tpu",
  "utils",
  "virtual_mesh_impl",
]

# In a process of its own, where nobody else has imported more.
LOOK = f"""
import inspect, json, sys
import mesh_tf2 as mtf

def own(module):
  package = hasattr(module, "__path__")
  shown = getattr(module, "__all__", ())
  for name, value in vars(module).items():
    if not (name.startswith("_") or inspect.ismodule(value)):
      if package or name in shown or value.__module__ == module.__name__:
        yield name

names = [name for name in dir(mtf) if not name.startswith("_")]
for module in {MODULES}:
  names += [f"{{module}}.{{name}}" for name in own(getattr(mtf, module))]
print(json.dumps([names, sorted(sys.modules)]))
"""

NO_TENSORFLOW = """
import sys

class NoTensorFlow:
  def find_spec(self, name, path=None, target=None):
    if name.partition(".")[0] == "tensorflow":
      raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTensorFlow())
import mesh_tf2
"""


def python(code):
  return subprocess.run(
    [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
  )


@functools.cache
def look():
  """The public names, and the names of all modules that were imported."""
  done = python(LOOK)
  assert done.returncode == 0, done.stderr
  names, modules = json.loads(done.stdout)
  return names, set(modules)


def test_the_public_names_are_those_under_review():
  names, _ = look()
  reviewed = LIST.read_text(encoding="utf-8").split()
  new = sorted(set(names) - set(reviewed))
  gone = sorted(set(reviewed) - set(names))
  assert not new + gone, (
    f"{LIST.name} lacks {new} and has {gone} too many. Where this is meant, "
    f"write the change into tests/{LIST.name}, one name a line, in order; a "
    "name that goes belongs into CHANGELOG.md, too"
  )
  assert reviewed == sorted(reviewed), f"{LIST.name} is not in order"


def test_the_language_alone_needs_no_more_than_tensorflow():
  _, modules = look()
  heavy = {"babel", "gin", "sacrebleu", "sentencepiece", "tensorflow_datasets"}
  assert not modules & (heavy | {"tqdm"})
  assert not modules & {"mesh_tf2.data", "mesh_tf2.transformer"}


def test_without_tensorflow_the_error_names_the_extras():
  done = python(NO_TENSORFLOW)
  assert done.returncode == 1
  last = done.stderr.strip().splitlines()[-1]
  assert last.startswith("ImportError: mesh_tf2 needs TensorFlow"), done.stderr
  for extra in ("mesh_tf2[cpu]", "mesh_tf2[gpu]", "mesh_tf2[tpu]"):
    assert extra in last


# What Mesh TensorFlow's programs and gin files pass, by position or by name;
# ours may take more, behind these.
PARAMETERS = """
  Dimension                    name size
  Lowering                     graph mesh_to_impl autostack log_file
  Mesh                         graph name variable_placer
  MeshImpl                     shape layout_rules
  Operation                    inputs mesh name
  Tensor                       operation shape dtype name index
  VariableDType                master_dtype slice_dtype activation_dtype
  add                          x1 x2 output_shape name
  anonymize                    x
  argmax                       x reduced_dim name
  assign                       var new_val assign_fn name
  assign_add                   var new_val
  assign_sub                   var new_val
  broadcast                    x new_shape
  cast                         x dtype name
  combined_dimension           dims name
  concat                       xs concat_dim_name name
  constant                     mesh value shape dtype
  convert_to_layout_rules      x
  convert_to_shape             x
  cumsum                       x dim exclusive
  custom_gradient              fn grad_fn explicit_inputs
  cwise                        tf_fn xs output_dtype grad_function name
  depend                       x dependencies
  divide                       x1 x2 output_shape name
  dropout                      x is_training keep_prob rate noise_shape name
  einsum                       xs output_shape reduced_dims name
  equal                        x1 x2 output_shape
  gather                       weights indices dim output_shape
  get_variable                 mesh name shape dtype master_dtype slice_dtype
                               activation_dtype initializer trainable
  gradients                    ys xs grad_ys operations
  import_fully_replicated      mesh tf_tensor shape name
  import_laid_out_tensor       mesh laid_out_tensor shape name
  import_tf_tensor             mesh tf_tensor shape name
  leaky_relu                   x alpha name
  list_product                 l
  log_softmax                  x reduced_dim extra_logit name
  matmul                       a b output_shape reduced_dims name
  maximum                      x1 x2 output_shape name
  minimum                      x1 x2 output_shape name
  mtf_range                    mesh dim dtype name
  mtf_slice                    x begin size slice_dim_name name
  multiply                     x1 x2 output_shape name
  nth_largest_element          x n reduced_dim name
  one_hot                      indices output_dim on_value off_value dtype name
  pad                          x paddings dim_name name
  pnum_to_group                mesh_shape group_dims pnum
  print_tensors                x data message
  processor_coordinates_to_pnum mesh_shape coord
  recompute_grad               fn explicit_inputs control_dependencies
  reduce_all       x disable_positional_args output_shape reduced_dim name
  reduce_any       x disable_positional_args output_shape reduced_dim name
  reduce_first                 tensor reduced_dim
  reduce_logsumexp             x reduced_dim extra_logit name
  reduce_max       x disable_positional_args output_shape reduced_dim name
  reduce_mean      x disable_positional_args output_shape reduced_dim name
  reduce_min       x disable_positional_args output_shape reduced_dim name
  reduce_sum       x disable_positional_args output_shape reduced_dim name
  relu                         x name
  rename_dimension             x old_name new_name
  replace_dimensions    tensor_or_shape old_dim_or_dims new_dim_or_dims
  reshape                      x new_shape name
  sample_with_temperature      logits dim temperature name
  scalar_summary               name x
  serialize_training_step      features model_fn batch_dim num_splits
  shift                        x offset dim wrap name
  slicewise                    tf_fn xs output_shape output_dtype
                               splittable_dims grad_function name
  softmax                      x reduced_dim extra_logit name
  split                        x split_dim num_or_size_splits name
  stack                        xs dim_name axis name
  sub                          x1 x2 output_shape name
  tensor_dim_to_mesh_dim_size  layout mesh_shape tensor_dim
  top_k                        x reduced_dim k_dim name
  transpose                    x new_shape name
  unstack                      x dim name
  where                        condition if_true if_false output_shape
  while_loop                   cond_fn body_fn inputs num_loop_vars
                               has_accumulators
  zeros                        mesh shape dtype
  zeros_like                   t

  beam_search.beam_search      logits_fn initial_ids alpha states eos_id
                               stop_early decode_length use_tpu dtype layout
                               mesh_shape num_prefilter
  beam_search.greedy_decode    logits_fn initial_ids temperature initial_states
                               eos_id forced_ids use_tpu
  layers.VarianceScalingInitializer  scale mode distribution
  layers.annealed_dropout      x is_training start_step end_step init_rate
                               noise_shape name
  layers.attention_bias_local_2d_block  mesh h_dim w_dim memory_h_dim
                               memory_w_dim dtype
  layers.attention_bias_local_block  mesh block_length memory_length dtype
  layers.attention_mask_autoregressive  query_pos dtype
  layers.attention_mask_ignore_padding  inputs dtype
  layers.attention_mask_same_segment  query_segment memory_segment dtype
  layers.batch_norm            x is_training momentum epsilon dims_idx_start
                               dims_idx_end init_zero name
  layers.clip_activation_gradient  x clip_rms_norm
  layers.compress_mean         x dim compression_factor
  layers.corr                  x dim epsilon name
  layers.dense                 x new_dims reduced_dims expert_dims use_bias
                               activation master_dtype slice_dtype
                               variable_dtype kernel_initializer kernel_weights
                               name
  layers.dense_product         x reduced_dims new_dims activation_functions name
  layers.dense_relu_dense      x hidden_channels is_training dropout
                               dropout_broadcast_dims master_dtype slice_dtype
                               name
  layers.dot_product_attention  q k v mask is_training dropout
                               dropout_broadcast_dims extra_logit
  layers.embedding             indices vocab_dim output_dim variable_dtype name
  layers.embedding_weights     mesh vocab_dim output_dim variable_dtype name
                               ensemble_dim initializer
  layers.get_dense_kernel_weights  x new_dims reduced_dims expert_dims
                               kernel_initializer name variable_dtype
                               master_dtype slice_dtype
  layers.layer_norm            x dim epsilon name
  layers.local_1d_halo_exchange  k v num_w_blocks w_dim mask_right
  layers.local_2d_halo_exchange  k v num_h_blocks h_dim num_w_blocks w_dim
                               mask_right
  layers.local_2d_self_attention_spatial_blocks  query_antecedent kv_channels
                               heads is_training memory_h_dim memory_w_dim
                               mask_right master_dtype slice_dtype name
  layers.local_self_attention_spatial_blocks  query_antecedent kv_channels
                               heads is_training memory_w_dim mask_right
                               master_dtype slice_dtype name
  layers.masked_local_attention_1d  x kv_channels heads is_training window_size
                               master_dtype slice_dtype length_per_split
                               return_kv params name
  layers.masked_local_attention_1d_incremental  x prev_k prev_v step_num
                               master_dtype slice_dtype params name
  layers.multihead_attention   query_antecedent memory_antecedent mask
                               kv_channels heads is_training dropout
                               dropout_broadcast_dims master_dtype slice_dtype
                               name
  layers.multihead_attention_params  mesh heads io_channels kv_channels
                               variable_dtype combine
  layers.multihead_attention_vars  mesh heads io_channels kv_channels
                               master_dtype slice_dtype activation_dtype
  layers.multihead_encdec_attention_incremental  query_antecedent wq wo k v
                               mask name
  layers.multihead_self_attention_incremental  query_antecedent prev_k prev_v
                               step_num master_dtype slice_dtype name
  layers.multihead_self_attention_memory_compressed  x mask_right
                               compression_factor kv_channels heads is_training
                               dropout dropout_broadcast_dims master_dtype
                               slice_dtype name
  layers.multiplicative_jitter  x epsilon
  layers.rename_length_to_memory_length  x length_name memory_length_name
  layers.reversible_half_residual_and_swap  x1 x1_backwards x2 x2_backwards f
                               recompute_grads
  layers.sigmoid_cross_entropy_with_logits  logits targets
  layers.softmax_cross_entropy_with_logits  logits targets vocab_dim z_loss
  layers.summary_for_clip_activation_gradient  t name batch_dims
  layers.unit_scaling_convention  value
  layers.us_einsum             xs
  layers.weights_nonzero       targets dtype
  optimize.AdafactorOptimizer  multiply_by_parameter_scale learning_rate
                               decay_rate beta1 clipping_threshold factored
                               epsilon1 epsilon2 min_dim_size_to_factor
                               stacked_dim_names exclude_from_parameter_scale
  optimize.AdamWeightDecayOptimizer  learning_rate weight_decay_rate beta_1
                               beta_2 epsilon exclude_from_weight_decay
  optimize.MomentumOptimizer   learning_rate momentum
  optimize.SgdOptimizer        learning_rate
  optimize.adafactor_decay_rate_pow  exponent offset
  placement_mesh_impl.PlacementMeshImpl  shape layout devices

  Bitransformer                encoder decoder shared_embedding
  DenseReluDense               hidden_size dropout_rate activation use_bias
  EncDecAttention              relative_attention_type
  LayerStack                   layers sublayers_initial sublayers_per_layer
                               sublayers_final dropout_rate norm_epsilon
                               recompute_grads
  SelfAttention                num_heads num_memory_heads key_value_size
                               shared_kv dropout_rate attention_kwargs
                               relative_attention_type
                               relative_attention_num_buckets attention_func
                               combine_dims keep_query_heads_dims
                               fold_scaling_into_initializer
  Unitransformer               layer_stack d_model input_vocab_size
                               output_vocab_size autoregressive max_length
                               shared_embedding_and_softmax_weights
                               label_smoothing z_loss name layout mesh_shape
                               vocab_divisor loss_fn positional_embedding
                               sinusoid_positional_embedding
                               input_full_attention loss_on_targets_only
                               loss_denominator token_dropout_rate
  make_bitransformer           input_vocab_size output_vocab_size layout
                               mesh_shape encoder_name decoder_name
                               bitransformer_cls
  make_layer_stack             layers layer_stack_cls num_layers block_scope
  run                          tpu_job_name tpu gcp_project tpu_zone model_dir
                               model_type vocabulary train_dataset_fn
                               eval_dataset_fn dataset_split autostack
                               eval_checkpoint_step export_checkpoint_step
                               export_path mode iterations_per_loop
                               save_checkpoints_steps keep_checkpoint_max
                               eval_summary_dir batch_size train_steps
                               total_run_steps sequence_length mesh_shape
                               mesh_devices layout_rules learning_rate_schedule
                               optimizer predict_fn variable_filter
                               perplexity_eval_steps init_checkpoint
                               ensemble_inputs train_model_fn skip_seen_data
                               seen_data_init_step output_eval_examples
                               checkpoint_input_pipeline
"""

# Those that are not names of the language.
TRANSFORMER = {
  "Bitransformer": Bitransformer,
  "DenseReluDense": DenseReluDense,
  "EncDecAttention": EncDecAttention,
  "LayerStack": LayerStack,
  "SelfAttention": SelfAttention,
  "Unitransformer": Unitransformer,
  "make_bitransformer": builder.make_bitransformer,
  "make_layer_stack": builder.make_layer_stack,
  "run": entry.run,
}


def rows(table):
  """(name, parameters) of each; a line far to the right goes on with one."""
  found = []
  for line in filter(None, table.splitlines()):
    words = line.split()
    if line.startswith(" " * 10):
      found[-1][1].extend(words)
    else:
      found.append((words[0], words[1:]))
  return found


def public(name):
  if name in TRANSFORMER:
    return TRANSFORMER[name]
  return functools.reduce(getattr, name.split("."), mtf)


@pytest.mark.parametrize(
  ("name", "wanted"),
  [pytest.param(*row, id=row[0]) for row in rows(PARAMETERS)],
)
def test_parameters_have_the_names_and_the_order_of_the_original(name, wanted):
  parameters = inspect.signature(public(name)).parameters.values()
  found = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
  assert found[: len(wanted)] == wanted
