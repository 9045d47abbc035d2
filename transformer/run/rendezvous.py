"""Waits until all processes of a cluster have been started.

TensorFlow waits for them, too, but for an hour, and does not say for whom. Here
each process listens at its own port until it has reached all others at their
addresses; then TensorFlow listens there. Whoever comes later finds TensorFlow,
which is as good.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

from .clusters import Cluster

POLL_SECONDS = 0.2


def wait_for_all(cluster: Cluster, timeout_seconds: float) -> None:
  """Returns when every other process has been reached once.

  Args:
    cluster: the processes.
    timeout_seconds: how long to wait.

  Raises:
    TimeoutError: names those that have not come.
  """
  others = {
    task: address
    for task, address in zip(cluster.tasks, cluster.addresses, strict=True)
    if task != cluster.this
  }
  end = time.monotonic() + timeout_seconds
  with _listening(cluster.addresses[cluster.number], len(others)):
    while others:
      others = {t: a for t, a in others.items() if not _answers(a)}
      if others and time.monotonic() > end:
        who = ", ".join(f"{task} ({a})" for task, a in others.items())
        raise TimeoutError(
          f"{cluster.this} has waited {timeout_seconds:g} seconds for {who}, "
          "which TF_CONFIG names; start what is missing, or leave it out of "
          "TF_CONFIG and of run.mesh_shape"
        )
      if others:
        time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def _listening(address: str, others: int) -> Iterator[None]:
  """Has so many others reach this process.

  The address is how they call this machine, which need not be one that it has
  itself; so it is listened to on all of them, as TensorFlow does.
  """
  _, port = _split(address)
  dual = socket.has_dualstack_ipv6()
  family = socket.AF_INET6 if dual else socket.AF_INET
  try:
    server = socket.create_server(
      ("", port), family=family, backlog=others, dualstack_ipv6=dual
    )
  except OSError as error:
    raise OSError(
      f"TF_CONFIG has this process listen at {address}: {error}"
    ) from error
  with server:
    yield


def _answers(address: str) -> bool:
  try:
    with socket.create_connection(_split(address), timeout=2):
      return True
  except OSError:
    return False


def _split(address: str) -> tuple[str, int]:
  host, _, port = address.rpartition(":")
  if not port.isdigit():
    raise ValueError(f"TF_CONFIG: {address!r} is no host:port")
  return host.strip("[]"), int(port)
