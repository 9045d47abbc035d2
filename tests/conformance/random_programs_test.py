"""Random programs have one value, whatever the layout and implementation."""

import dataclasses

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import mesh_tf2 as mtf

from tests.support.meshes import PLACEMENT, VIRTUAL, Setting
from tests.support.running import Run, tensor

DEPTH = 10  # operations, each on the result of the one before
# The size of a dimension is part of its name, so that names agree everywhere.
SIZES = {"a": 4, "b": 4, "c": 8, "d": 8, "e": 2, "f": 4}
MESHES = [
  (("x", 2),),
  (("x", 2), ("y", 2)),
  (("x", 4), ("y", 2)),
  (("x", 2), ("y", 1), ("z", 2)),
  (("x", 2), ("y", 2), ("z", 2)),
]


def _dim(name):
  return mtf.Dimension(name, SIZES[name])


def _tame(x):
  """Keeps numbers within [-1, 1], so that errors do not grow."""
  return mtf.tanh(x)


@dataclasses.dataclass(frozen=True)
class Step:
  """An operation on the last tensor, and perhaps on one made before."""

  kind: str
  second: int
  name: str
  number: int

  def apply(self, tensors):
    x = tensors[-1]
    y = tensors[self.second % len(tensors)]
    return getattr(self, f"_{self.kind}")(x, y)

  def _mine(self, x):
    """One of the dimensions of `x`, or None."""
    return x.shape[self.number % len(x.shape)] if len(x.shape) else None

  def _add(self, x, y):
    return _tame(x + y)

  def _multiply(self, x, y):
    return x * y

  def _where(self, x, y):
    return mtf.where(mtf.less(x, y), x, mtf.sin(y))

  def _unary(self, x, y):
    fns = [
      mtf.sin, mtf.gelu, mtf.sigmoid, mtf.negative, mtf.relu, mtf.square,
      mtf.erf, mtf.softplus, mtf.swish, mtf.tanh,
    ]  # fmt: skip
    return fns[self.number](x)

  def _extreme(self, x, y):
    return (mtf.maximum, mtf.minimum)[self.number % 2](x, y)

  def _divide(self, x, y):
    return x / (y * y + 1.0)

  def _einsum(self, x, y):
    shared = [d for d in x.shape if d in y.shape]
    return _tame(mtf.einsum([x, y], reduced_dims=shared[: 1 + self.number % 2]))

  def _reduce(self, x, y):
    dim = self._mine(x)
    if dim is None:
      return x
    fns = [
      mtf.reduce_sum, mtf.reduce_mean, mtf.reduce_max, mtf.reduce_min,
      mtf.reduce_variance, mtf.norm, mtf.reduce_logsumexp,
    ]  # fmt: skip
    return _tame(fns[self.second % len(fns)](x, reduced_dim=dim))

  def _broadcast(self, x, y):
    if self.name in x.shape.dimension_names or x.size > 256:
      return x
    return mtf.broadcast(x, [_dim(self.name), *x.shape.dims])

  def _transpose(self, x, y):
    return mtf.transpose(x, x.shape.dims[::-1])

  def _rename(self, x, y):
    same = [d for d in x.shape if SIZES.get(d.name) == SIZES[self.name]]
    if not same or self.name in x.shape.dimension_names:
      return x
    return mtf.rename_dimension(x, same[0].name, self.name)

  def _regroup(self, x, y):
    """Another factorisation: c:8 for a:4 e:2, and back."""
    names = x.shape.dimension_names
    if "c" in names and not {"a", "e"} & set(names):
      return mtf.replace_dimensions(x, _dim("c"), [_dim("a"), _dim("e")])
    if names[-2:] == ["a", "e"] and "c" not in names:
      return mtf.replace_dimensions(x, x.shape.dims[-2:], _dim("c"))
    return x

  def _shift(self, x, y):
    dim = self._mine(x)
    wrap = self.second % 2 > 0
    return x if dim is None else mtf.shift(x, self.number - 4, dim, wrap)

  def _cumsum(self, x, y):
    dim = self._mine(x)
    if dim is None:
      return x
    if self.second > 3:
      return mtf.cumprod(x + 0.2, dim)
    return _tame(mtf.cumsum(x, dim, self.second % 2 > 0))

  def _softmax(self, x, y):
    dim = self._mine(x)
    if dim is None:
      return x
    fn = mtf.log_softmax if self.second % 2 else mtf.softmax
    return _tame(fn(x, dim))

  def _gather(self, x, y):
    dim = self._mine(x)
    if dim is None or dim in y.shape:
      return x
    return mtf.gather(x, mtf.to_int32(y * 5.0), dim)

  def _top(self, x, y):
    dim = self._mine(x)
    if dim is None or "k" in x.shape.dimension_names:
      return x
    values, _ = mtf.top_k(x, dim, mtf.Dimension("k", 2))
    return mtf.reduce_sum(values, reduced_dim=mtf.Dimension("k", 2))

  def _bound(self, x, y):
    low = mtf.clip(x, -0.5, abs(y))
    return low if self.number % 2 else _tame((x * x + 0.5) ** y)

  def _product(self, x, y):
    dim = self._mine(x)
    return x if dim is None else mtf.reduce_prod(x + 0.5, reduced_dim=dim)

  def _pick(self, x, y):
    dim = self._mine(x)
    return x if dim is None else x[{dim: self.second % dim.size}]

  def _reverse(self, x, y):
    dim = self._mine(x)
    return x if dim is None else x[{dim: slice(None, None, -1)}]

  def _window(self, x, y):
    """Some of what lies between the end of it and zeros, or it again."""
    dim = self._mine(x)
    if dim is None:
      return x
    if self.second % 2:
      longer = mtf.pad(x, [0, dim.size], dim.name)
    else:
      longer = mtf.concat([x, mtf.sin(x)], dim.name)
    return mtf.slice(longer, self.number % dim.size, dim.size, dim.name)

  def _sort(self, x, y):
    dim = self._mine(x)
    return x if dim is None else mtf.sort(x, dim, self.second % 2 > 0)

  def _segments(self, x, y):
    """Sums rows that belong together, and gives each its own sum back."""
    dim = self._mine(x)
    if dim is None or "s" in x.shape.dimension_names:
      return x
    segments = mtf.Dimension("s", 2)
    ids = mtf.mod(mtf.mtf_range(x.mesh, dim, tf.int32), 2)
    sums = mtf.segment_sum(x, ids, dim, segments)
    return _tame(mtf.gather(sums, ids, segments))

  def _scatter(self, x, y):
    dim = self._mine(x)
    if dim is None:
      return x
    row = mtf.Dimension("row", dim.size)
    to = mtf.mod(mtf.mtf_range(x.mesh, row, tf.int32) * 3, dim.size)
    rows = mtf.rename_dimension(x, dim.name, "row")
    return _tame(mtf.scatter_add(rows, to, dim, x.shape))

  def _dynamic(self, x, y):
    dim = self._mine(x)
    if dim is None:
      return x
    offset = mtf.to_int32(mtf.reduce_mean(y) * 3.0)
    return mtf.dynamic_shift(x, offset, dim, self.second % 2 > 0)

  def _branch(self, x, y):
    positive = mtf.greater(mtf.reduce_sum(y), 0.1)
    return mtf.cond(positive, lambda: mtf.sin(x), lambda: x * 0.5)

  def _loop(self, x, y):
    def more(i, z):
      return mtf.less(i, self.number % 3)

    def body(i, z):
      return [i + 1, _tame(z + y)] if z.shape == (z + y).shape else [i + 1, z]

    zero = mtf.constant(x.mesh, 0, dtype=tf.int32)
    return mtf.while_loop(more, body, [zero, x])[1]

  def _scan(self, x, y):
    dim = self._mine(x)
    if dim is None:
      return x
    start = mtf.zeros(x.mesh, x.shape - dim)

    def step(carried, row):
      z = mtf.tanh(carried[0] * 0.5 + row[0])
      return [z], [z * z]

    return mtf.scan(step, [start], [x], dim)[1][0]

  def _again(self, x, y):
    return mtf.recompute_grad(lambda x, y: mtf.sin(x) * y, [x, y])

  def _dropout(self, x, y):
    return mtf.dropout(x, True, 0.75)


