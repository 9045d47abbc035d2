"""What a processor of an SPMD program can say to the others.

Every processor runs the same program, and calls the same communications in the
same order. Processors are numbered row-major over the mesh.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

Groups = Sequence[Sequence[int]]  # every processor stands in just one of them


class Communicator(abc.ABC):
  """The communications of one processor, called where its program is traced.

  All groups of one communication have the same size; a group's order is that in
  which its members' parts are joined and handed out.
  """

  def start_program(self) -> None:  # noqa: B027  most have nothing to do
    """Called, where no processor runs, before all begin to trace a program."""

  @contextlib.contextmanager
  def looped(self) -> Iterator[None]:
    """Around communications that are a part of a TensorFlow loop."""
    yield

  def on_host(self) -> contextlib.AbstractContextManager[Any]:
    """Around what the host is to do, where a program may use it."""
    return contextlib.nullcontext()

  @abc.abstractmethod
  def processor_number(self) -> tf.Tensor:
    """The number of the processor that runs this: int32, a scalar."""

  @abc.abstractmethod
  def allreduce(
    self, x: tf.Tensor, groups: Groups, reduction: str
  ) -> tf.Tensor:
    """The SUM, MAX or MIN of `x` over the members of a group."""

  @abc.abstractmethod
  def allgather(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """Everybody's `x`, along a new first axis."""

  @abc.abstractmethod
  def alltoall(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """Sends part i of the first axis to member i, and joins what comes."""

  @abc.abstractmethod
  def reduce_scatter(self, x: tf.Tensor, groups: Groups) -> tf.Tensor:
    """The sum of everybody's part i of the first axis, on member i."""

  @abc.abstractmethod
  def permute(
    self, x: tf.Tensor, sources: Sequence[int | None], groups: Groups
  ) -> tf.Tensor:
    """What another processor has.

    Args:
      x: what this one has.
      sources: for each processor, the number of the one it hears from; zeros
        where there is none. Nobody is heard twice.
      groups: nothing goes from one group to another.
    """
