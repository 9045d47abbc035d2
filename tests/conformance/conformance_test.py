"""Every operation on every implementation, mesh and layout.

Of each row: the value and the gradient against NumPy, the dtype, the slice of
each processor, and along which mesh axes the slices vary. A layout that cannot
be carried out is refused; it never gives another result.
"""

import numpy as np
import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.conformance.table import ROWS
from tests.support.meshes import (
  Setting,
  sampled_settings,
  simd_settings,
  wild_settings,
)
from tests.support.running import Run, run_in

TOLERANCE = {"float32": 5e-5, "float64": 1e-8, "bfloat16": 5e-2}


class Trial:
  """A row, its inputs, and what ought to come of them."""

  def __init__(self, row, dtype=None):
    self.row = row
    self.dtype = dtype
    self.arrays = [_cast(x, dtype) for x in row.arrays()]
    self.weights = [_cast(w, dtype) for w in row.weights()]
    if row.reference is None:
      alone = Run(self.build, Setting("virtual"))
      self.values = alone.values[: len(row.out)]
      self.gradients = alone.values[len(row.out) :]
      return
    self.values = row.expected(self.arrays)
    self.gradients = None
    if row.has_gradient:
      self.gradients = row.expected_gradients(self.arrays, self.weights)

  def build(self, mesh):
    """The results, then the gradients of the floating inputs."""
    row = self.row
    xs = [
      mtf.import_tf_tensor(mesh, tf.constant(x, _dtype(x, self.dtype)), i.shape)
      for x, i in zip(self.arrays, row.inputs, strict=True)
    ]
    ys = row.build(mesh, *xs)
    ys = [ys] if isinstance(ys, mtf.Tensor) else list(ys)
    assert [y.shape for y in ys] == list(row.out)
    floating = [
      (y, mtf.import_tf_tensor(mesh, tf.constant(w, y.dtype), y.shape))
      for y, w in zip(ys, self.weights, strict=True)
      if y.dtype.is_floating
    ]
    if not (row.has_gradient and floating and xs):
      return ys
    wrt = [x for x in xs if x.dtype.is_floating]
    return ys + mtf.gradients(*_columns(floating, wrt))

  def check(self, where):
    """Runs it, and compares everything."""
    run = run_in(where, self.build)
    context = f"{self.row}, {where}"
    count = len(self.row.out)
    for i, want in enumerate(self.values):
      self._check_value(run, i, want, context)
    if self.gradients is not None:
      wanted = [g for g in self.gradients if g is not None]
      for i, want in enumerate(wanted[: len(run.tensors) - count]):
        if run.tensors[count + i] is None:
          assert not np.any(want), f"no gradient: {context}"
        else:
          self._check_value(run, count + i, want, f"gradient of {context}")
    run.check_variation()

  def _check_value(self, run, i, want, context):
    tensor, got = run.tensors[i], run.value(i)
    run.check_slices(tensor, got)
    if i < len(self.row.out) and i == 0:
      wanted = self.row.dtype or self.dtype or self._first_dtype()
      assert tensor.dtype.name == wanted, context
    assert got.dtype == tensor.dtype.as_numpy_dtype, context
    if tensor.dtype.is_floating:
      close = TOLERANCE[self.dtype or tensor.dtype.name]
      got = got.astype(np.float64)
      np.testing.assert_allclose(
        got, np.asarray(want, np.float64), close, close, err_msg=context
      )
    else:
      np.testing.assert_array_equal(got, want, err_msg=context)

  def _first_dtype(self):
    return self.arrays[0].dtype.name


def _columns(pairs, wrt):
  ys, weights = zip(*pairs, strict=True)
  return list(ys), wrt, list(weights)


def _cast(x, dtype):
  """Rounds to the dtype, but keeps an array that NumPy can work with."""
  if dtype != "bfloat16" or x.dtype != np.float32:
    return x
  return tf.cast(tf.cast(x, tf.bfloat16), tf.float32).numpy()


def _dtype(x, dtype):
  return dtype if dtype and x.dtype == np.float32 else x.dtype


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_no_layout_changes_a_result(row):
  trial = Trial(row)
  for where in sampled_settings(row.dims, row.seed):
    trial.check(where)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_one_program_for_all_processors_gives_the_same(row):
  trial = Trial(row)
  for where in simd_settings(row.dims, row.seed):
    trial.check(where)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_impossible_layout_is_refused_and_never_wrong(row):
  trial = Trial(row)
  names = sorted(
    {d.name for s in row.out for d in s} | {n for n, _ in row.dims}
  )
  for where in wild_settings(names, row.seed):
    try:
      trial.check(where)
    except mtf.LayoutError:
      continue


@pytest.mark.parametrize(
  "row", [r for r in ROWS if r.dtypes], ids=lambda row: str(row)
)
def test_every_float_dtype_gives_its_own_dtype(row):
  for dtype in row.dtypes:
    trial = Trial(row, dtype)
    settings = list(sampled_settings(row.dims, row.seed))
    for where in (settings[0], settings[2], settings[-1]):
      trial.check(where)
