"""Sums over split dimensions wait until somebody needs them."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support.meshes import KINDS
from tests.support.running import run, tensor

A, B = mtf.Dimension("a", 4), mtf.Dimension("b", 4)


def _sums(mesh, count=2):
  xs = [tensor(mesh, [A, B]) for _ in range(count)]
  return [mtf.reduce_sum(x, reduced_dim=A) for x in xs]


def _outer_sum(mesh):
  return mtf.add(*_sums(mesh))


def _difference(mesh):
  x, y = _sums(mesh)
  return x - y


def _renamed(mesh):
  x, y = (mtf.rename_dimension(s, "b", "c") for s in _sums(mesh))
  return x + y


def _scaled(mesh):
  x, y = _sums(mesh)
  return x * 2.0 + y


def _of_three(mesh):
  x, y, z = _sums(mesh, 3)
  return x + y + z


def _used_twice(mesh):
  (x,) = _sums(mesh, 1)
  return x * x


def _of_a_product(mesh):
  x, w = tensor(mesh, [A, B]), tensor(mesh, "a:4 c:2")
  y = mtf.einsum([x, w], "b:4 c:2")
  return y + mtf.einsum([x * 2.0, w], "b:4 c:2")


def _with_whole(mesh):
  (x,) = _sums(mesh, 1)
  return x + tensor(mesh, [B])


@pytest.mark.parametrize(
  ("build", "count"),
  [
    (_outer_sum, 1),
    (_difference, 2),
    (_renamed, 1),
    (_scaled, 2),
    (_of_three, 1),
    (_used_twice, 1),
    (_of_a_product, 1),
    (_with_whole, 1),
  ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_taken_as_late_and_as_seldom_as_can_be(build, count, kind):
  alone = run(build)
  alone.value()
  assert alone.kinds == []
  split = run(build, "x:2;y:2", "a:x", kind)
  np.testing.assert_allclose(split.value(), alone.value())
  assert split.kinds == ["allreduce"] * count
  assert {c.mesh_axes for _, c in split.lowering.collectives} == {(0,)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_that_nobody_reads_is_never_taken(kind):
  result = run(lambda mesh: _sums(mesh, 1)[0], "x:2", "a:x", kind)
  assert result.kinds == []
  result.value()
  assert result.kinds == ["allreduce"]
  result.value()
  assert result.kinds == ["allreduce"]


@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_different_axes_do_not_wait_for_each_other(kind):
  def build(mesh):
    x = tensor(mesh, [A, B])
    return mtf.reduce_sum(x, reduced_dim=A) + mtf.rename_dimension(
      mtf.reduce_sum(x, reduced_dim=B), "a", "b"
    )

  split = run(build, "x:2;y:2", "a:x;b:y", kind)
  np.testing.assert_allclose(split.value(), run(build).value())
  assert ("Sum", "allreduce", (0,)) in split.collectives
  assert ("Sum", "allreduce", (1,)) in split.collectives


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_over_two_axes_is_one_allreduce(kind):
  split = run(
    lambda mesh: mtf.reduce_sum(tensor(mesh, [A, B])), "x:2;y:2", "a:x;b:y",
    kind,
  )  # fmt: skip
  assert split.value() == 120
  assert split.collectives == [("Sum", "allreduce", (0, 1))]


@pytest.mark.parametrize("kind", KINDS)
def test_data_parallel_gradients_cost_one_allreduce_a_weight(kind):
  def build(mesh):
    x = tensor(mesh, "batch:8 d:4")
    w = tensor(mesh, "d:4 e:4")
    y = mtf.relu(mtf.einsum([x, w], "batch:8 e:4"))
    loss = mtf.reduce_sum(y * y)
    return mtf.gradients([loss], [w])

  split = run(build, "x:4", "batch:x", kind)
  np.testing.assert_allclose(split.value(), run(build).value())
  assert split.kinds == ["allreduce"]
