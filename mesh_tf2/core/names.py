"""Names of variables, and the numbers that stand for names."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator

import tensorflow as tf


def stream_id(name: str) -> int:
  """A 63-bit number for a name, the same in every process."""
  digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
  return int.from_bytes(digest, "little") >> 1


def scoped_name(name: str) -> str:
  """`name` under the current `tf.compat.v1.variable_scope`."""
  scope = tf.compat.v1.get_variable_scope().name
  return f"{scope}/{name}" if scope else name


@contextlib.contextmanager
def absolute_names() -> Iterator[None]:
  """Within it, names are in no scope, whatever is around.

  Nor does a scope without a name of its own count those that were opened
  before: it is called `dense` in every function, not `dense_1` in the second.
  """
  root = tf.compat.v1.VariableScope(reuse=False, name="")
  with tf.compat.v1.variable_scope(root, auxiliary_name_scope=False):
    yield
