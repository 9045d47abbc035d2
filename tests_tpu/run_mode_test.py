"""The run mode `compile`, from the command line."""

import gin
from absl import flags
from absl.testing import flagsaver

from mesh_tf2.transformer import main

TINY = [
  "num_layers = 1",
  "d_model = 128",
  "d_ff = 512",
  "num_heads = 8",
  "d_kv = 64",
  "utils.run.mesh_shape = 'batch:2;model:4'",
  "utils.run.batch_size = 16",
  "utils.compile_step.topology = 'v5e:2x4'",
]


def test_a_config_and_a_topology_give_a_table(tmp_path, capsys):
  flags.FLAGS.mark_as_parsed()
  gin.clear_config()
  arguments = [
    "mesh_transformer",
    "--gin_file=compile/lm1b_k5.gin",
    f"--model_dir={tmp_path}",
    *(f"--gin_param={p}" for p in TINY),
  ]
  with flagsaver.flagsaver():
    assert main._main(flags.FLAGS(arguments)) == 0
  gin.clear_config()
  table = capsys.readouterr().out
  assert "v5e:2x4, mesh [batch:2 model:4]" in table
  assert "all-reduce over batch" in table and "utilization" in table
