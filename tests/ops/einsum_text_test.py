"""Einsum as text: what it means, and where it points."""

import numpy as np
import pytest

import mesh_tf2 as mtf

from tests.support.running import new_mesh, run, tensor


def _operands(mesh):
  x = tensor(mesh, "batch:4 length:2 d_model:3")
  return x, tensor(mesh, "d_model:3 d_ff:8")


@pytest.mark.parametrize(
  ("text", "equation"),
  [
    ("batch length d_model, d_model d_ff -> batch length d_ff", "bld,df->blf"),
    ("d_model batch length,d_ff d_model->d_ff batch", "bld,df->fb"),
    ("batch length d_model, d_model d_ff ->", "bld,df->"),
    ("  batch\nlength\td_model , d_model d_ff -> length ", "bld,df->l"),
  ],
)
def test_the_words_are_the_names_of_the_dimensions(text, equation):
  def build(mesh):
    x, w = _operands(mesh)
    return [mtf.einsum(text, x, w), mtf.einsum([x, w], text)]

  one, two = run(build, "x:2;y:2", "batch:x;d_ff:y").values
  x, w = np.arange(24).reshape(4, 2, 3), np.arange(24).reshape(3, 8)
  np.testing.assert_array_equal(one, np.einsum(equation, x, w))
  np.testing.assert_array_equal(two, one)


def test_any_number_of_operands_may_follow_a_text():
  mesh = new_mesh()
  vectors = [tensor(mesh, f"{n}:2") for n in "abcde"]
  y = mtf.einsum("a, b, c, d, e -> e c a", *vectors)
  assert y.shape == mtf.convert_to_shape("e:2 c:2 a:2")
  assert mtf.einsum("a -> ", vectors[0]).shape == mtf.Shape([])
  assert mtf.einsum("a, b -> b", *vectors[:2], name="mine").name == "mine:0"


# A text, what is wrong, and what is marked.
MISTAKES = [
  (
    "batch length d_modle, d_model d_ff -> batch length d_ff",
    "operand 1, import:0 [batch:4 length:2 d_model:3], has no dimension "
    "'d_modle' (did you mean \"d_model\"?)",
    "d_modle",
  ),
  (
    "batch length d_model, d_model d_ff -> batch lenght d_ff",
    "no operand has 'lenght' (did you mean \"length\"?)",
    "lenght",
  ),
  (
    "batch length d_model, d_model d_ff -> heads",
    "no operand has 'heads'; take one of: batch, length, d_model, d_ff",
    "heads",
  ),
  (
    "batch:4 length d_model, d_model d_ff -> d_ff",
    "has no dimension 'batch:4'; write the name only, without a size",
    "batch:4",
  ),
  (
    "batch length d_model, d_ff -> batch length",
    "operand 2, import_1:0 [d_model:3 d_ff:8], has 'd_model', too; write down "
    "all dimensions",
    "d_ff",
  ),
  (
    "batch length d_model d_model d_ff -> d_ff",
    "described operands: 1, given: 2; a comma stands between two of them",
    "batch length d_model d_model d_ff",
  ),
  (
    "batch length d_model, d_model d_ff, heads -> d_ff",
    "described operands: 3, given: 2",
    "heads",
  ),
  (
    "batch length d_model, d_model d_ff => d_ff",
    "one '->' is needed before the result",
    None,
  ),
  (
    "batch length d_model, d_model d_ff -> length -> d_ff",
    "one '->' is needed before the result",
    "->",
  ),
  (
    "batch length d_model, d_model d_ff -> length, d_ff",
    "there is one result, so no comma",
    ",",
  ),
  (
    "batch length d_model length, d_model d_ff -> d_ff",
    "has 'length' only once; for a diagonal, rename one dimension and take "
    "mtf.diagonal first",
    "length",
  ),
  (
    "batch length d_model, d_model d_ff -> d_ff d_ff",
    "'d_ff' stands twice in the result",
    "d_ff",
  ),
]


@pytest.mark.parametrize(
  ("text", "message", "marked"), MISTAKES, ids=[m[1][-30:] for m in MISTAKES]
)
def test_the_word_that_is_wrong_is_marked(text, message, marked):
  with pytest.raises(mtf.ShapeError) as caught:
    mtf.einsum(text, *_operands(new_mesh()))
  said, shown, marks = str(caught.value).split("\n")
  assert said.startswith("einsum: ")
  assert message in said
  assert shown == f"  {text}"
  begin, length = marks.index("^"), marks.count("^")
  assert marks == " " * begin + "^" * length
  place = begin - 2
  if marked is None:
    assert place == len(text)
  else:
    # Of a word that stands there twice, the last one is wrong.
    assert (place, length) == (text.rindex(marked), len(marked))


def test_what_is_no_tensor_is_no_operand():
  x, _ = _operands(new_mesh())
  with pytest.raises(TypeError, match=r"einsum multiplies mesh tensors, got 3"):
    mtf.einsum("batch length d_model, d_model -> batch", x, 3)
  with pytest.raises(TypeError, match=r"einsum takes a list of tensors, got"):
    mtf.einsum(x, x)
  with pytest.raises(ValueError, match="einsum needs at least one tensor"):
    mtf.einsum("batch -> batch")


def test_two_sizes_of_one_name_are_told_with_the_tensors():
  x, w = _operands(new_mesh())
  other = tensor(x.mesh, "d_model:5 d_ff:8")
  for build in (lambda: mtf.einsum([x, other]), lambda: x @ other):
    with pytest.raises(
      mtf.ShapeError,
      match=r"einsum: dimension 'd_model' has size 3 in import:0 \[batch:4 .*"
      r"\] and size 5 in import_2:0 \[d_model:5 d_ff:8\]; rename it in one of",
    ):
      build()
  with pytest.raises(mtf.ShapeError, match="add: dimension 'd_model' has size"):
    w + other
  with pytest.raises(mtf.ShapeError, match="where: dimension 'd_model' has"):
    mtf.where(w > 0, w, other)


def test_truth_values_are_not_multiplied():
  x, w = _operands(new_mesh())
  with pytest.raises(ValueError, match="einsum takes numbers, got bool; cast"):
    mtf.einsum([x > 0, w > 0])
