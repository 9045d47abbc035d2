"""Names of variables, and the numbers that stand for names."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
  from .graph import Graph


def stream_id(name: str) -> int:
  """A 63-bit number for a name, the same in every process."""
  digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
  return int.from_bytes(digest, "little") >> 1


def scoped_name(name: str) -> str:
  """`name` under the current `tf.compat.v1.variable_scope`."""
  scope = tf.compat.v1.get_variable_scope().name
  return f"{scope}/{name}" if scope else name


def unique_name(name: str, used: dict[str, int], mark_as_used: bool) -> str:
  """`name`, with a number behind it if it is taken.

  Args:
    name: names that differ in capitals only count as one.
    used: how often each name was asked for, by its small letters.
    mark_as_used: whether to note that it was asked for.
  """
  count = used.get(name.lower(), 0)
  unique = f"{name}_{count}" if count else name
  while count and unique.lower() in used:  # somebody chose that name
    count += 1
    unique = f"{name}_{count}"
  if mark_as_used:
    used[name.lower()] = count + 1
    used.setdefault(unique.lower(), 1)
  return unique


def layer_scope(
  graph: Graph, name: str | None, default: str
) -> contextlib.AbstractContextManager[Any]:
  """The variable scope of a layer, which may have no name of its own.

  Names are counted for each graph, and anew whenever the scope around is
  entered: a graph that is built again has the same variables.

  Args:
    graph: the layer's.
    name: of the layer.
    default: for a layer without a name; the second one in the same scope gets
      `<default>_1`.
  """
  taken = graph.layer_names.setdefault(tf.compat.v1.get_variable_scope(), set())
  numbered = (f"{default}_{i}" for i in itertools.count(1))
  free = (x for x in itertools.chain([default], numbered) if x not in taken)
  chosen = name or next(free)
  taken.add(chosen)
  return tf.compat.v1.variable_scope(chosen)


@contextlib.contextmanager
def absolute_names() -> Iterator[None]:
  """Within it, names are in no scope, whatever is around."""
  root = tf.compat.v1.VariableScope(reuse=False, name="")
  with tf.compat.v1.variable_scope(root, auxiliary_name_scope=False):
    yield
