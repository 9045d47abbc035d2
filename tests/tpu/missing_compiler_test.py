"""What is told where nothing compiles for TPUs."""

import importlib.util

import pytest

import mesh_tf2 as mtf
from mesh_tf2.tpu import xla


def test_a_compiler_that_is_not_installed_is_named_with_the_way_to_get_it(
  monkeypatch,
):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  xla.topology.cache_clear()
  with pytest.raises(mtf.tpu.MissingCompilerError, match=r"\[tpu-aot\]"):
    mtf.tpu.compile(mtf.Program("x:8"), lambda mesh: None, topology="v2:2x2x1")


def test_a_compiler_that_would_ask_the_network_is_not_loaded(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
  monkeypatch.setenv("TPU_SKIP_MDS_QUERY", "")
  with pytest.raises(ImportError, match="TPU_SKIP_MDS_QUERY=1"):
    xla.require_compiler()
