"""The examples in docstrings run, and print what stands below them."""

import doctest
import importlib
import importlib.util
import inspect
import pathlib

import pytest

import mesh_tf2 as mtf

PACKAGES = ["mesh_tf2", "mesh_tf2.transformer", "mesh_tf2.data"]

# What everybody needs has an example.
ILLUSTRATED = [
  mtf.Dimension,
  mtf.Program,
  mtf.Shape,
  mtf.convert_to_layout_rules,
  mtf.convert_to_shape,
  mtf.einsum,
  mtf.get_variable,
  mtf.gradients,
  mtf.import_tf_tensor,
  mtf.reshape,
]


def modules_with_examples():
  """Names of the installed modules in whose source a prompt stands."""
  found = []
  for package in PACKAGES:
    (root,) = importlib.util.find_spec(package).submodule_search_locations
    for path in sorted(pathlib.Path(root).rglob("*.py")):
      if ">>> " in path.read_text(encoding="utf-8"):
        inner = path.relative_to(root).with_suffix("").parts
        found.append(".".join((package, *inner)).removesuffix(".__init__"))
  return found


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_print_what_they_say(name):
  found = doctest.testmod(importlib.import_module(name))
  assert found.attempted
  assert not found.failed


@pytest.mark.parametrize("thing", ILLUSTRATED, ids=lambda x: x.__name__)
def test_what_everybody_needs_has_an_example(thing):
  assert ">>> " in inspect.getdoc(thing)
