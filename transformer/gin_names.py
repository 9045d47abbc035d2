"""The names that gin files may use: what is registered, and what is near.

gin has no public list of what is registered with it, so its registry is read
here, in `_registry` and nowhere else.
"""

import collections.abc
import difflib
import inspect
import typing

import gin

# Layers that the gin files of Mesh TensorFlow size whether or not a model has
# them. Where one of these is not registered, a binding of it has no effect, and
# only a model that uses it is an error.
OPTIONAL_LAYERS = (
  "mesh_tf2.transformer.moe.MoE1D",
  "mesh_tf2.transformer.transformer_layers.GeneralBilinearSelfAttention",
  "mesh_tf2.transformer.transformer_layers.LocalSelfAttention",
  "mesh_tf2.transformer.transformer_layers.TalkingHeadsSelfAttention",
  "mesh_tf2.transformer.transformer_layers.TransparentEncDecAttention",
)

# Modules of Mesh TensorFlow that files import by habit, and that may register
# nothing here.
OPTIONAL_MODULES = (
  "mesh_tf2.transformer.adaptive_softmax",
  "mesh_tf2.transformer.attention",
  "mesh_tf2.transformer.dataset",
  "mesh_tf2.transformer.evolved_transformer",
  "mesh_tf2.transformer.fixup_layers",
  "mesh_tf2.transformer.funnel_transformer",
  "mesh_tf2.transformer.memory_layers",
  "mesh_tf2.transformer.moe",
  "mesh_tf2.transformer.t2t_vocabulary",
  "mesh_tf2.transformer.universal_transformer",
  "mesh_tf2.transformer.utils",
  "mesh_tf2.transformer.vocab_embeddings",
  "mesh_tf2.transformer.vocabulary",
)

_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _registry() -> typing.Any:
  return gin.config._REGISTRY


def matches(selector: str) -> list[str]:
  """The full names that `selector`, which may lack modules, stands for."""
  return sorted(_registry().matching_selectors(selector))


def shortest(name: str) -> str:
  """The shortest selector of a full name that stands for nothing else."""
  return _registry().minimal_selector(name)


def is_optional(selector: str) -> bool:
  """Whether `selector` stands for one of `OPTIONAL_LAYERS`."""
  return any(f".{name}".endswith(f".{selector}") for name in OPTIONAL_LAYERS)


def modules() -> set[str]:
  """Every module, and every package above one, that names are known of."""
  found = set(OPTIONAL_MODULES)
  for name, _ in _registry().items():
    parts = name.split(".")
    found |= {".".join(parts[:end]) for end in range(1, len(parts))}
  return found


def nearest(
  name: str, known: collections.abc.Iterable[str], cutoff: float = 0.6
) -> str | None:
  """The one of the known names that looks most like `name`, or None."""
  near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)
  return near[0] if near else None


def nearest_selector(selector: str, cutoff: float = 0.6) -> str | None:
  """The registered name that looks most like `selector`, or None.

  Args:
    selector: a name, maybe with modules in front, that is not registered.
    cutoff: how like it has to be, from 0 to 1 for the same.

  Returns:
    A selector with as many modules in front as the given one where that is
    enough to stand for one thing; else the shortest that is.
  """
  parts = selector.count(".") + 1
  known = []
  for name, _ in _registry().items():
    if not name.startswith("gin."):
      tail = ".".join(name.split(".")[-parts:])
      known.append(tail if matches(tail) == [name] else shortest(name))
  near = nearest(selector, known, cutoff)
  if near is None and parts > 1:
    return nearest_selector(selector.rpartition(".")[2], cutoff)
  return near


def parameters(name: str) -> set[str] | None:
  """The parameters of what has this full name; None if it takes any at all.

  Args:
    name: a full name, as `matches` returns it.

  Returns:
    Names. Those of a class include the ones that its constructor does not name
    and hands on to the class above.
  """
  configurable = gin.get_configurable(name)
  found: set[str] = set()
  for function in _constructors(configurable):
    signature = inspect.signature(function).parameters.values()
    found |= {p.name for p in signature if p.kind not in _REST}
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature):
      return found - {"self"}
  return None


def annotation(name: str, parameter: str) -> str:
  """The type of a parameter as it would be written; "" where there is none.

  Args:
    name: a full name, as `matches` returns it.
    parameter: the name of a parameter, also one that the constructor of a
      class hands on to the class above.
  """
  for function in _constructors(gin.get_configurable(name)):
    found = inspect.signature(function).parameters.get(parameter)
    if found is not None and found.kind not in _REST:
      kind = found.annotation
      missing = kind is inspect.Parameter.empty
      return "" if missing else str(getattr(kind, "__name__", kind))
  return ""


def _constructors(
  configurable: typing.Any,
) -> list[collections.abc.Callable[..., typing.Any]]:
  if not inspect.isclass(configurable):
    return [configurable]
  classes = configurable.__mro__[:-1]  # without `object`
  found = [vars(cls)["__init__"] for cls in classes if "__init__" in vars(cls)]
  return found or [lambda: None]
