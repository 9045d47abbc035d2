"""Installs the top-level folders as one import package, `mesh_tf2`."""

import pathlib

import setuptools

ROOT = pathlib.Path(__file__).resolve().parent

# The folders keep their short names in the repository; installed, they are
# sub-packages, so that nobody's site-packages gets a package named `data`.
FOLDERS = {
  "mesh_tf2": "mesh_tf2",
  "mesh_tf2.transformer": "transformer",
  "mesh_tf2.data": "data",
  "mesh_tf2.configs": "configs",
}

TENSORFLOW = {
  "cpu": ["tensorflow>=2.20,<2.22"],
  "gpu": ["tensorflow[and-cuda]>=2.20,<2.22"],
  "tpu": ["tensorflow-tpu==2.20.*", "libtpu==0.0.17"],
  # Compiles for TPUs on a host without one. The four fit each other.
  "tpu-aot": [
    "tensorflow-tpu==2.20.0",
    "libtpu==0.0.17",
    "jax==0.6.2",
    "jaxlib==0.6.2",
  ],
}


def packages() -> list[str]:
  """Every package below the mapped folders, under its installed name."""
  found = []
  for name, folder in FOLDERS.items():
    found.append(name)
    found += [f"{name}.{inner}" for inner in setuptools.find_packages(folder)]
  return found


def long_description() -> str:
  """The README, or nothing where it was not packed."""
  readme = ROOT / "README.md"
  return readme.read_text(encoding="utf-8") if readme.exists() else ""


setuptools.setup(
  name="mesh_tf2",
  version="0.1.0",
  description="Mesh-TensorFlow's named dimensions and layouts on TensorFlow 2",
  long_description=long_description(),
  long_description_content_type="text/markdown",
  author="The mesh_tf2 Authors",
  license="Apache-2.0",
  packages=packages(),
  package_dir=FOLDERS,
  package_data={"mesh_tf2.configs": ["*.gin", "**/*.gin"]},
  entry_points={
    "console_scripts": ["mesh_transformer = mesh_tf2.transformer.main:main"]
  },
  python_requires=">=3.10,<3.14",
  install_requires=[
    "absl-py>=2.1,<3",
    "babel>=2.14,<3",
    "gin-config>=0.5,<0.6",
    "importlib-resources>=6,<8",  # TFDS imports it and does not say so
    "numpy>=1.26,<3",
    "sacrebleu>=2.4,<3",
    "sentencepiece>=0.2,<0.3",
    "tensorflow-datasets>=4.9.9,<5",
    "tqdm>=4.66,<5",
  ],
  extras_require={
    **TENSORFLOW,
    "test": [
      "hypothesis>=6.100,<7",
      "pytest>=8,<10",
      "pytest-xdist>=3.6,<4",
      "setuptools>=64",
      "wheel>=0.40",
    ],
    "lint": ["mypy>=1.15,<3", "ruff==0.17.*"],
  },
)
