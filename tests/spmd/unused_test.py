"""Rules and mesh dimensions that split nothing are reported once."""

import warnings

import numpy as np
import pytest

import mesh_tf2 as mtf


def _program(mesh, layout, **kwargs):
  program = mtf.Program(mesh, layout, **kwargs)

  @program.function
  def double(mesh, x):
    return mtf.import_tf_tensor(mesh, x, "batch:4 d_ff:4") * 2.0

  return double


X = np.ones([4, 4], np.float32)


def test_a_rule_about_an_unknown_dimension_names_the_nearest_one():
  double = _program("x:2", "batch:x;d_f:x")
  with pytest.warns(
    mtf.LayoutWarning,
    match="layout rule 'd_f:x' splits nothing: no tensor has a dimension "
    r"'d_f' \(did you mean \"d_ff\"\?\)",
  ):
    double(X)


def test_a_rule_about_an_unknown_mesh_dimension_names_the_nearest_one():
  double = _program("model:2", "batch:modle")
  with pytest.warns(mtf.LayoutWarning) as caught:
    double(X)
  (message,) = [str(w.message) for w in caught]
  assert "has no dimension 'modle' (did you mean \"model\"?)" in message
  assert "mesh dimension model:2 splits nothing" in message


def test_it_is_reported_once_for_a_program():
  double = _program("x:2", "batch:x;q:x")
  with pytest.warns(mtf.LayoutWarning):
    double(X)
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    double(X)
    double(X.astype(np.float64))


def test_nothing_is_reported_where_every_rule_works():
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    _program("x:2;y:2;z:1", "batch:x;d_ff:y")(X)


def test_a_strict_program_refuses():
  with pytest.raises(ValueError, match="layout rule 'q:x' splits nothing"):
    _program("x:2", "batch:x;q:x", strict=True)(X)


def test_a_dimension_inside_a_loop_counts():
  program = mtf.Program("x:2", "hidden:x", strict=True)

  @program.function
  def widen(mesh):
    one = mtf.constant(mesh, 1.0)
    hidden = mtf.Dimension("hidden", 4)
    return mtf.while_loop(
      lambda x: mtf.less(x, 10.0),
      lambda x: [mtf.reduce_sum(mtf.broadcast(x, [hidden]))],
      [one],
    )[0]

  assert widen().numpy() == 16
