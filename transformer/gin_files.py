"""Reads gin files: ours, those of Mesh TensorFlow, and those of the user.

    parse_gin_defaults_and_flags(
      gin_files=["models/bi_base.gin", "models/tiny.gin", "mine.gin"],
      gin_params=["run.train_steps = 1000"],
    )

`base.gin` of the installed configs is read first, then the files, then the
parameters; what comes later overrides. A file is looked for where it is named,
then below every location prefix, then among the installed configs. Files of
Mesh TensorFlow are read as they are, with `mesh_tensorflow.` taken for
`mesh_tf2.`.

A mistake is one `GinFileError`, which names the file, the line, the text and
the nearest name that is known.
"""

import collections.abc
import dataclasses
import importlib
import importlib.resources
import pathlib

import gin

from . import gin_names
from .gin_binder import SKIP_FLAG, Binder
from .gin_statements import GinFileError, Include, Source, statements

__all__ = [
  "SKIP_FLAG",
  "GinFileError",
  "packaged_files",
  "parse_gin_defaults_and_flags",
]

BASE = "base.gin"
CONFIGS = "mesh_tf2.configs"


def register_configurables() -> None:
  """Imports everything that gin files can name."""
  importlib.import_module("mesh_tf2.transformer.bindings")


def parse_gin_defaults_and_flags(
  gin_files: collections.abc.Sequence[str] = (),
  gin_params: collections.abc.Sequence[str] = (),
  location_prefixes: collections.abc.Sequence[str] = (),
  *,
  skip_unknown: bool = False,
  finalize_config: bool = True,
  register: collections.abc.Callable[[], None] = register_configurables,
) -> list[Source]:
  """Binds what `base.gin`, the files and the parameters say, in this order.

  Args:
    gin_files: names of files, short (`models/tiny.gin`) or paths.
    gin_params: statements, each as it would stand in a file.
    location_prefixes: folders in which to look for files, in this order.
    skip_unknown: skip what needs a package that is not installed, as the
      operative config of a program built on Mesh TensorFlow may. Names that
      look like a registered one are still errors.
    finalize_config: lock the configuration afterwards.
    register: registers with gin what the files may name.

  Returns:
    The places of the statements that were skipped.

  Raises:
    GinFileError: if a file is missing, or cannot be read, or names what there
      is not.
  """
  register()
  binder = Binder(skip_unknown)
  reader = _Reader(
    binder, [pathlib.Path(), *map(pathlib.Path, location_prefixes)]
  )
  reader.read_file(_configs() / BASE, None)
  for file in gin_files:
    reader.read_file(reader.find(file, None), None)
  for param in gin_params:
    reader.read_text(param, "--gin_param")
  binder.check_macros()
  binder.check_numbers()
  if finalize_config:
    try:
      gin.finalize()
    except ValueError as error:
      raise GinFileError(str(error).strip().partition("\n")[0]) from None
  return binder.skipped


def packaged_files() -> list[str]:
  """The short names of the gin files that are installed."""
  found = _configs().rglob("*.gin")
  return sorted(path.relative_to(_configs()).as_posix() for path in found)


def _configs() -> pathlib.Path:
  return pathlib.Path(str(importlib.resources.files(CONFIGS)))


@dataclasses.dataclass
class _Reader:
  """Finds files, follows their includes, and hands on what they bind.

  Attributes:
    binder: takes the statements that are not includes.
    folders: where to look for a file before the installed configs.
    open_files: the files that are being read, outermost first.
  """

  binder: Binder
  folders: list[pathlib.Path]
  open_files: list[pathlib.Path] = dataclasses.field(default_factory=list)

  def find(self, name: str, source: Source | None) -> pathlib.Path:
    """The file of this name; `source` is the statement that includes it."""
    for folder in [*self.folders, _configs()]:
      if (folder / name).is_file():
        return folder / name
    near = gin_names.nearest(name, packaged_files())
    hint = f"; did you mean {near!r}?" if near else ""
    places = ", ".join(str(folder) for folder in self.folders[1:])
    raise _error(
      source,
      f"there is no gin file {name!r}, neither here "
      f"({pathlib.Path.cwd()}), nor {f'below {places}, nor ' * bool(places)}"
      f"among the installed configs{hint}",
    )

  def read_file(self, path: pathlib.Path, source: Source | None) -> None:
    """Reads a file; `source` is the statement that includes it, if any."""
    if path in self.open_files:
      raise _error(source, f"{path} includes itself")
    try:
      text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
      raise _error(source, f"{path} cannot be read: {error}") from None
    self.open_files.append(path)
    self.read_text(text, str(path))
    self.open_files.pop()

  def read_text(self, text: str, file: str) -> None:
    """Reads statements; `file` is what errors call the place they come from."""
    for statement in statements(text, file):
      if isinstance(statement, Include):
        path = self.find(statement.path, statement.source)
        self.read_file(path, statement.source)
      else:
        self.binder.bind(statement)


def _error(source: Source | None, message: str) -> GinFileError:
  return source.error(message) if source else GinFileError(message)
