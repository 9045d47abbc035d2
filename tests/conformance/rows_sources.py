"""Rows of the functions that make tensors out of nothing much.

Random ones are held against themselves on one processor: a layout changes no
number. Whether they are random is seen in tests/spmd/random_bits_test.py.
"""

import numpy as np
import tensorflow as tf

import mesh_tf2 as mtf

from tests.conformance.row import row

AB, ABC = "a:4 b:8", "a:4 b:8 c:4"
B = mtf.Dimension("b", 8)

ROWS = [
  row(
    "constant",
    lambda mesh: mtf.constant(mesh, 7, AB, tf.int32),
    [],
    lambda: np.full((4, 8), 7),
    AB,
    dtype="int32",
  ),
  row(
    "zeros",
    lambda mesh: mtf.zeros(mesh, AB),
    [],
    lambda: np.zeros((4, 8)),
    AB,
    dtype="float32",
  ),
  row(
    "ones",
    lambda mesh: mtf.ones(mesh, ""),
    [],
    lambda: 1.0,
    "",
    dtype="float32",
  ),
  row(
    "zeros_like",
    lambda mesh, x: mtf.zeros_like(x),
    [AB],
    np.zeros_like,
    AB,
    dtypes=("bfloat16",),
  ),
  row(
    "ones_like",
    lambda mesh, x: mtf.ones_like(x),
    [(AB, "integers")],
    np.ones_like,
    AB,
  ),
  row(
    "mtf_range",
    lambda mesh: mtf.range(mesh, B, tf.int32),
    [],
    lambda: np.arange(8),
    "b:8",
    dtype="int32",
    covers="range",
  ),
  row(
    "mtf_range: of floats",
    lambda mesh: mtf.range(mesh, B, tf.float32),
    [],
    lambda: np.arange(8.0),
    "b:8",
    dtype="float32",
  ),
  row(
    "import_tf_tensor",
    lambda mesh: mtf.import_tf_tensor(
      mesh, np.arange(128, dtype=np.int32).reshape(4, 8, 4), ABC
    ),
    [],
    lambda: np.arange(128).reshape(4, 8, 4),
    ABC,
    dtype="int32",
  ),
  row(
    "import_fully_replicated",
    lambda mesh: mtf.import_fully_replicated(
      mesh, np.arange(32, dtype=np.float32).reshape(4, 8), AB
    ),
    [],
    lambda: np.arange(32.0).reshape(4, 8),
    AB,
    dtype="float32",
  ),
  row(
    "random_uniform",
    lambda mesh: mtf.random_uniform(mesh, AB),
    [],
    None,
    AB,
    dtype="float32",
  ),
  row(
    "random_uniform: integers",
    lambda mesh: mtf.random_uniform(mesh, AB, -5, 50, tf.int32),
    [],
    None,
    AB,
    dtype="int32",
  ),
  row(
    "random_normal",
    lambda mesh: mtf.random_normal(mesh, ABC, 1.0, 2.0),
    [],
    None,
    ABC,
    dtype="float32",
  ),
  row(
    "dropout",
    lambda mesh, x: mtf.dropout(x, True, 0.5),
    [ABC],
    None,
    ABC,
    dtypes=("bfloat16",),
  ),
  row(
    "dropout: decisions shared along dimensions",
    lambda mesh, x: mtf.dropout(x, True, rate=0.5, noise_shape="c:4 a:4"),
    [ABC],
    None,
    ABC,
  ),
  row(
    "dropout: of integers",
    lambda mesh, x: mtf.dropout(x, True, 0.5),
    [(ABC, "integers")],
    None,
    ABC,
  ),
  row(
    "sample_with_temperature",
    lambda mesh, x: mtf.sample_with_temperature(x, B, 0.7),
    [ABC],
    None,
    "a:4 c:4",
    dtype="int32",
  ),
  row(
    "sample_with_temperature: of zero",
    lambda mesh, x: mtf.sample_with_temperature(x, B, 0.0),
    [ABC],
    lambda x: x.argmax(1),
    "a:4 c:4",
    dtype="int32",
  ),
  row(
    "get_variable",
    lambda mesh: mtf.get_variable(
      mesh, "w", ABC, initializer=mtf.initializers.RandomNormal()
    ),
    [],
    None,
    ABC,
    dtype="float32",
  ),
  row(
    "get_variable: read as bfloat16",
    lambda mesh: mtf.get_variable(
      mesh,
      "w",
      AB,
      mtf.VariableDType(activation_dtype=tf.bfloat16),
      initializer=mtf.initializers.RandomUniform(),
    ),
    [],
    None,
    AB,
    dtype="bfloat16",
  ),
]
