"""Runs a small program on a mesh and looks at what each processor holds."""

import numpy as np
import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.spmd.cost import trace_without_values
from mesh_tf2.spmd.laid_out import PendingSum
from mesh_tf2.spmd.state import VariableState

from tests.support.meshes import SIMD, VIRTUAL, setting


def new_mesh():
  return mtf.Mesh(mtf.Graph(), "mesh")


class Run:
  """The lowering of a program that `build(mesh)` makes."""

  def __init__(self, build, where):
    self.setting = where
    self.impl = where.impl
    self.mesh = new_mesh()
    result = build(self.mesh)
    self.tensors = [result] if isinstance(result, mtf.Tensor) else list(result)
    self.lowering = mtf.Lowering(self.mesh.graph, {self.mesh: self.impl})

  def value(self, i=0):
    """The whole value of a result."""
    tensor = self.tensors[i]
    if tensor is None:
      return None
    return self.lowering.export_to_tf_tensor(tensor).numpy()

  @property
  def values(self):
    return [self.value(i) for i in range(len(self.tensors))]

  def slices(self, tensor):
    """What each processor holds of a tensor, as arrays."""
    value = self.lowering.slices(tensor)
    if self.setting.kind != VIRTUAL:
      return [x.numpy() for x in value.tensor_list]
    sizes = [m for _, m in self.setting.mesh]
    array = value.value.numpy()
    return [
      array[tuple(np.unravel_index(p, sizes)[a] for a in value.axes)]
      for p in range(self.setting.processors)
    ]

  def check_slices(self, tensor, whole):
    """Each processor holds its own part of `whole`, of the same bits."""
    names = tensor.shape.dimension_names
    for pnum, got in enumerate(self.slices(tensor)):
      want = self.setting.cut(whole, names, pnum)
      np.testing.assert_array_equal(
        got, want, err_msg=f"{tensor} on processor {pnum}, {self.setting}"
      )

  def check_variation(self):
    """A tensor varies along just those mesh axes that split it."""
    if self.setting.kind != VIRTUAL:
      return
    for tensor, value in self.lowering.tensors.items():
      if not isinstance(value, PendingSum):
        axes = self.setting.mesh_axes(tensor.shape.dimension_names)
        want = tuple(sorted(a for a in axes if a is not None))
        assert value.axes == want, (str(tensor), value, str(self.setting))

  @property
  def collectives(self):
    """(operation's class, kind, mesh axes) of all that was sent."""
    return [
      (type(getattr(op, "primitive", op)).__name__, c.kind, c.mesh_axes)
      for op, c in self.lowering.collectives
    ]

  @property
  def kinds(self):
    return [c.kind for _, c in self.lowering.collectives]

  def counters(self, *prefixes):
    """Those counters whose key begins with one of the prefixes."""
    return [c for c in self.lowering.counters if c[0].startswith(prefixes)]


class SimdRun(Run):
  """The same where every replica builds and lowers the program."""

  def __init__(self, build, where):
    self.setting = where
    self.impl = where.impl
    trace_without_values(self._make_variables, build, (), {})

    def program():
      self.mesh = new_mesh()
      result = build(self.mesh)
      single = isinstance(result, mtf.Tensor)
      self.tensors = [result] if single else list(result)
      self.lowering = mtf.Lowering(self.mesh.graph, {self.mesh: self.impl})
      some = [x for x in self.tensors if x is not None]
      wholes = [self.lowering.export_to_tf_tensor(x) for x in some]
      return wholes, [self.lowering.slices(x) for x in some]

    @tf.function(autograph=False)
    def everywhere():
      return self.impl.run_on_all(program)

    wholes, slices = zip(*everywhere(), strict=True)
    some = [x for x in self.tensors if x is not None]
    self._wholes = dict(zip(some, zip(*wholes, strict=True), strict=True))
    self._slices = dict(zip(some, zip(*slices, strict=True), strict=True))

  def _make_variables(self, mesh, result):
    del result
    state = VariableState(self.impl.variable_store)
    for variable in mesh.graph.all_variables:
      state.variable(variable, self.impl)

  def value(self, i=0):
    tensor = self.tensors[i]
    if tensor is None:
      return None
    first, *others = (x.numpy() for x in self._wholes[tensor])
    for other in others:
      np.testing.assert_array_equal(other, first)
    return first

  def slices(self, tensor):
    return [x.numpy() for x in self._slices[tensor]]


def run_in(where, build):
  """Runs `build(mesh)` in a setting."""
  return (SimdRun if where.kind == SIMD else Run)(build, where)


def run(build, mesh="", layout="", kind=VIRTUAL):
  """Runs `build(mesh)` on a mesh and layout given as strings."""
  return run_in(setting(mesh, layout, kind), build)


def tensor(mesh, shape, value=None, dtype=np.float32):
  """An array as a mesh tensor; by default 0, 1, 2, ..."""
  shape = mtf.convert_to_shape(shape)
  if value is None:
    value = np.arange(shape.size).reshape(shape.to_integer_list)
  return mtf.import_tf_tensor(mesh, tf.constant(value, dtype), shape)