KINDS = sorted(n[1:] for n in vars(Step) if n[0] == "_" and n[1] != "_")
KINDS.remove("mine")

steps = st.builds(
  Step,
  kind=st.sampled_from(KINDS),
  second=st.integers(0, 7),
  name=st.sampled_from(sorted(SIZES)),
  number=st.integers(0, 9),
)
shapes = st.lists(
  st.sampled_from(sorted(SIZES)), min_size=1, max_size=3, unique=True
)
# For each name the number of a mesh axis; some are the same, most differ.
layouts = st.fixed_dictionaries(
  {}, optional={n: st.integers(0, 5) for n in SIZES}
)


def _program(shapes, steps):
  """Builds it; returns the last results and the gradients of the inputs."""

  def build(mesh):
    rng = np.random.default_rng(0)
    inputs = []
    for names in shapes:
      shape = mtf.Shape([_dim(n) for n in names])
      values = rng.uniform(-1, 1, shape.to_integer_list)
      inputs.append(tensor(mesh, shape, values))
    tensors = list(inputs)
    for step in steps:
      if len(tensors) == len(inputs) + DEPTH:
        break
      y = step.apply(tensors)
      if y.size <= 1024 and y is not tensors[-1]:
        tensors.append(y)
    ys = tensors[-2:]
    gradients = mtf.gradients([mtf.reduce_sum(y) for y in ys], inputs)
    return ys + [g for g in gradients if g is not None]

  return build


@hypothesis.settings(
  max_examples=30,
  deadline=None,
  derandomize=True,
  database=None,
  suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(
  shapes=st.lists(shapes, min_size=2, max_size=3),
  steps=st.lists(steps, min_size=2 * DEPTH, max_size=2 * DEPTH),
  mesh=st.sampled_from(MESHES),
  layout=layouts,
)
def test_a_random_program_has_one_value(shapes, steps, mesh, layout):
  build = _program(shapes, steps)
  alone = Run(build, Setting(VIRTUAL)).values
  rules = tuple((n, mesh[i % len(mesh)][0]) for n, i in layout.items())
  for kind in (VIRTUAL, PLACEMENT):
    try:
      run = Run(build, Setting(kind, mesh, rules))
    except mtf.LayoutError:
      hypothesis.reject()
    for i, (got, want) in enumerate(zip(run.values, alone, strict=True)):
      np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
      run.check_slices(run.tensors[i], got)
    run.check_variation()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_step_does_something_and_has_one_value(kind):
  """So that no step of the random programs is idle."""
  plain = [("a", "b"), ("c", "d"), ("b", "e")]
  rules = (("b", "y"), ("e", "x"))
  changed = 0
  for number in range(4):
    step = Step(kind, number, "f", number)
    build = _program(plain, [step])
    alone = Run(build, Setting(VIRTUAL))
    split = Run(build, Setting(VIRTUAL, MESHES[1], rules))
    for got, want in zip(split.values, alone.values, strict=True):
      np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    changed += len(alone.mesh.graph.operations) > len(plain) + 2
  assert changed or kind == "regroup"  # which wants certain names
