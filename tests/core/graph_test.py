"""The graph: names, captures, and mistakes that it catches."""

import pytest
import tensorflow as tf

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor


def test_names_are_unique_within_a_scope_whatever_their_case():
  graph = mtf.Graph()
  assert [graph.unique_name(n) for n in ("x", "x", "X")] == ["x", "x_1", "X_2"]
  with tf.compat.v1.variable_scope("encoder"):
    assert graph.unique_name("x") == "encoder/x"
  assert graph.unique_name("y", mark_as_used=False) == "y"
  assert graph.unique_name("y") == "y"


def test_a_number_behind_a_name_makes_no_name_that_there_is():
  graph = mtf.Graph()
  wanted = ("x", "x_1", "x", "y", "y", "y_1")
  names = [graph.unique_name(n) for n in wanted]
  assert names == ["x", "x_1", "x_2", "y", "y_1", "y_1_1"]


def test_operations_are_captured_in_order():
  mesh = new_mesh()
  x = tensor(mesh, "a:4")
  result, operations = mesh.graph.capture_operations(lambda: (x + 1) * x)
  assert [op.name for op in operations] == ["scalar_add", "multiply"]
  assert operations[-1].outputs == [result]


def test_a_tensor_prints_as_one_would_write_it():
  x = tensor(new_mesh(), "batch:8 d_model:64")
  assert repr(x) == "import:0: float32[batch:8 d_model:64]"
  assert x.to_string.startswith("Tensor[import:0, Shape[batch=8, d_model=64]")
  assert bool(x)


def test_an_error_names_the_operation_and_its_operands():
  mesh = new_mesh()
  x, y = tensor(mesh, "a:4"), tensor(mesh, "a:4", dtype="int32")
  with pytest.raises(ValueError, match="add needs operands of one dtype") as e:
    mtf.add(x, y)
  assert "float32[a:4]" in str(e.value)
  assert "int32[a:4]" in str(e.value)


def test_tensors_of_two_graphs_do_not_meet():
  with pytest.raises(ValueError, match="belongs to another graph"):
    mtf.add(tensor(new_mesh(), "a:4"), tensor(new_mesh(), "a:4"))


def test_users_may_write_an_operation_of_their_own():
  class Doubled(mtf.Operation):
    def __init__(self, x):
      super().__init__([x], name="doubled")
      self._outputs = [mtf.Tensor(self, x.shape, x.dtype)]

    def gradient(self, grad_ys):
      return [grad_ys[0] * 2]

    def lower(self, lowering):
      impl = lowering.mesh_impl(self)
      slices = lowering.slices(self.inputs[0])
      doubled = impl.slicewise(lambda x: x * 2, slices)
      lowering.set_tensor_lowering(self.outputs[0], doubled)

  def build(mesh):
    x = tensor(mesh, "a:4")
    y = Doubled(x * x).outputs[0]
    return [y, *mtf.gradients([y], [x])]

  for kind in ("virtual", "placement"):
    y, dx = run(build, "x:2", "a:x", kind).values
    assert y.tolist() == [0, 2, 8, 18]
    assert dx.tolist() == [0, 4, 8, 12]


def test_a_lowering_of_the_wrong_shape_names_itself():
  class Wrong(mtf.Operation):
    def __init__(self, x):
      super().__init__([x], name="wrong")
      self._outputs = [mtf.Tensor(self, "a:2", x.dtype)]

    def lower(self, lowering):
      lowering.set_tensor_lowering(
        self.outputs[0], lowering.slices(self.inputs[0])
      )

  with pytest.raises(
    AssertionError, match=r"wrong lowered .* to slices float32\[4\]; .*\[2\]"
  ):
    run(lambda mesh: Wrong(tensor(mesh, "a:4")).outputs[0])


def test_python_operators_are_bound():
  def build(mesh):
    x = tensor(mesh, "a:4", [1, 2, 3, 4], "int32")
    return [x + x, 1 + x, x - 1, 1 - x, 2 * x, -x, x // 2, 7 // x, x % 3, x / 2]

  values = [v.tolist() for v in run(build).values]
  assert values == [
    [2, 4, 6, 8],
    [2, 3, 4, 5],
    [0, 1, 2, 3],
    [0, -1, -2, -3],
    [2, 4, 6, 8],
    [-1, -2, -3, -4],
    [0, 1, 1, 2],
    [7, 3, 2, 1],
    [1, 2, 0, 1],
    [0.5, 1, 1.5, 2],
  ]


def test_variables_can_be_taken_from_the_optimizer():
  mesh = new_mesh()
  mtf.get_variable(mesh, "w", "a:4")
  mtf.get_variable(mesh, "b", "a:4", trainable=False)
  graph = mesh.graph
  assert [v.name for v in graph.trainable_variables] == ["w"]
  assert [v.name for v in graph.all_variables] == ["w", "b"]
  graph.make_variables_untrainable(graph.all_variables)
  assert graph.trainable_variables == []
