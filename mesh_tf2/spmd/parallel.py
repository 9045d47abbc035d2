"""Small parts of programs that run on a list of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import tensorflow as tf

T = TypeVar("T")

_BINARY = {"SUM": tf.add, "MAX": tf.maximum, "MIN": tf.minimum}
_REDUCE = {"SUM": tf.reduce_sum, "MAX": tf.reduce_max, "MIN": tf.reduce_min}


def parallel(
  devices: Sequence[str],
  fn: Callable[..., T],
  *args: Sequence[Any],
  **kwargs: Sequence[Any],
) -> list[T]:
  """Calls a function once on each device.

  Args:
    devices: names of devices.
    fn: is called under `tf.device`, and in the variable scope `parallel_<i>`.
    *args: lists; device i gets the i-th element of each.
    **kwargs: likewise.

  Returns:
    What it returned on each device.

  Raises:
    ValueError: there are more devices than elements in a list, or fewer, or an
      argument is no list.
  """
  for name, values in (*enumerate(args), *kwargs.items()):
    if not isinstance(values, (list, tuple)) or len(values) != len(devices):
      raise ValueError(
        f"parallel: argument {name!r} is {values!r}; give a list of "
        f"{len(devices)}, an element for each device"
      )
  results = []
  for i, device in enumerate(devices):
    with tf.device(device), tf.compat.v1.variable_scope(f"parallel_{i}"):
      own = {name: values[i] for name, values in kwargs.items()}
      results.append(fn(*(values[i] for values in args), **own))
  return results


def transpose_list_of_lists(lol: Iterable[Iterable[T]]) -> list[list[T]]:
  """The i-th elements of all lists together, for each i.

  Raises:
    ValueError: there is no list, or one is longer than another.
  """
  lists = [list(l) for l in lol]
  if not lists:
    raise ValueError("transpose_list_of_lists: there is no list")
  return [list(column) for column in zip(*lists, strict=True)]


def binary_reduction_fn(reduction_fn_string: str) -> Callable[..., tf.Tensor]:
  """The TensorFlow function of two tensors for "SUM", "MAX" or "MIN".

  Raises:
    ValueError: it is another string.
  """
  return _named(_BINARY, reduction_fn_string)


def reduction_fn(reduction_fn_string: str) -> Callable[..., tf.Tensor]:
  """The TensorFlow function over axes for "SUM", "MAX" or "MIN".

  Raises:
    ValueError: it is another string.
  """
  return _named(_REDUCE, reduction_fn_string)


def _named(
  table: dict[str, Callable[..., tf.Tensor]], name: str
) -> Callable[..., tf.Tensor]:
  if name not in table:
    raise ValueError(f"unknown reduction {name!r}; take one of {list(table)}")
  return table[name]
