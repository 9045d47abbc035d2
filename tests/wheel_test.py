"""A wheel holds one package, with all of its modules and configs."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Where the folders of the repository are in a wheel.
FOLDERS = {
  "mesh_tf2": "mesh_tf2",
  "transformer": "mesh_tf2/transformer",
  "data": "mesh_tf2/data",
  "configs": "mesh_tf2/configs",
}
FILES = ["LICENSE", "README.md", "pyproject.toml", "setup.py"]

# Builds without pip and without a network: TensorFlow brings what it takes.
BUILD = "from setuptools import build_meta; build_meta.build_wheel('dist')"

# Reads a config from wherever the package is.
READ = """
import sys
sys.path.insert(0, sys.argv[1])
from mesh_tf2.transformer import gin_files
gin_files.parse_gin_defaults_and_flags(["models/bi_base.gin"])
print(gin_files.__file__)
print(*gin_files.packaged_files())
"""


def run(*arguments, cwd):
  done = subprocess.run(
    [sys.executable, *map(str, arguments)],
    cwd=cwd,
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
  """Built from a copy: setuptools would leave its traces in the repository."""
  copy = tmp_path_factory.mktemp("source")
  for folder in FOLDERS:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
  for file in FILES:
    shutil.copy(ROOT / file, copy)
  (copy / "dist").mkdir()
  run("-c", BUILD, cwd=copy)
  (built,) = (copy / "dist").iterdir()
  return built


def in_wheel(wheel):
  """The names of the files in it, and those of its description."""
  names = zipfile.ZipFile(wheel).namelist()
  about = {name for name in names if ".dist-info/" in name}
  return set(names) - about, about


def test_a_wheel_holds_all_modules_and_configs_and_nothing_else(wheel):
  wanted = {
    f"{inside}/{path.relative_to(ROOT / folder).as_posix()}"
    for folder, inside in FOLDERS.items()
    for pattern in ("*.py", "*.gin")
    for path in (ROOT / folder).rglob(pattern)
  }
  found, _ = in_wheel(wheel)
  assert found == wanted


def test_the_only_package_on_the_top_level_is_mesh_tf2(wheel):
  found, about = in_wheel(wheel)
  assert {name.partition("/")[0] for name in found} == {"mesh_tf2"}
  (top_level,) = (name for name in about if name.endswith("top_level.txt"))
  assert zipfile.ZipFile(wheel).read(top_level).split() == [b"mesh_tf2"]


def test_a_wheel_has_the_command_and_the_licence(wheel):
  _, about = in_wheel(wheel)
  assert any(name.endswith("LICENSE") for name in about)
  (scripts,) = (name for name in about if name.endswith("entry_points.txt"))
  assert (
    b"mesh_transformer = mesh_tf2.transformer.main:main"
    in zipfile.ZipFile(wheel).read(scripts)
  )


def test_configs_are_found_by_short_name_in_an_installed_wheel(wheel, tmp_path):
  zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
  location, names = run(
    "-c", READ, tmp_path / "installed", cwd=tmp_path
  ).splitlines()
  assert location.startswith(str(tmp_path / "installed"))
  wanted = (ROOT / "configs").rglob("*.gin")
  assert set(names.split()) == {
    path.relative_to(ROOT / "configs").as_posix() for path in wanted
  }
