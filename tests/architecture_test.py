"""The house stands: imports go down, and files stay small and well named.

Each rule is a function from the folder of a project to what breaks it there, so
that it can be tried on a made-up project as well as on this one.
"""

import ast
import collections.abc
import dataclasses
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Where a folder of the repository is found once it is installed.
PACKAGES = {
  "mesh_tf2": "mesh_tf2",
  "transformer": "mesh_tf2.transformer",
  "data": "mesh_tf2.data",
  "configs": "mesh_tf2.configs",
}

# From the ground up; a prefix stands for everything under it, and the longest
# that fits is the one that counts. Several prefixes on one floor may see each
# other, as long as they do not do so in a circle.
FLOORS = [
  ["mesh_tf2.core"],
  ["mesh_tf2.spmd"],
  [
    "mesh_tf2.ops.source",
    "mesh_tf2.ops.variables",
    "mesh_tf2.ops.effects",
    "mesh_tf2.ops.cast",
    "mesh_tf2.ops.operands",
    "mesh_tf2.ops.initializers",
    "mesh_tf2.ops.slicewise",
  ],
  ["mesh_tf2.ops.linear"],
  [
    "mesh_tf2.ops.elementwise",
    "mesh_tf2.ops.unary",
    "mesh_tf2.ops.binary",
  ],
  ["mesh_tf2.ops"],
  ["mesh_tf2.autodiff"],
  ["mesh_tf2.passes"],
  ["mesh_tf2.layers"],
  [
    "mesh_tf2.program",
    "mesh_tf2.checkpoint",
    "mesh_tf2.decode",
    "mesh_tf2.optimize",
    "mesh_tf2.auto_layout",
    "mesh_tf2.tpu",
  ],
  ["mesh_tf2"],  # the public names, which show all of the language
  ["mesh_tf2.transformer", "mesh_tf2.data", "mesh_tf2.configs"],
  [
    "mesh_tf2.transformer.run",
    "mesh_tf2.transformer.bindings",
    "mesh_tf2.transformer.main",
  ],
]

BANNED = [
  "keras",
  "seqio",
  "tensor2tensor",
  "tensorflow.keras",
  "tensorflow.python",
  "tensorflow_text",
]
GIN_FOLDERS = ["mesh_tf2.transformer", "mesh_tf2.data"]
VAGUE = {"utils", "util", "misc", "common", "helpers"}
LONGEST = 500


@dataclasses.dataclass(frozen=True)
class Module:
  name: str
  path: pathlib.Path
  is_package: bool

  @property
  def tree(self) -> ast.Module:
    return ast.parse(self.path.read_text(encoding="utf-8"))

  def imports(self, nodes: collections.abc.Iterable[ast.stmt]) -> set[str]:
    """Absolute names of what is imported; of both `a` and `a.b` for b in a."""
    found = set()
    for node in nodes:
      if isinstance(node, ast.Import):
        found |= {alias.name for alias in node.names}
      elif isinstance(node, ast.ImportFrom):
        source = self._absolute(node)
        found |= {source} | {f"{source}.{alias.name}" for alias in node.names}
    return found

  def _absolute(self, node: ast.ImportFrom) -> str:
    if not node.level:
      return node.module
    up = node.level - self.is_package
    base = self.name.split(".")[:-up] if up else self.name.split(".")
    return ".".join(base + ([node.module] if node.module else []))


def modules(root: pathlib.Path) -> dict[str, Module]:
  found = {}
  for folder, package in PACKAGES.items():
    for path in sorted((root / folder).rglob("*.py")):
      inner = path.relative_to(root / folder).with_suffix("").parts
      is_package = inner[-1] == "__init__"
      name = ".".join((package, *(inner[:-1] if is_package else inner)))
      found[name] = Module(name, path, is_package)
  return found


def under(name: str, prefix: str) -> bool:
  return name == prefix or name.startswith(prefix + ".")


def floor(name: str) -> int:
  fits = [
    (len(prefix), number)
    for number, prefixes in enumerate(FLOORS)
    for prefix in prefixes
    if under(name, prefix)
  ]
  return max(fits)[1]


