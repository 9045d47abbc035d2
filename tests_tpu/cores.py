"""Runs a program as TPU cores would, and on a virtual mesh, and compares."""

import numpy as np
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.tpu.core_program import core_program
from mesh_tf2.tpu.execute import CpuCores

MESH = "rows:2;cols:4"


def check(fn, *args, layout="", mesh=MESH, tolerance=1e-5):
  """Fails unless eight cores compute what a virtual mesh computes.

  Args:
    fn: builds a graph, as for `Program.function`.
    *args: nests of arrays.
    layout: the layout rules.
    mesh: the mesh dimensions.
    tolerance: relative and absolute.

  Returns:
    The program of a core.
  """
  program = mtf.Program(mesh, layout, seed=1)
  return check_function(program.function(fn), *args, tolerance=tolerance)


def check_function(function, *args, tolerance=1e-5):
  """The same for a function of a program on a virtual mesh.

  Returns:
    The program of a core.
  """
  program = function.program
  function.build(*args)
  before = {name: v.numpy() for name, v in program.variables.items()}
  impl = program.mesh_impl
  core = core_program(impl.shape, impl.layout_rules, function.fn, args)
  results, new = CpuCores(core).run(
    tf.nest.flatten(args), before, int(program.step), int(program.random_key())
  )
  wanted = tf.nest.flatten(function(*args))
  for i, (got, want) in enumerate(zip(results, wanted, strict=True)):
    _compare(got, want.numpy(), tolerance, f"result {i}")
  for name, got in new.items():
    _compare(got, program.variables[name].numpy(), tolerance, name)
  return core


def _compare(got, want, tolerance, name):
  assert got.dtype == want.dtype, name
  if want.dtype.kind in "iub":
    np.testing.assert_array_equal(got, want, err_msg=name)
    return
  got, want = got.astype(np.float64), want.astype(np.float64)
  np.testing.assert_allclose(
    got, want, rtol=tolerance, atol=tolerance, err_msg=name
  )


def numbers(*sizes, seed=0):
  """Normal float32."""
  return np.random.default_rng(seed).normal(size=sizes).astype(np.float32)


def collectives(core):
  """Kinds of communication in the program that the compiler is handed."""
  text = core.traced.experimental_get_compiler_ir(*core.specs)(
    stage="hlo", platform_name="TPU"
  )
  kinds = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-permute",
  )
  return {k for k in kinds if f" {k}(" in text}
