"""Eight CPU devices for XLA, and no network, before anything is imported."""

import importlib.util
import os

import pytest

DEVICES = 8


def pytest_configure(config):
  missing = [
    name for name in ("jax", "libtpu") if importlib.util.find_spec(name) is None
  ]
  if missing or os.environ.get("TPU_SKIP_MDS_QUERY") != "1":
    pytest.exit(
      "these tests compile for TPUs: they need mesh_tf2[tpu-aot] in an "
      "environment of its own and TPU_SKIP_MDS_QUERY=1; make test-tpu sees to "
      "both",
      returncode=4,
    )
  os.environ["JAX_PLATFORMS"] = "cpu"
  flag = f"--xla_force_host_platform_device_count={DEVICES}"
  os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