def run_on_import(body: list[ast.stmt]) -> list[ast.stmt]:
  """The statements run when a module is imported, whatever they stand in."""
  found = []
  for node in body:
    found.append(node)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
      found += run_on_import(node.orelse)
    elif isinstance(node, (ast.If, ast.Try, ast.With)):
      for part in ("body", "orelse", "finalbody"):
        found += run_on_import(getattr(node, part, []))
      for handler in getattr(node, "handlers", []):
        found += run_on_import(handler.body)
  return found


def needs(module: Module, known: dict[str, Module]) -> set[str]:
  """The modules of the project that importing this one imports."""
  names = module.imports(run_on_import(module.tree.body))
  found = {name for name in names if name in known}
  # `from mesh_tf2.core import shape` needs the file, not what the package
  # shows; its parents are imported by Python and hold no more than a docstring.
  longest = {
    name
    for name in found
    if not any(other != name and under(other, name) for other in found)
  }
  return longest - {module.name}


def upward_imports(root: pathlib.Path) -> list[str]:
  known = modules(root)
  wrong = []
  for module in known.values():
    for target in sorted(needs(module, known)):
      alone = under(module.name, "mesh_tf2.data")
      strays = alone and not under(target, "mesh_tf2.data")
      if strays or floor(target) > floor(module.name):
        wrong.append(f"{module.name} -> {target}")
  return wrong


def circles(root: pathlib.Path) -> list[str]:
  known = modules(root)
  graph = {name: sorted(needs(module, known)) for name, module in known.items()}
  found, done = [], set()

  def visit(name: str, trail: list[str]) -> None:
    if name in trail:
      found.append(" -> ".join([*trail[trail.index(name) :], name]))
    elif name not in done:
      for target in graph[name]:
        visit(target, [*trail, name])
      done.add(name)

  for name in graph:
    visit(name, [])
  return found


def banned_imports(root: pathlib.Path) -> list[str]:
  wrong = []
  for module in modules(root).values():
    nodes = list(ast.walk(module.tree))
    names = module.imports(nodes)
    names |= {
      "tensorflow" + ast.unparse(node)[2:]
      for node in nodes
      if isinstance(node, ast.Attribute)
      and ast.unparse(node) in ("tf.python", "tf.keras")
    }
    banned = list(BANNED)
    if not any(under(module.name, folder) for folder in GIN_FOLDERS):
      banned.append("gin")
    wrong += [
      f"{module.name} -> {name}"
      for name in sorted(names)
      if any(under(name, prefix) for prefix in banned)
    ]
  return wrong


def long_files(root: pathlib.Path) -> list[str]:
  counts = {
    name: len(module.path.read_text(encoding="utf-8").splitlines())
    for name, module in modules(root).items()
  }
  return [
    f"{name}: {count} lines"
    for name, count in counts.items()
    if count > LONGEST
  ]


def vague_names(root: pathlib.Path) -> list[str]:
  return [
    str(path.relative_to(root))
    for folder in [*PACKAGES, "tests", "benchmarks", "examples"]
    for path in sorted((root / folder).rglob("*.py"))
    if path.stem in VAGUE
  ]


RULES = [upward_imports, circles, banned_imports, long_files, vague_names]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_project_keeps_the_rule(rule):
  wrong = rule(ROOT)
  assert not wrong, "\n  ".join([f"{rule.__name__}:", *wrong])


def test_the_rules_look_at_the_real_files():
  known = modules(ROOT)
  assert known["mesh_tf2.core.shape"].path == ROOT / "mesh_tf2/core/shape.py"
  assert "mesh_tf2.transformer.schedules" in known


# A file of a made-up project, what it holds, and what the rule says of it.
BROKEN = [
  (
    upward_imports,
    "mesh_tf2/core/graph.py",
    "from mesh_tf2.spmd import mesh",
    "mesh_tf2.core.graph -> mesh_tf2.spmd.mesh",
  ),
  (
    upward_imports,
    "mesh_tf2/core/graph.py",
    "try:\n  import mesh_tf2.spmd.mesh\nexcept ImportError:\n  pass",
    "mesh_tf2.core.graph -> mesh_tf2.spmd.mesh",
  ),
  (
    upward_imports,
    "mesh_tf2/ops/linear/einsum.py",
    "from mesh_tf2.ops.elementwise import cast",
    "mesh_tf2.ops.linear.einsum -> mesh_tf2.ops.elementwise",
  ),
  (
    upward_imports,
    "mesh_tf2/ops/variables.py",
    "from .linear import einsum",
    "mesh_tf2.ops.variables -> mesh_tf2.ops.linear.einsum",
  ),
  (
    upward_imports,
    "mesh_tf2/spmd/mesh.py",
    "import mesh_tf2 as mtf",
    "mesh_tf2.spmd.mesh -> mesh_tf2",
  ),
  (
    upward_imports,
    "transformer/schedules.py",
    "from .run import train",
    "mesh_tf2.transformer.schedules -> mesh_tf2.transformer.run.train",
  ),
  (
    upward_imports,
    "data/pack.py",
    "from mesh_tf2.core import graph",
    "mesh_tf2.data.pack -> mesh_tf2.core.graph",
  ),
  (
    circles,
    "mesh_tf2/core/graph.py",
    "from . import check",
    "mesh_tf2.core.graph -> mesh_tf2.core.check -> mesh_tf2.core.graph",
  ),
  (
    banned_imports,
    "mesh_tf2/core/graph.py",
    "import gin",
    "mesh_tf2.core.graph -> gin",
  ),
  (
    banned_imports,
    "transformer/schedules.py",
    "def f():\n  from tensorflow.python.ops import array_ops",
    "mesh_tf2.transformer.schedules -> tensorflow.python.ops",
  ),
  (
    banned_imports,
    "data/pack.py",
    "import tensorflow as tf\nlayer = tf.keras.layers.Dense",
    "mesh_tf2.data.pack -> tensorflow.keras",
  ),
  (
    banned_imports,
    "data/pack.py",
    "import seqio",
    "mesh_tf2.data.pack -> seqio",
  ),
  (
    long_files,
    "data/pack.py",
    "x = 1\n" * 501,
    "mesh_tf2.data.pack: 501 lines",
  ),
  (vague_names, "data/utils.py", "", "data/utils.py"),
]


@pytest.fixture
def project(tmp_path):
  files = {
    "mesh_tf2/__init__.py": "from mesh_tf2.core import graph",
    "mesh_tf2/core/__init__.py": "",
    "mesh_tf2/core/graph.py": (
      "import typing\n"
      "if typing.TYPE_CHECKING:\n  from mesh_tf2.spmd import mesh"
    ),
    "mesh_tf2/core/check.py": "from .graph import Graph",
    "mesh_tf2/spmd/__init__.py": "",
    "mesh_tf2/spmd/mesh.py": "from mesh_tf2.core.graph import Graph",
    "mesh_tf2/ops/__init__.py": "",
    "mesh_tf2/ops/variables.py": "import tensorflow as tf",
    "mesh_tf2/ops/elementwise.py": "from .linear.einsum import einsum",
    "mesh_tf2/ops/linear/__init__.py": "",
    "mesh_tf2/ops/linear/einsum.py": "",
    "transformer/__init__.py": "",
    "transformer/schedules.py": "import gin\nimport mesh_tf2 as mtf",
    "transformer/run/__init__.py": "",
    "transformer/run/train.py": "from mesh_tf2.data import pack",
    "data/__init__.py": "",
    "data/pack.py": "import gin",
  }
  for name, text in files.items():
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
  return tmp_path


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_sound_project_passes(rule, project):
  assert rule(project) == []


@pytest.mark.parametrize(("rule", "name", "text", "complaint"), BROKEN)
def test_a_broken_rule_is_found(rule, name, text, complaint, project):
  (project / name).write_text(text)
  assert complaint in rule(project)
